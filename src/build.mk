# SPDX-License-Identifier: MIT
# src/build.mk - from sources to libraries and the command; what is installed.
# Sources are found by folder: a new .c file needs no line here. The tests are
# in tests/build.mk.

# ------------------------------------------------------------ client libraries

all_drivers := pgsql mysql sqlite
package_pgsql := libpq
package_mysql := $(MYSQL_PKG)
package_sqlite := sqlite3
package_json := jansson
schemas_pgsql := schemas/postgresql
schemas_mysql := schemas/mysql
schemas_sqlite := schemas/sqlite

ifeq ($(shell command -v $(firstword $(PKG_CONFIG))),)
$(error $(PKG_CONFIG) is missing; `ci/deps demo` installs what the build needs)
endif

have_package = $(shell $(PKG_CONFIG) --exists $(package_$(1)) && echo yes)
# -isystem: warnings in other people's headers are not ours to mend.
package_cflags = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(package_$(1))))
package_libs = $(shell $(PKG_CONFIG) --libs $(package_$(1)))

is_building := $(filter-out install uninstall list-tests,$(or $(MAKECMDGOALS),all))
ifeq ($(strip $(DRIVERS)),)
drivers := $(foreach driver,$(all_drivers),$(if $(call have_package,$(driver)),$(driver)))
$(if $(is_building),$(foreach driver,$(filter-out $(drivers),$(all_drivers)), \
    $(info left out: the $(driver) driver, as pkg-config does not find $(package_$(driver)))))
else
drivers := $(DRIVERS)
$(foreach driver,$(drivers),$(if $(filter $(driver),$(all_drivers)),, \
    $(error DRIVERS: there is no driver "$(driver)"; there are $(all_drivers))))
$(foreach driver,$(drivers),$(if $(call have_package,$(driver)),, \
    $(error the $(driver) driver needs $(package_$(driver)), which pkg-config does not find)))
endif
# A driver whose sources are not here cannot be built, whatever is installed.
drivers := $(foreach driver,$(drivers),$(if $(wildcard src/driver/$(driver)/*.c),$(driver)))

has_command := $(wildcard src/cli/*.c)
ifneq ($(has_command),)
ifeq ($(call have_package,json),)
$(if $(is_building),$(info left out: the command, as pkg-config does not find $(package_json)))
has_command :=
endif
endif

# ----------------------------------------------------------------------- flags

ifeq ($(filter release debug asan tsan fuzz cov,$(FLAVOUR)),)
$(error FLAVOUR: "$(FLAVOUR)" is none of release debug asan tsan fuzz cov)
endif
# Of a sanitizer's report the lines are wanted (-g1); all of -g takes a fifth longer to build.
flavour_cflags_release := -O2 -g
flavour_cflags_debug := -O0 -g -DDBLOCK_DEBUG
flavour_cflags_asan := -O1 -g1 -DDBLOCK_DEBUG -fno-omit-frame-pointer \
    -fsanitize=address,undefined -fno-sanitize-recover=all
flavour_cflags_tsan := -O1 -g1 -DDBLOCK_DEBUG -fno-omit-frame-pointer -fsanitize=thread
# Of clang. What a fuzzer is linked with besides is said where it is linked.
flavour_cflags_fuzz := -O1 -g1 -DDBLOCK_DEBUG -fno-omit-frame-pointer \
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
flavour_cflags_cov := -O0 -g -DDBLOCK_DEBUG --coverage
flavour_ldflags_asan := -fsanitize=address,undefined
flavour_ldflags_fuzz := -fsanitize=address,undefined
flavour_ldflags_tsan := -fsanitize=thread
flavour_ldflags_cov := --coverage

dblock_cflags := -std=c11 -pthread -fPIC -fno-plt -fvisibility=hidden -fstack-protector-strong \
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
    -Wwrite-strings -Wconversion -Wvla -Wformat=2 \
    -ffile-prefix-map=$(CURDIR)/= -ffile-prefix-map=$(CURDIR)=. \
    $(if $(filter 1,$(WERROR)),-Werror) $(flavour_cflags_$(FLAVOUR))
dblock_cppflags := -D_POSIX_C_SOURCE=200809L
dblock_ldflags := -pthread -Wl,-z,relro -Wl,-z,now -Wl,--as-needed $(flavour_ldflags_$(FLAVOUR))
# The sanitizers leave their own symbols undefined in shared libraries.
shared_ldflags := -shared $(if $(filter asan tsan fuzz,$(FLAVOUR)),,-Wl,-z,defs)

# The C library complains about _FORTIFY_SOURCE without optimisation, and
# compilers about a second definition that differs.
last_optimisation := $(lastword $(filter -O%,$(dblock_cflags) $(CFLAGS)))
ifeq ($(filter -O0,$(last_optimisation))$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),)
ifeq ($(filter asan tsan fuzz,$(FLAVOUR)),)
dblock_cppflags += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
endif
endif

compile = $(CC) $(dblock_cppflags) $(CPPFLAGS) $(dblock_cflags) $(CFLAGS) -MMD -MP
link = $(CC) $(dblock_cflags) $(CFLAGS) $(dblock_ldflags) $(LDFLAGS)

is_silent := $(findstring s,$(firstword -$(filter-out --% %=%,$(MAKEFLAGS))))
quiet = $(if $(filter 1,$(V)),,@$(if $(is_silent),,printf '%-6s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))' && ))
make_folder = $(if $(wildcard $(@D)/.),,@mkdir -p $(@D))

# Objects are made anew when the compiler or its flags change.
flags_file := $(BUILD)/flags
$(flags_file): FORCE
	$(make_folder)
	@printf '%s\n' '$(subst ','\'',$(compile) $(dblock_ldflags) $(LDFLAGS))' | cmp -s - $@ || \
	    printf '%s\n' '$(subst ','\'',$(compile) $(dblock_ldflags) $(LDFLAGS))' > $@

objects_of = $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(wildcard $(1))))

# ------------------------------------------------------------- generated files

gen := $(BUILD)/gen
sql_embed = LC_ALL=C $(AWK) -f src/tools/c_string.awk -f src/tools/sql_embed.awk
text_embed = LC_ALL=C $(AWK) -f src/tools/c_string.awk -f src/tools/text_embed.awk
embed_tools := src/tools/c_string.awk src/tools/sql_embed.awk src/tools/text_embed.awk

# $(1) driver: its statements and its schema, gen/DRIVER_sql.h and .c
define driver_generated
sql_$(1) := $$(sort $$(wildcard src/driver/$(1)/sql/*.sql))
ddl_$(1) := $$(sort $$(wildcard $$(schemas_$(1))/*.sql))

$$(gen)/$(1)_sql.h: $$(sql_$(1)) $$(ddl_$(1)) $$(embed_tools) $$(gen)/$(1)_sql.list
	$$(call quiet,GEN,$$@){ $$(sql_embed) -v part=declare -v prefix=$(1)_sql_ $$(sql_$(1)) /dev/null && \
	    $$(text_embed) -v part=declare -v name=$(1)_schema_text $$(ddl_$(1)) /dev/null; } > $$@.tmp && \
	    mv $$@.tmp $$@

$$(gen)/$(1)_sql.c: $$(sql_$(1)) $$(ddl_$(1)) $$(embed_tools) $$(gen)/$(1)_sql.list
	$$(call quiet,GEN,$$@){ echo '#include "$(1)_sql.h"' && \
	    $$(sql_embed) -v part=define -v prefix=$(1)_sql_ $$(sql_$(1)) /dev/null && \
	    $$(text_embed) -v part=define -v name=$(1)_schema_text $$(ddl_$(1)) /dev/null; } > $$@.tmp && \
	    mv $$@.tmp $$@

$$(gen)/$(1)_sql.list: names = $$(sql_$(1)) $$(ddl_$(1))
endef
$(foreach driver,$(drivers),$(eval $(call driver_generated,$(driver))))

# A list of the inputs, so that a file that goes away is noticed too.
$(gen)/%.list: FORCE
	$(make_folder)
	@echo '$(names)' | cmp -s - $@ || echo '$(names)' > $@

help_texts := $(sort $(wildcard src/cli/help/*.txt))
$(gen)/cli_help.list: names = $(help_texts)
$(gen)/cli_help.h: $(help_texts) $(embed_tools) $(gen)/cli_help.list
	$(call quiet,GEN,$@)$(text_embed) -v part=declare -v prefix=cli_help_ $(help_texts) /dev/null \
	    > $@.tmp && mv $@.tmp $@
$(gen)/cli_help.c: $(help_texts) $(embed_tools) $(gen)/cli_help.list
	$(call quiet,GEN,$@){ echo '#include "cli_help.h"' && \
	    $(text_embed) -v part=define -v prefix=cli_help_ $(help_texts) /dev/null; } > $@.tmp && \
	    mv $@.tmp $@

.SECONDARY: $(foreach driver,$(drivers),$(gen)/$(driver)_sql.c) $(gen)/cli_help.c

.PHONY: generated
generated: $(foreach driver,$(drivers),$(gen)/$(driver)_sql.h) $(if $(help_texts),$(gen)/cli_help.h)

# --------------------------------------------------------------------- objects

# What an acquire and a release run comes first, and so lies together in the library: spread over
# twice as many pages it costs a twentieth more on a core that the database's process has just left.
usual := acquire attempt release perform perform_connection perform_recorded link channel lock alarm \
    client options name names queued recorded strategy waiter registry session event hold keeper \
    driver_services environment fork \
    $(foreach part,statement advisory row hold lease insert call text wire value connection line \
        byte slot,$(addsuffix _$(part),pgsql mysql sqlite))
usual_first = $(filter $(addprefix %/,$(addsuffix .o,$(usual))),$(1)) \
    $(filter-out $(addprefix %/,$(addsuffix .o,$(usual))),$(1))

core_objects := $(call usual_first,$(call objects_of,src/core/*.c src/strategy/*.c))
load_objects := $(call objects_of,src/load/*.c)
cli_objects := $(call objects_of,src/cli/*.c) $(if $(help_texts),$(BUILD)/obj/gen/cli_help.o)
driver_objects = $(call usual_first,$(call objects_of,src/driver/$(1)/*.c)) $(BUILD)/obj/gen/$(1)_sql.o

$(core_objects) $(load_objects): includes = -Iinclude -Isrc
$(core_objects) $(load_objects): $(BUILD)/obj/%.o: %.c $(flags_file)
	$(make_folder)
	$(call quiet,CC,$<)$(compile) $(includes) -c $< -o $@

# Each driver sees its own client library, and nobody else does.
define driver_compilation
$(call driver_objects,$(1)): includes = -Iinclude -Isrc -Isrc/driver/$(1) -I$$(gen) $$(client_cflags_$(1))
client_cflags_$(1) := $$(call package_cflags,$(1))
client_libs_$(1) := $$(call package_libs,$(1))
$(call objects_of,src/driver/$(1)/*.c): | $$(gen)/$(1)_sql.h
$(BUILD)/obj/gen/$(1)_sql.o: $$(gen)/$(1)_sql.h
$(call objects_of,src/driver/$(1)/*.c): $$(BUILD)/obj/%.o: %.c $$(flags_file)
	$$(make_folder)
	$$(call quiet,CC,$$<)$$(compile) $$(includes) -c $$< -o $$@
endef
$(foreach driver,$(drivers),$(eval $(call driver_compilation,$(driver))))

# The command is the first customer of the public headers: it sees nothing else.
json_cflags := $(if $(has_command),$(call package_cflags,json))
json_libs := $(if $(has_command),$(call package_libs,json))
$(cli_objects): includes = -Iinclude -Isrc/cli -I$(gen) $(json_cflags)
$(call objects_of,src/cli/*.c): | $(if $(help_texts),$(gen)/cli_help.h)
$(call objects_of,src/cli/*.c): $(BUILD)/obj/%.o: %.c $(flags_file)
	$(make_folder)
	$(call quiet,CC,$<)$(compile) $(includes) -c $< -o $@
$(BUILD)/obj/gen/cli_help.o: $(gen)/cli_help.h

$(BUILD)/obj/gen/%.o: $(gen)/%.c $(flags_file)
	$(make_folder)
	$(call quiet,CC,$<)$(compile) $(includes) -c $< -o $@

# ------------------------------------------------------------------- libraries

comma := ,
# $(1) library without "lib", $(2) objects, $(3) further libraries to link,
# $(4) files these need to exist first, $(5) more for the linker
define library
library_files_$(1) := $(BUILD)/lib/lib$(1).so $(BUILD)/lib/lib$(1).a

$(BUILD)/lib/lib$(1).so.$(version): $(2) $(4) src/link/lib$(1).map
	$$(make_folder)
	$$(call quiet,LINK,$$@)$$(link) $$(shared_ldflags) $(5) -Wl,-soname,lib$(1).so.$(soversion) \
	    -Wl,--version-script=src/link/lib$(1).map -o $$@ $(2) -L$(BUILD)/lib $(3)

$(BUILD)/lib/lib$(1).so.$(soversion): $(BUILD)/lib/lib$(1).so.$(version)
	@ln -sf $$(<F) $$@
$(BUILD)/lib/lib$(1).so: $(BUILD)/lib/lib$(1).so.$(soversion)
	@ln -sf $$(<F) $$@

$(BUILD)/lib/lib$(1).a: $(2)
	$$(make_folder)
	$$(call quiet,AR,$$@)rm -f $$@ && $$(AR) rcsD $$@ $(2)
endef

libraries := $(if $(core_objects),dblock) $(if $(load_objects),dblock-load) \
    $(foreach driver,$(drivers),dblock-$(driver))
core_library := $(if $(core_objects),$(BUILD)/lib/libdblock.so)
link_core := $(if $(core_objects),-ldblock)

# A look-up of a name that nobody waits for any more may outlast the last client: its code stays.
$(eval $(call library,dblock,$(core_objects),,,-Wl$(comma)-z$(comma)nodelete))
$(eval $(call library,dblock-load,$(load_objects),$(link_core) -ldl,$(core_library)))
$(foreach driver,$(drivers),$(eval $(call library,dblock-$(driver),$(call driver_objects,$(driver)),\
    $(link_core) $$(client_libs_$(driver)),$(core_library))))

all: $(foreach library,$(libraries),$(library_files_$(library)))

# ----------------------------------------------------------------- the command

# Two links of the same objects: one that runs from the build folder, and one to
# install. The build one carries RPATH and not RUNPATH, as only RPATH is used
# for the driver that libdblock-load opens, and for that driver's libdblock.
# libdblock-load is linked in: one file less to be found and mapped at every start.
origin_rpath = -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/$(1)'
link_command = $(link) -pie -o $@ $(cli_objects) $(BUILD)/lib/libdblock-load.a \
    -L$(BUILD)/lib -ldblock $(json_libs) -ldl
command_needs := $(cli_objects) $(BUILD)/lib/libdblock.so $(BUILD)/lib/libdblock-load.a

$(BUILD)/bin/dblock: $(command_needs)
	$(make_folder)
	$(call quiet,LINK,$@)$(link_command) $(call origin_rpath,../lib)

# Where the run-time linker looks by itself no path is needed; elsewhere (say
# PREFIX=$HOME/.local) the command finds its libraries relative to itself.
linker_folders := /lib /usr/lib /usr/local/lib /lib/% /usr/lib/% /lib64 /usr/lib64
ifeq ($(filter $(linker_folders),$(LIBDIR)),)
install_rpath := $(call origin_rpath,$(shell realpath -m --relative-to=$(BINDIR) $(LIBDIR)))
endif
$(BUILD)/install/dblock: $(command_needs) $(BUILD)/install/rpath
	$(make_folder)
	$(call quiet,LINK,$@)$(link_command) $(install_rpath)
$(BUILD)/install/rpath: FORCE
	$(make_folder)
	@echo "$(install_rpath)" | cmp -s - $@ || echo "$(install_rpath)" > $@

all: $(if $(has_command),$(BUILD)/bin/dblock)

# --------------------------------------------------------------------- install

headers := $(wildcard include/dblock/*.h)
sys_headers := $(wildcard include/dblock/sys/*.h)
manual_pages := $(wildcard src/man/*.1 src/man/*.3 src/man/*.7)
examples := $(wildcard tests/examples/*.c)
schema_folders := $(notdir $(patsubst %/,%,$(wildcard schemas/*/)))
pkgconfig_files := $(libraries:%=%.pc)

# Paths inside the prefix are written relative to it, so that pkg-config can
# move them (--define-prefix, or a staged installation).
below = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
fill_in = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(call below,$(LIBDIR))|' \
    -e 's|@INCLUDEDIR@|$(call below,$(INCLUDEDIR))|' -e 's|@VERSION@|$(version)|' \
    -e 's|@MYSQL_PKG@|$(MYSQL_PKG)|'

# The linker's cache matters for the running system only, not for a staged tree.
refresh_linker_cache = @if test -z '$(DESTDIR)' && test "$$(id -u)" = 0 && test -z '$(subst ','\'',$(install_rpath))' \
    && command -v ldconfig > /dev/null; then ldconfig; fi

put = $(INSTALL) -m 644

install: $(foreach library,$(libraries),$(library_files_$(library))) \
    $(if $(has_command),$(BUILD)/install/dblock)
	$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)/dblock/sys $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PKGCONFIGDIR)
	$(put) $(headers) $(DESTDIR)$(INCLUDEDIR)/dblock
	$(if $(sys_headers),$(put) $(sys_headers) $(DESTDIR)$(INCLUDEDIR)/dblock/sys)
	@set -e; for library in $(libraries); do \
	    $(put) $(BUILD)/lib/lib$$library.so.$(version) $(BUILD)/lib/lib$$library.a $(DESTDIR)$(LIBDIR); \
	    ln -sf lib$$library.so.$(version) $(DESTDIR)$(LIBDIR)/lib$$library.so.$(soversion); \
	    ln -sf lib$$library.so.$(soversion) $(DESTDIR)$(LIBDIR)/lib$$library.so; \
	    $(fill_in) src/link/$$library.pc.in > $(BUILD)/install/$$library.pc; \
	    $(put) $(BUILD)/install/$$library.pc $(DESTDIR)$(PKGCONFIGDIR); \
	    echo "installed lib$$library"; \
	done
	$(if $(has_command),$(INSTALL) -d $(DESTDIR)$(BINDIR))
	$(if $(has_command),$(INSTALL) -m 755 $(BUILD)/install/dblock $(DESTDIR)$(BINDIR)/dblock)
	@set -e; for page in $(manual_pages); do section=$${page##*.}; \
	    $(INSTALL) -d $(DESTDIR)$(MANDIR)/man$$section; \
	    $(put) $$page $(DESTDIR)$(MANDIR)/man$$section; \
	done
	@set -e; for folder in $(schema_folders); do \
	    for file in schemas/$$folder/*.sql; do test -e "$$file" || continue; \
	        $(INSTALL) -d $(DESTDIR)$(DATADIR)/dblock/schemas/$$folder; \
	        $(put) "$$file" $(DESTDIR)$(DATADIR)/dblock/schemas/$$folder; \
	    done; \
	done
	$(INSTALL) -d $(DESTDIR)$(DOCDIR)/schemas $(DESTDIR)$(DOCDIR)/examples
	$(put) LICENSE $(DESTDIR)$(DOCDIR)
	$(put) schemas/README.md $(DESTDIR)$(DOCDIR)/schemas
	$(if $(examples),$(put) $(examples) $(DESTDIR)$(DOCDIR)/examples)
	$(refresh_linker_cache)
install: | $(BUILD)/install/rpath

# Also takes away drivers that this build leaves out: an earlier one may have
# installed them.
uninstall:
	rm -rf $(DESTDIR)$(INCLUDEDIR)/dblock $(DESTDIR)$(DATADIR)/dblock
	rm -f $(DESTDIR)$(BINDIR)/dblock
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,LICENSE schemas/README.md $(patsubst tests/%,%,$(examples)))
	@rmdir $(addprefix $(DESTDIR)$(DOCDIR),/schemas /examples /) 2> /dev/null || :
	@for library in dblock dblock-load $(all_drivers:%=dblock-%); do \
	    rm -f $(DESTDIR)$(LIBDIR)/lib$$library.a $(DESTDIR)$(LIBDIR)/lib$$library.so \
	        $(DESTDIR)$(LIBDIR)/lib$$library.so.$(soversion) \
	        $(DESTDIR)$(LIBDIR)/lib$$library.so.$(version) $(DESTDIR)$(PKGCONFIGDIR)/$$library.pc; \
	done
	@for page in $(manual_pages); do \
	    rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; \
	done
	$(refresh_linker_cache)

-include $(patsubst %.o,%.d,$(core_objects) $(load_objects) $(cli_objects) \
    $(foreach driver,$(drivers),$(call driver_objects,$(driver))))
