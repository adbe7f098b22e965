# SPDX-License-Identifier: MIT
# The front door: what can be made, and the variables. `make help` prints the
# comments after "##". How things are made: src/build.mk and tests/build.mk.
# Needs GNU make 4, a C11 compiler, awk and pkg-config; there is no configure.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
SHELL = /bin/sh

# ------------------------------------------------------------------ variables

FLAVOUR ?= release## release | debug | asan | tsan | fuzz | cov
BUILD ?= build/$(FLAVOUR)## where everything is built
DRIVERS ?=## of pgsql mysql sqlite; default: those whose client library is here
MYSQL_PKG ?= libmariadb## or mysqlclient: what the mysql driver is built on
WERROR ?=## 1 turns warnings into errors
V ?=## 1 prints whole commands

PREFIX ?= /usr/local## where `make install` puts things
EXEC_PREFIX ?= $(PREFIX)
BINDIR ?= $(EXEC_PREFIX)/bin
LIBDIR ?= $(EXEC_PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DOCDIR ?= $(DATADIR)/doc/dblock
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
DESTDIR ?=## put before every installed path, for packagers

PKG_CONFIG ?= pkg-config
AWK ?= awk
INSTALL ?= install
# CC, CFLAGS, CPPFLAGS and LDFLAGS are yours: ours are added, never replaced.

version := $(shell sed -n 's/^\#define DBLOCK_VERSION_TEXT "\(.*\)"/\1/p' include/dblock/version.h)
soversion := $(firstword $(subst ., ,$(version)))

# -------------------------------------------------------------------- targets

# `exec` where something runs for long: make ends its child when it is ended
# itself, and that must be the script and not a shell around it.

.PHONY: all demo check test coverage analyze valgrind bench soak install uninstall clean help FORCE

all: ## the libraries and the command, in build/FLAVOUR/lib and bin

demo: ## installs what is missing, then twenty processes fight for one lock
	@exec env MAKE='$(MAKE)' ci/demo

check: ## installs what is missing, starts throw-away servers, runs every test
	@exec env MAKE='$(MAKE)' ci/run

test: ## the tests that need no server; installs nothing

coverage: ## `make test` with gcov, and which lines of src were not run; says more with servers

analyze: ## cppcheck, gcc -fanalyzer and clang-tidy over all of src: minutes
	@exec env MAKE='$(MAKE)' ci/analyze

valgrind: ## memcheck over what needs no server: minutes

bench: ## builds the benchmarks of tests/bench and runs them

soak: ## everything at once, simulation, fuzzers, each for SOAK_SECONDS (default 600), every cut, the bank

install: ## libraries, headers, command, manual pages, schemas, licence, examples

uninstall: ## takes away what `make install` put there

clean: ## removes build/
	rm -rf build

help: ## this list
	@echo 'make TARGET [VARIABLE=VALUE]...'
	@echo
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  \1~\2/p' Makefile \
	    | $(AWK) -F'~' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo
	@sed -n 's/^\([A-Z_]*\) ?= *\([^#]*\)## *\(.*\)/  \1~\3~\2/p' Makefile \
	    | $(AWK) -F'~' '{ printf "%-12s %s%s\n", $$1, $$2, $$3 == "" ? "" : " [" $$3 "]" }'
	@echo '  and CC CFLAGS CPPFLAGS LDFLAGS EXEC_PREFIX BINDIR LIBDIR INCLUDEDIR DATADIR'
	@echo '  MANDIR DOCDIR PKGCONFIGDIR PKG_CONFIG AWK with their usual meaning'

FORCE:

# These goals build nothing themselves, and must work before anything that the
# build needs is installed.
goals_without_build := demo check analyze clean help
ifneq ($(filter-out $(goals_without_build),$(or $(MAKECMDGOALS),all)),)
include src/build.mk
include tests/build.mk
endif
