# Makefile of the snowflake extension
#
#	make && sudo make install	build and install for the PostgreSQL of PG_CONFIG
#	make check			all tests, in private instances; nothing is installed
#	make installcheck		all tests, against an installed and running server
#					that has snowflake in shared_preload_libraries
#
# make -f .../Makefile builds in another directory than the source's.

here := $(dir $(lastword $(MAKEFILE_LIST)))

# The version is that of the control file; test/generator/versions.pl checks that all
# other places agree.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(here)snowflake.control)

MODULE_big = snowflake
OBJS = \
	src/api.o \
	src/clock.o \
	src/clock_messages.o \
	src/convert.o \
	src/convert_copy_trigger.o \
	src/convert_expressions.o \
	src/convert_new_ids.o \
	src/convert_obstacles.o \
	src/convert_online.o \
	src/convert_online_backfill.o \
	src/convert_online_locks.o \
	src/convert_online_obstacles.o \
	src/convert_online_rehearsal.o \
	src/convert_online_rows.o \
	src/convert_online_steps.o \
	src/convert_online_swap.o \
	src/convert_plan.o \
	src/convert_views.o \
	src/convert_queries.o \
	src/convert_report.o \
	src/convert_schema.o \
	src/convert_steps.o \
	src/convert_silent_update.o \
	src/convert_subtransaction.o \
	src/convert_top_level.o \
	src/generator.o \
	src/grant.o \
	src/id_range.o \
	src/id_support.o \
	src/id_time.o \
	src/ids.o \
	src/keys/daily.o \
	src/keys/hashids.o \
	src/keys/hashids_functions.o \
	src/keys/numbers.o \
	src/keys/objectid.o \
	src/keys/shown_text.o \
	src/keys/sqids.o \
	src/keys/sqids_functions.o \
	src/keys/text.o \
	src/keys/text_functions.o \
	src/keys/uuid.o \
	src/limited_wait.o \
	src/mark.o \
	src/mark_functions.o \
	src/preload_hint.o \
	src/registry_client.o \
	src/registry_local.o \
	src/registry_worker.o \
	src/reserve.o \
	src/resolver.o \
	src/scheme.o \
	src/settings.o \
	src/snowflake.o \
	src/standby.o \
	src/startup.o \
	src/stat.o \
	src/state.o \
	src/table_owner.o \
	src/wait_event.o \
	src/word.o
PG_CPPFLAGS = -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' -I$(here)src -I$(libpq_srcdir)
SHLIB_LINK = $(libpq)

EXTENSION = snowflake snowflake_registry
DATA = $(notdir $(wildcard $(here)snowflake--*.sql $(here)snowflake_registry--*.sql)) \
	compat/snowflake_compat.sql compat/snowflake_undo.sql
HEADERS = src/snowflake_api.h
PGFILEDESC = "snowflake - unique, time-ordered 64-bit IDs"

REGRESS = scheme ids vectors nextval usage settings uuid text objectid hashids sqids daily convert convert_defaults convert_expressions convert_keys convert_schema convert_security convert_uuid trusted registry stat
ISOLATION = nextval
ISOLATION_OPTS = --inputdir=$(srcdir)/test
TAP_TESTS = 1
TEST_FOLDERS = generator clock registry convert keys pages
# The file names are unique, because a test's directory and log have only that.
PROVE_TESTS = $(TEST_FOLDERS:%=test/%/*.pl) test/torture/test_*.pl

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

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(here)src/*.h $(here)src/keys/*.h) $(here)snowflake.control | $(CURDIR)/src/keys
$(CURDIR)/src/keys:
	mkdir -p $@
endif
