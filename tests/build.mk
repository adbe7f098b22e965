# SPDX-License-Identifier: MIT
# tests/build.mk - from test sources to programs, and the goals that run them.
# tests/unit/x_test.c becomes BUILD/tests/unit/x_test; other .c files of such a
# folder are linked into each program of it. All are linked statically, so that a
# test sees the internals and depends on nothing that is installed.

suites_c := unit contract simulation fault system
suites_sh := cli api
SUITES ?= $(suites_c) $(suites_sh)
TEST_JOBS ?= 4
SOAK_SECONDS ?= 600

package_cmocka := cmocka
test_folder := $(BUILD)/tests
upper = $(subst pgsql,PGSQL,$(subst mysql,MYSQL,$(subst sqlite,SQLITE,$(1))))

# --------------------------------------------------------------------- sources

# A source that has the name of a driver in its own is left out with that driver.
names_absent = $(strip $(foreach driver,$(filter-out $(drivers),$(all_drivers)), \
    $(findstring $(driver),$(notdir $(1)))))
found = $(foreach source,$(sort $(wildcard $(1))),$(if $(call names_absent,$(source)),,$(source)))
to_objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
to_programs = $(patsubst tests/%.c,$(test_folder)/%,$(1))

test_lib_objects := $(call to_objects,$(call found,tests/lib/*.c))
program_sources = $(call found,tests/$(1)/*_test.c tests/$(1)/simulate.c tests/$(1)/soak.c)
programs_of = $(call to_programs,$(call program_sources,$(1)))
support_objects = $(call to_objects, \
    $(filter-out $(call program_sources,$(1)),$(call found,tests/$(1)/*.c)))

test_programs := $(foreach suite,$(suites_c) cable,$(call programs_of,$(suite)))
# Each benchmark is one program, of all files of its folder and of what they share.
benchmarks := pairs waiting start scale peers
bench_programs := $(benchmarks:%=$(test_folder)/bench/%)
# What `start` compares the command with: each on one client library, and nothing of ours.
minimal_programs := $(patsubst tests/bench/minimal/%.c,$(test_folder)/bench/minimal-%,$(call found,tests/bench/minimal/*.c))
# What only a benchmark is compared with may be absent; the tests need none of it.
package_hiredis := hiredis
has_hiredis := $(call have_package,hiredis)
bench_sources = $(filter-out $(if $(has_hiredis),,%_hiredis.c), \
    $(call found,tests/bench/$(1)/*.c tests/bench/lib/*.c))
bench_objects = $(call to_objects,$(call bench_sources,$(1)))
example_programs := $(call to_programs,$(call found,tests/examples/*.c))

# ----------------------------------------------------------------- compilation

cmocka_cflags = $(call package_cflags,cmocka)
cmocka_libs = $(call package_libs,cmocka)
test_includes = -Iinclude -Isrc -Itests -Itests/lib -I$(gen) $(cmocka_cflags) \
    $(foreach driver,$(drivers),$(client_cflags_$(driver))) \
    $(foreach driver,$(drivers),-DDBLOCK_TEST_HAS_$(call upper,$(driver)))
$(BUILD)/obj/tests/bench/peers/%.o: test_includes += \
    $(if $(has_hiredis),-DDBLOCK_BENCH_HAS_HIREDIS $(call package_cflags,hiredis))
# Once it is installed the program is made anew with it.
hiredis_mark := $(test_folder)/bench/hiredis-$(or $(has_hiredis),no)
$(hiredis_mark):
	$(make_folder)
	@touch $@
$(BUILD)/obj/tests/bench/peers/contenders.o: $(hiredis_mark)
# An example sees what a stranger sees.
$(BUILD)/obj/tests/examples/%.o: test_includes = -Iinclude

$(BUILD)/obj/tests/%.o: tests/%.c $(flags_file) | $(foreach driver,$(drivers),$(gen)/$(driver)_sql.h)
	$(make_folder)
	$(call quiet,CC,$<)$(compile) $(test_includes) -c $< -o $@

$(test_folder)/libtest.a: $(test_lib_objects)
	$(make_folder)
	$(call quiet,AR,$@)rm -f $@ && $(AR) rcsD $@ $(test_lib_objects)

# -------------------------------------------------------------------- programs

# The parts of the command, for their unit tests.
cli_parts := $(if $(has_command),$(filter-out %/main.o,$(cli_objects)))
$(test_folder)/libcli.a: $(cli_parts)
	$(make_folder)
	$(call quiet,AR,$@)rm -f $@ && $(AR) rcsD $@ $(cli_parts)

test_libraries := $(if $(cli_parts),$(test_folder)/libcli.a) $(if $(test_lib_objects),$(test_folder)/libtest.a) \
    $(foreach library,$(filter-out dblock,$(libraries)),$(BUILD)/lib/lib$(library).a) \
    $(if $(core_objects),$(BUILD)/lib/libdblock.a)
test_link_libs = -Wl,--start-group $(test_libraries) -Wl,--end-group \
    $(foreach driver,$(drivers),$(client_libs_$(driver))) $(json_libs) -ldl -lm

# $(1) suite
define suite_programs
support_$(1) := $(call support_objects,$(1))
$(call programs_of,$(1)): $$(test_folder)/%: $$(BUILD)/obj/tests/%.o $$(support_$(1)) $$(test_libraries)
	$$(make_folder)
	$$(call quiet,LINK,$$@)$$(link) -pie -o $$@ $$< $$(support_$(1)) $$(test_link_libs) $$(cmocka_libs)
endef
$(foreach suite,$(suites_c) soak cable,$(eval $(call suite_programs,$(suite))))

# The tests that need no server once more, on a core and strategies made for gcov, to count the
# branches that they take (ci/run): all else is that of this build. Under -O0 a branch is one of the
# source; without -fprofile-update threads would lose counts.
gcov_folder := $(BUILD)/gcov
gcov_objects := $(patsubst $(BUILD)/%,$(gcov_folder)/%,$(core_objects))
$(gcov_objects): includes = -Iinclude -Isrc
$(gcov_objects): $(gcov_folder)/obj/%.o: %.c $(flags_file)
	$(make_folder)
	$(call quiet,CC,$<)$(compile) -O0 -U_FORTIFY_SOURCE --coverage -fprofile-update=atomic $(includes) -c $< -o $@
$(gcov_folder)/libdblock.a: $(gcov_objects)
	$(make_folder)
	$(call quiet,AR,$@)rm -f $@ && $(AR) rcsD $@ $(gcov_objects)

gcov_needs := $(gcov_folder)/libdblock.a $(filter-out %/libdblock.a,$(test_libraries))
gcov_link_libs = $(subst $(BUILD)/lib/libdblock.a,$(gcov_folder)/libdblock.a,$(test_link_libs)) -Wl,-u,__gcov_dump -lgcov
gcov_programs :=

# $(1) suite, $(2) programs
define gcov_suite
gcov_programs += $(patsubst $(BUILD)/%,$(gcov_folder)/%,$(2))
$(patsubst $(BUILD)/%,$(gcov_folder)/%,$(2)): $$(gcov_folder)/tests/%: $$(BUILD)/obj/tests/%.o $$(support_$(1)) $$(gcov_needs)
	$$(make_folder)
	$$(call quiet,LINK,$$@)$$(link) -pie -o $$@ $$< $$(support_$(1)) $$(gcov_link_libs) $$(cmocka_libs)
endef
$(eval $(call gcov_suite,unit,$(call programs_of,unit)))
$(eval $(call gcov_suite,simulation,$(filter-out %/simulate,$(call programs_of,simulation))))
$(eval $(call gcov_suite,contract,$(filter %/contract_sim_test %/contract_sqlite_test,$(call programs_of,contract))))
$(eval $(call gcov_suite,fault,$(filter-out %/memory_test,$(call programs_of,fault))))
$(eval $(call gcov_suite,system,$(filter %/sqlite_borrowed_test %/sqlite_joined_test,$(call programs_of,system))))

# $(1) benchmark
define bench_program
$$(test_folder)/bench/$(1): $$(call bench_objects,$(1)) $$(test_libraries)
	$$(make_folder)
	$$(call quiet,LINK,$$@)$$(link) -pie -o $$@ $$(call bench_objects,$(1)) $$(test_link_libs) $(2)
endef
$(foreach benchmark,$(benchmarks),$(eval $(call bench_program,$(benchmark),\
    $(if $(has_hiredis),$(if $(filter peers,$(benchmark)),$(call package_libs,hiredis))))))

$(minimal_programs): $(test_folder)/bench/minimal-%: $(BUILD)/obj/tests/bench/minimal/%.o
	$(make_folder)
	$(call quiet,LINK,$@)$(link) -pie -o $@ $< $(client_libs_$*)

$(example_programs): $(test_folder)/%: $(BUILD)/obj/tests/%.o $(test_libraries)
	$(make_folder)
	$(call quiet,LINK,$@)$(link) -pie -o $@ $< $(test_link_libs)

test_sources := $(wildcard tests/lib/*.c tests/fuzz/*.c tests/soak/*.c tests/cable/*.c $(suites_c:%=tests/%/*.c) tests/bench/*/*.c tests/examples/*.c)
.SECONDARY: $(test_sources:%.c=$(BUILD)/obj/%.o)

# Fuzzers need clang and FLAVOUR=fuzz; none of them needs a server.
fuzz_sources := $(call found,tests/fuzz/*_fuzz.c)
fuzz_programs := $(call to_programs,$(fuzz_sources))
fuzz_objects := $(call to_objects,$(filter-out $(fuzz_sources),$(call found,tests/fuzz/*.c)))
$(fuzz_programs): $(test_folder)/%: $(BUILD)/obj/tests/%.o $(fuzz_objects) $(test_libraries)
	$(make_folder)
	$(call quiet,LINK,$@)$(link) -fsanitize=fuzzer -pie -o $@ $< $(fuzz_objects) $(test_link_libs)

# ----------------------------------------------------------------------- goals

.PHONY: test-programs
test-programs: $(test_programs) $(bench_programs) $(minimal_programs) $(example_programs)

ifneq ($(filter test test-programs gcov-programs,$(MAKECMDGOALS)),)
ifeq ($(call have_package,cmocka),)
$(error the tests need cmocka, which pkg-config does not find; `ci/deps check` installs it)
endif
endif

# Which suites, and with which servers, is up to SUITES and to DBLOCK_TEST_PGSQL
# and its like (ci/services); a test that lacks its server is skipped aloud.
# What counts pages and statements on a server says the same in every flavour, and a crowd of
# processes that has seconds for its turns, or a client with a short I/O limit, does not fit into them
# with a sanitizer on two processors.
once := $(if $(filter release cov,$(FLAVOUR)),,%/pgsql_bloat_test %/pgsql_quiet_test %/crowd_test \
    %/many_names_test %/pgsql_durable_test %/keeper_test %_cut_test %_hang_test %_notice_test %/cable.sh %/bank_test \
    %/mysql_galera_test %/mysql_galera_guard_test)
# MORE_TESTS: of another build, as PROGRAM or PROGRAM@SERVER (ci/run).
chosen_tests = $(foreach suite,$(SUITES),$(filter-out %/simulate $(once), \
    $(call programs_of,$(suite)) $(sort $(wildcard tests/$(suite)/*.sh))))
# What tests/system/cable.sh runs.
cable_programs := $(call programs_of,cable)
test: all $(foreach suite,$(SUITES),$(call programs_of,$(suite))) $(if $(filter system,$(SUITES)),$(cable_programs))
	@exec ci/test-run -j $(TEST_JOBS) $(if $(filter release cov,$(FLAVOUR)),-o,-n $(FLAVOUR)) $(BUILD) $(chosen_tests) $(MORE_TESTS)

# With servers (ci/services), as it is they who make most of what goes wrong. The figure is told also
# if a test fails.
.PHONY: coverage
coverage:
	+@find build/cov -name '*.gcda' -delete 2> /dev/null; \
	$(MAKE) test FLAVOUR=cov BUILD=build/cov CC=gcc; status=$$?; \
	ci/coverage build/cov && exit $$status

# What was counted before is forgotten.
.PHONY: gcov-programs list-gcov
gcov-programs: $(gcov_programs)
	@find $(gcov_folder) -name '*.gcda' -delete
list-gcov:
	@printf '%s\n' $(gcov_programs)

.PHONY: list-tests
list-tests:
	@$(if $(chosen_tests),printf '%s\n' $(chosen_tests),:)

bench: all $(bench_programs) $(minimal_programs)
	@tests/bench/run $(BUILD)

# Each fuzzer makes so many inputs at most, from those of tests/fuzz/corpus/x and new ones.
FUZZ_RUNS ?= 20000
FUZZ_SECONDS ?= 60
.PHONY: fuzz list-fuzzers
list-fuzzers:
	@printf '%s\n' $(fuzz_programs)
fuzz: $(fuzz_programs)
	@exec tests/fuzz/run $(FUZZ_RUNS) $(FUZZ_SECONDS) $(fuzz_programs)

# Those that fail when they are slow are left out, and a test that has the allocator to itself.
memcheck_programs := $(filter-out %/acquire_test %/alarm_test %/keeper_test %/queue_test %/watch_test, \
    $(call programs_of,unit)) $(filter-out %/memory_test,$(call programs_of,fault)) \
    $(filter %/simulate_test,$(call programs_of,simulation))
.PHONY: valgrind
valgrind: $(memcheck_programs)
	@exec ci/memcheck $(memcheck_programs)

# On servers of its own, unless some are named (ci/services env).
cut_programs := $(filter %_cut_test %_hang_test,$(call programs_of,system))
bank_program := $(filter %/bank_test,$(call programs_of,system))
soak_programs := $(call programs_of,simulation) $(call programs_of,soak) $(cut_programs) $(bank_program)
.PHONY: run-soak
soak: $(soak_programs)
	+@ci/with-servers $(MAKE) run-soak
run-soak: $(soak_programs)
	$(test_folder)/soak/soak --seconds $(SOAK_SECONDS)
	$(test_folder)/simulation/simulate --seconds $(SOAK_SECONDS)
	$(foreach program,$(cut_programs),DBLOCK_TEST_CUTS=all $(program) || [ $$? = 77 ] || exit 1;) :
	$(foreach program,$(bank_program),BANK_TRANSFERS=20000 tests/system/bank-soak $(program) || exit 1;) :
	+$(if $(shell command -v clang),$(MAKE) fuzz FLAVOUR=fuzz BUILD=build/fuzz CC=clang \
	    FUZZ_RUNS=-1 FUZZ_SECONDS=$(SOAK_SECONDS),@echo 'skip: the fuzzers need clang')

-include $(test_sources:%.c=$(BUILD)/obj/%.d) $(gcov_objects:.o=.d)
