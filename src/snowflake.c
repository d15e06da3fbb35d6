/*-------------------------------------------------------------------------
 *
 * snowflake.c
 *	  Start of the module: settings and hooks.
 *
 * A server whose worker ID is not what its administrator wrote may repeat
 * another server's IDs.  So a value that cannot be taken stops the start, as
 * one of the server's own settings does; a custom setting's would by itself
 * be replaced by the default, with a warning only.
 *
 * src/snowflake.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/guc.h"

#include "compat.h"
#include "generator.h"

SNOWFLAKE_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static char *scheme_text = NULL;
static int	datacenter_id = 0;
static int	worker_id = 0;

static const struct config_enum_entry sequence_start_options[] = {
	{"random", SNOWFLAKE_START_RANDOM, false},
	{"zero", SNOWFLAKE_START_ZERO, false},
	{NULL, 0, false}
};

static const char *const setting_names[] = {
	"snowflake.scheme",
	"snowflake.datacenter_id",
	"snowflake.worker_id",
	"snowflake.sequence_start",
	"snowflake.max_lead",
	"snowflake.max_clock_backward",
	"snowflake.reserve_time"
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/*
 * Is this the text of a scheme that IDs can be made by?
 */
static bool
check_scheme(char **newval, void **extra, GucSource source)
{
	SnowflakeScheme scheme;
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	if (snowflake_scheme_read(*newval, &scheme, error) &&
		snowflake_scheme_makes(&scheme, error))
		return true;

	GUC_check_errdetail("%s", error);
	GUC_check_errhint("A scheme is written like this: %s",
					  SNOWFLAKE_DEFAULT_SCHEME);
	return false;
}

static void
define_settings(void)
{
	DefineCustomStringVariable("snowflake.scheme",
							   "Epoch, tick and bit fields of snowflake IDs.",
							   "A name (see snowflake_schemes()) or key=value items, separated by commas: "
							   "epoch, tick, and the widths of the fields timestamp, datacenter, worker and sequence from high to low.",
							   &scheme_text,
							   SNOWFLAKE_DEFAULT_SCHEME,
							   PGC_POSTMASTER,
							   0,
							   check_scheme,
							   NULL,
							   NULL);

	/* The ranges depend on the scheme; check_ids() knows them. */
	DefineCustomIntVariable("snowflake.datacenter_id",
							"Datacenter ID in the snowflake IDs made by this server.",
							"With the worker ID it must be unique among all servers whose IDs meet.",
							&datacenter_id,
							0,
							INT_MIN,
							INT_MAX,
							PGC_POSTMASTER,
							0,
							NULL,
							NULL,
							NULL);

	DefineCustomIntVariable("snowflake.worker_id",
							"Worker ID in the snowflake IDs made by this server.",
							"With the datacenter ID it must be unique among all servers whose IDs meet.",
							&worker_id,
							0,
							INT_MIN,
							INT_MAX,
							PGC_POSTMASTER,
							0,
							NULL,
							NULL,
							NULL);

	DefineCustomEnumVariable("snowflake.sequence_start",
							 "Where the sequence of a tick begins.",
							 "random: anywhere in the lower half, so that id % N spreads evenly; zero: at 0. "
							 "A tick that follows a used up one begins at 0 in any case.",
							 &snowflake_sequence_start,
							 SNOWFLAKE_START_RANDOM,
							 sequence_start_options,
							 PGC_SIGHUP,
							 0,
							 NULL,
							 NULL,
							 NULL);

	DefineCustomIntVariable("snowflake.max_lead",
							"How far the timestamp of an ID may be ahead of the clock.",
							"Up to this, bursts and steps of the clock are bridged without waiting.",
							&snowflake_max_lead,
							0,
							0,
							INT_MAX,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);

	DefineCustomIntVariable("snowflake.max_clock_backward",
							"How long to wait for a clock that is behind the last ID.",
							"A clock that is further behind is an error.",
							&snowflake_max_clock_backward,
							5000,
							0,
							INT_MAX,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);

	DefineCustomIntVariable("snowflake.reserve_time",
							"How far ahead IDs are reserved durably.",
							"A busy server flushes WAL for it at most twice in this time (more often only while IDs run ahead of the clock), an idle one never. "
							"After a crash the first ID may wait for what was left of it.",
							&snowflake_reserve_time,
							1000,
							10,
							60000,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL,
							NULL,
							NULL);

	MarkGUCPrefixReserved("snowflake");
}

/*
 * Stop the start of the server if an ID does not fit its field.
 */
static void
check_id(const char *name, int id, const SnowflakeScheme *scheme,
		 SnowflakeField field, const char *field_name)
{
	int64		max = snowflake_field_max(scheme, field);

	if (id < 0 || id > max)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%d is outside the valid range for parameter \"%s\" (0 .. " INT64_FORMAT ")",
						id, name, max),
				 errdetail("The %s field of snowflake.scheme \"%s\" has %d bits.",
						   field_name, scheme_text, scheme->width[field])));
}

/*
 * Define the settings, stop the start of the server if one of them has a
 * value that cannot be taken, and hand the scheme and IDs to the generator.
 */
static void
configure(void)
{
	char	   *written[lengthof(setting_names)];
	SnowflakeScheme scheme;
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	/* What the administrator wrote, before the definitions replace it ... */
	for (size_t i = 0; i < lengthof(setting_names); i++)
	{
		const char *value = GetConfigOption(setting_names[i], true, false);

		written[i] = value != NULL ? pstrdup(value) : NULL;
	}

	define_settings();

	/* ... is tried again, as an error now. */
	for (size_t i = 0; i < lengthof(setting_names); i++)
	{
		if (written[i] != NULL)
			(void) set_config_option(setting_names[i], written[i],
									 PGC_POSTMASTER, PGC_S_FILE,
									 GUC_ACTION_SET, false, FATAL, false);
	}

	if (!snowflake_scheme_read(scheme_text, &scheme, error))
		elog(FATAL, "invalid snowflake scheme \"%s\"", scheme_text);
	check_id("snowflake.datacenter_id", datacenter_id,
			 &scheme, SNOWFLAKE_DATACENTER, "datacenter");
	check_id("snowflake.worker_id", worker_id,
			 &scheme, SNOWFLAKE_WORKER, "worker");
	snowflake_generator_configure(&scheme, datacenter_id, worker_id);
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	snowflake_generator_request_shmem();
}

static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	snowflake_generator_attach_shmem();
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	/*
	 * Loaded by a session, the module has no shared memory and so no
	 * generator; what needs none works all the same.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	configure();

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}
