# What the Makefiles of convert/, keys/ and registry_client/ share; they set EXTENSION and
# REGRESS first, or MODULE_big and the control file of the extension that it belongs to.
#
# Each library is compiled from the sources of its own folder and of shared/.

here := $(dir $(firstword $(MAKEFILE_LIST)))
top := $(here)../

control ?= $(here)$(EXTENSION).control
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(control))

MODULE_big ?= $(EXTENSION)
SOURCES := $(patsubst $(here)%,%,$(wildcard $(here)*.c $(here)*/*.c)) \
	$(patsubst $(top)%,%,$(wildcard $(top)shared/*.c))
OBJS = $(SOURCES:.c=.o)
OBJECT_FOLDERS = $(sort $(addprefix $(CURDIR)/,$(dir $(OBJS))))
PG_CPPFLAGS += -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' -I$(top)

# What it has of shared/ is its own, whichever libraries are loaded, of whichever version.
PG_CFLAGS = -fvisibility=hidden

DATA = $(notdir $(wildcard $(here)$(EXTENSION)--*.sql))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

vpath %.c $(top)

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(here)*.h $(here)*/*.h $(top)shared/*.h $(top)src/snowflake_api.h) \
	$(control) | $(OBJECT_FOLDERS)
$(OBJECT_FOLDERS):
	mkdir -p $@
