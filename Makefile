# Makefile of the snowflake extensions
#
#	make && sudo make install	build and install for the PostgreSQL of PG_CONFIG
#	make check			all tests, in private instances; nothing is installed
#	make installcheck		all tests, against an installed and running server
#					that has snowflake in shared_preload_libraries
#
# This is the core's; the folders of the others have their own, which it calls:
# make -C convert install installs that extension alone.
#
# make -f .../Makefile builds in another directory than the source's.

here := $(dir $(lastword $(MAKEFILE_LIST)))

# The version is that of the control file; test/generator/versions.pl checks that all
# other places agree.
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(here)snowflake.control)

# The other extensions, and the library that calls a registry, which is a part of snowflake
EXTENSIONS = registry convert keys
FOLDERS = $(EXTENSIONS) registry_client

MODULE_big = snowflake
SOURCES := $(patsubst $(here)%,%,$(wildcard $(here)src/*.c $(here)src/*/*.c $(here)shared/*.c))
OBJS = $(SOURCES:.c=.o)
OBJECT_FOLDERS = $(sort $(addprefix $(CURDIR)/,$(dir $(OBJS))))
PG_CPPFLAGS = -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' -I$(here)src -I$(here) -I$(libpq_srcdir)
# Other libraries see what is declared PGDLLEXPORT.
PG_CFLAGS = -fvisibility=hidden
SHLIB_LINK = $(libpq)

EXTENSION = snowflake
# The script is put together of files by topic, in the order of their names.  It has its
# whole name, because one that was made in the source folder may be old.
DATA_built = $(CURDIR)/snowflake--$(EXTVERSION).sql
DATA = $(filter-out $(notdir $(DATA_built)),$(notdir $(wildcard $(here)snowflake--*.sql)))
HEADERS = src/snowflake_api.h
PGFILEDESC = "snowflake - unique, time-ordered 64-bit IDs"

REGRESS = scheme ids planner vectors nextval copy usage settings uuid text trusted stat sequences identity sequence_tables sequence_resets extension_drops mark
ISOLATION = nextval identity sequences mark registry extension_drops
ISOLATION_OPTS = --inputdir=$(srcdir)/test
TAP_TESTS = 1
PROVE_FLAGS += -I $(abspath $(here)test/perl)
TEST_FOLDERS = generator clock keys pages scripts
# The file names are unique, because a test's directory and log have only that.
PROVE_TESTS = $(TEST_FOLDERS:%=test/%/*.pl) $(EXTENSIONS:%=%/test/*.pl) test/worlds/torture/test_*.pl

EXTRA_CLEAN = tmp_check output_iso

PG_CONFIG ?= pg_config

# PGXS has a rule for check that says it cannot be done.
ifeq ($(MAKECMDGOALS),check)
.PHONY: check
check:
	PG_CONFIG='$(PG_CONFIG)' $(here)script/check --no-install
else
# PGXS takes no blanks and no quotes in a path, and make expands a dollar sign.
ifneq ($(words $(CURDIR))$(strip $(foreach sign,' " $$,$(findstring $(sign),$(CURDIR)))),1)
$(error "$(CURDIR)" has a blank, a quote or a dollar sign in its path: please build in a copy elsewhere)
endif
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(here)src/*.h $(here)src/*/*.h $(here)shared/*.h) \
	$(here)snowflake.control | $(OBJECT_FOLDERS)
$(OBJECT_FOLDERS):
	mkdir -p $@

$(DATA_built): $(sort $(wildcard $(here)src/sql/*.sql))
	cat $^ >$@

# pg_buildext gives VPATH on the command line, which the others would inherit.
define extension
all: all-$(1)
install: install-$(1)
installcheck: installcheck-$(1)
uninstall: uninstall-$(1)
clean: clean-$(1)
.PHONY: $(foreach goal,all install installcheck uninstall clean,$(goal)-$(1))
$(foreach goal,all install installcheck uninstall clean,$(goal)-$(1)):
	mkdir -p $(1)
	$$(MAKE) -C $(1) -f $(abspath $(here)$(1)/Makefile) VPATH=$(abspath $(here)$(1)) $$(@:%-$(1)=%)
endef
$(foreach folder,$(FOLDERS),$(eval $(call extension,$(folder))))

# All tests have the same database, so they run one after the other also with -j.
installcheck-convert: | installcheck-registry
installcheck-keys: | installcheck-convert
endif
