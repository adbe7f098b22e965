# SPDX-License-Identifier: MIT
# bench.mk - the benchmark, linked from all files of tests/bench/pairs. Read after
# tests/build.mk, whose rules make the objects and the libraries:
#   make -f Makefile -f tests/bench/bench.mk bench-pairs

bench_pairs := $(test_folder)/bench/pairs
bench_pairs_objects := $(call to_objects,$(call found,tests/bench/pairs/*.c))

$(bench_pairs): $(bench_pairs_objects) $(test_libraries)
	$(make_folder)
	$(call quiet,LINK,$@)$(link) -pie -o $@ $(bench_pairs_objects) $(test_link_libs)

.PHONY: bench-pairs
bench-pairs: all $(bench_pairs)

-include $(bench_pairs_objects:.o=.d)
