# Makefile of the snowflake extension
#
#	make && sudo make install	build and install for the PostgreSQL of PG_CONFIG
#	make check			all tests, in private instances; nothing is installed
#	make installcheck		all tests, against an installed and running server
#					that has snowflake in shared_preload_libraries
#
# make -f .../Makefile builds in another directory than the source's.

here := $(dir $(lastword $(MAKEFILE_LIST)))

# The version is that of the control file; test/t/015_versions.pl holds all else
# that tells one to it.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(here)snowflake.control)

MODULE_big = snowflake
OBJS = \
	src/api.o \
	src/clock.o \
	src/convert.o \
	src/daily.o \
	src/generator.o \
	src/grant.o \
	src/grant_worker.o \
	src/hashids.o \
	src/hashids_functions.o \
	src/ids.o \
	src/mark.o \
	src/objectid.o \
	src/preload.o \
	src/registry.o \
	src/reserve.o \
	src/reset.o \
	src/scheme.o \
	src/snowflake.o \
	src/standby.o \
	src/startup.o \
	src/stat.o \
	src/state.o \
	src/table.o \
	src/text.o \
	src/text_functions.o \
	src/uuid.o \
	src/word.o
PG_CPPFLAGS = -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' -I$(libpq_srcdir)
SHLIB_LINK = $(libpq)

EXTENSION = snowflake
DATA = $(notdir $(wildcard $(here)snowflake--*.sql))
HEADERS = src/snowflake_api.h
PGFILEDESC = "snowflake - unique, time-ordered 64-bit IDs"

REGRESS = scheme ids vectors nextval usage settings uuid text objectid hashids daily convert convert_keys convert_security trusted registry stat
ISOLATION = nextval
ISOLATION_OPTS = --inputdir=$(srcdir)/test
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

EXTRA_CLEAN = tmp_check output_iso

PG_CONFIG ?= pg_config

# PGXS has a rule for check that says it cannot be done.
ifeq ($(MAKECMDGOALS),check)
.PHONY: check
check:
	PG_CONFIG='$(PG_CONFIG)' $(here)script/check --no-install
else
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(here)src/*.h) $(here)snowflake.control | $(CURDIR)/src
$(CURDIR)/src:
	mkdir -p $@
endif
