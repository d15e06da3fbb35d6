/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings: variables, defaults, definitions, and checks.
 *
 * A server whose worker ID is not the one that its administrator set could
 * generate the same IDs as another server.  So an invalid value prevents the
 * server from starting, like that of a built-in setting; normally, an invalid
 * custom setting is replaced by the default, with only a warning.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/settings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "base/conninfo.h"
#include "generator/settings.h"
#include "shared/compat.h"

#define MAX_SERVER_NAME_LENGTH	255

/* The values; define_variables() has the defaults. */
char	   *snowflake_scheme;
int			snowflake_datacenter_id;
int			snowflake_worker_id;
char	   *snowflake_registry;
char	   *snowflake_server_name;
int			snowflake_grant_timeout;
int			snowflake_max_range_sequences;
int			snowflake_sequence_start;
int			snowflake_max_lead;
int			snowflake_clock_backward;
int			snowflake_max_clock_backward;
int			snowflake_max_clock_forward;
int			snowflake_reserve_time;
bool		snowflake_synchronous_mark;
int			snowflake_default_sequence_kind;

/*
 * Is there a registry?  That, and whether this is a server that generates IDs,
 * is determined when the library is preloaded.
 */
bool		snowflake_has_registry = false;
static bool generates_ids = false;

bool	   *snowflake_shared_synchronous_mark = NULL;

/* The scheme that this server generates IDs with. */
static SnowflakeScheme server_scheme;

/*
 * The scheme that was last checked by this process.  It differs from the
 * server's if it was set for the next start, by this session or before a
 * reload of the configuration.
 */
static SnowflakeScheme checked_scheme;

static const struct config_enum_entry sequence_start_options[] = {
	{"random", SNOWFLAKE_START_RANDOM, false},
	{"zero", SNOWFLAKE_START_ZERO, false},
	{NULL, 0, false}
};

static const struct config_enum_entry clock_backward_options[] = {
	{"continue", SNOWFLAKE_CLOCK_CONTINUE, false},
	{"wait", SNOWFLAKE_CLOCK_WAIT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry default_sequence_kind_options[] = {
	{"local", SNOWFLAKE_DEFAULT_LOCAL, false},
	{"snowflake", SNOWFLAKE_DEFAULT_SNOWFLAKE, false},
	{"range", SNOWFLAKE_DEFAULT_RANGE, false},
	{"distributed", SNOWFLAKE_DEFAULT_DISTRIBUTED, false},
	{NULL, 0, false}
};

/*
 * Is this the text of a scheme that IDs can be generated with?
 */
static bool
check_scheme(char **newval, void **extra, GucSource source)
{
	SnowflakeScheme scheme;
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	if (snowflake_scheme_read(*newval, &scheme, error) &&
		snowflake_scheme_generates(&scheme, error))
	{
		checked_scheme = scheme;
		return true;
	}

	GUC_check_errdetail("%s", error);
	GUC_check_errhint("A valid scheme is, for example, \"%s\".",
					  SNOWFLAKE_DEFAULT_SCHEME);
	return false;
}

/*
 * Does an ID fit its field?
 *
 * At server start, this is the field of the scheme, which was read before.
 * Later, an ID can only be set for the next start, perhaps with another
 * scheme, so it is refused if it fits neither the server's scheme nor the one
 * checked last; it is checked again at the start.  When the configuration is
 * reloaded, the postmaster accepts it, because its scheme may come later in
 * the file.
 */
static bool
check_id(const char *name, int id, SnowflakeField field,
		 const char *field_name)
{
	bool		starting = process_shared_preload_libraries_in_progress;
	int			width = Max(server_scheme.width[field],
							checked_scheme.width[field]);
	int64		max = (INT64CONST(1) << width) - 1;

	if (id <= max || (!starting && !IsUnderPostmaster))
		return true;

	GUC_check_errmsg("%d is outside the valid range for parameter \"%s\" (0 .. " INT64_FORMAT ")",
					 id, name, max);
	if (width > 0)
		GUC_check_errdetail("The %s field of \"snowflake.scheme\" has %d bits.",
							field_name, width);
	else
		GUC_check_errdetail("\"snowflake.scheme\" has no %s field.", field_name);
	if (!starting)
		GUC_check_errhint("To change the scheme as well, set \"snowflake.scheme\" first, in the same session.");
	return false;
}

static bool
check_datacenter_id(int *newval, void **extra, GucSource source)
{
	return check_id("snowflake.datacenter_id", *newval,
					SNOWFLAKE_DATACENTER, "datacenter");
}

static bool
check_worker_id(int *newval, void **extra, GucSource source)
{
	return check_id("snowflake.worker_id", *newval,
					SNOWFLAKE_WORKER, "worker");
}

/*
 * Is this a connection string?
 *
 * Whether there is a registry is determined at server start.  A reload can
 * change the connection string, but neither empty it nor set the first one;
 * the value remains.  With an empty one, libpq would connect to its default
 * server, and a server that only seems to have a registry would still generate
 * IDs with the worker ID of its configuration.  ALTER SYSTEM stores any value
 * for the next start.
 */
static bool
check_registry(char **newval, void **extra, GucSource source)
{
	const char *error = snowflake_check_conninfo(*newval);
	bool		empty = (*newval)[0] == '\0';

	if (error != NULL)
	{
		GUC_check_errdetail("%s", error);
		GUC_check_errhint("A valid connection string is, for example, \"host=registry.example dbname=ids user=snowflake\".");
		return false;
	}
	if (generates_ids && empty == snowflake_has_registry)
	{
		snowflake_guc_free(*newval);
		*newval = snowflake_guc_strdup(snowflake_registry);
		if (!IsUnderPostmaster && empty)
			ereport(LOG,
					(errmsg("\"snowflake.registry\" cannot be emptied without restarting the server"),
					 errdetail("The server continues to use the registry that it has.")));
		else if (!IsUnderPostmaster)
			ereport(LOG,
					(errmsg("\"snowflake.registry\" cannot be set without restarting the server"),
					 errdetail("The server continues to generate IDs with its own worker ID.")));
		return *newval != NULL;
	}
	return true;
}

/*
 * Is this a name with characters that are in any encoding?
 */
static bool
check_server_name(char **newval, void **extra, GucSource source)
{
	const char *c = *newval;

	while (*c >= ' ' && *c < 127)
		c++;
	if (*c == '\0' && c - *newval <= MAX_SERVER_NAME_LENGTH)
		return true;
	GUC_check_errdetail("A server name can have up to %d printable ASCII characters.",
						MAX_SERVER_NAME_LENGTH);
	return false;
}

/*
 * Keep a copy of snowflake.synchronous_mark in shared memory.  A backend does
 * not reload the configuration during a query, but turning this off must end
 * the waits that have begun.  The postmaster keeps the copy: it reloads first,
 * and begins shared memory with its own value after a crash, too.
 */
static void
assign_synchronous_mark(bool newval, void *extra)
{
	if (!IsUnderPostmaster && snowflake_shared_synchronous_mark != NULL)
		*snowflake_shared_synchronous_mark = newval;
}

/*
 * All settings, in the order in which values of the configuration are checked: the
 * scheme first, because datacenter and worker ID are checked against it.
 */
static const char *const names[] = {
	"snowflake.scheme",
	"snowflake.datacenter_id",
	"snowflake.worker_id",
	"snowflake.registry",
	"snowflake.server_name",
	"snowflake.grant_timeout",
	"snowflake.max_range_sequences",
	"snowflake.sequence_start",
	"snowflake.max_lead",
	"snowflake.clock_backward",
	"snowflake.max_clock_backward",
	"snowflake.max_clock_forward",
	"snowflake.reserve_time",
	"snowflake.synchronous_mark",
	"snowflake.default_sequence_kind"
};

static void
define_variables(void)
{
	DefineCustomStringVariable("snowflake.scheme",
							   "Sets the epoch, tick, and bit fields of snowflake IDs.",
							   "The value is a name (see snowflake_schemes()) or a comma-separated list of key=value items: "
							   "epoch, tick, and the widths in bits of the fields timestamp, datacenter, worker, and sequence, from high to low.",
							   &snowflake_scheme, SNOWFLAKE_DEFAULT_SCHEME,
							   PGC_POSTMASTER, 0, check_scheme, NULL, NULL);
	DefineCustomIntVariable("snowflake.datacenter_id",
							"Sets the datacenter ID in the snowflake IDs of this server.",
							"Together with the worker ID, it must be unique among all servers whose IDs can be stored in the same table.",
							&snowflake_datacenter_id, 0, 0, INT_MAX,
							PGC_POSTMASTER, 0, check_datacenter_id, NULL, NULL);
	DefineCustomIntVariable("snowflake.worker_id",
							"Sets the worker ID in the snowflake IDs of this server.",
							"Together with the datacenter ID, it must be unique among all servers whose IDs can be stored in the same table. "
							"-1 means that it was not set, and IDs are generated with 0. With \"snowflake.registry\", it is the preferred worker ID, which is granted if it is free.",
							&snowflake_worker_id, -1, -1, INT_MAX,
							PGC_POSTMASTER, 0, check_worker_id, NULL, NULL);
	DefineCustomStringVariable("snowflake.registry",
							   "Sets the connection string of the database that grants worker IDs to this server.",
							   "If empty, there is no registry, and \"snowflake.worker_id\" is the worker ID. "
							   "Whether there is a registry is determined at server start; a reload can change its connection string.",
							   &snowflake_registry, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, check_registry, NULL, NULL);
	DefineCustomStringVariable("snowflake.server_name",
							   "Sets the name of this server in the registry.",
							   "If empty, it is \"cluster_name\" or, if that is empty too, the host name.",
							   &snowflake_server_name, "",
							   PGC_SIGHUP, 0, check_server_name, NULL, NULL);
	DefineCustomIntVariable("snowflake.grant_timeout",
							"Sets the maximum time that a call waits for a grant from the registry.",
							"A call waits if this server has no worker ID or its grant has ended. After this time, the call fails with the last error of the registry.",
							&snowflake_grant_timeout, 10000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_range_sequences",
							"Sets the maximum number of range sequences that this server can use at the same time.",
							"Each takes 2 kB of shared memory if \"snowflake.registry\" is set.",
							&snowflake_max_range_sequences, 1000, 1, 1000000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("snowflake.sequence_start",
							 "Sets where the sequence starts in a tick.",
							 "\"random\" starts anywhere in the lower half, so that id % N is evenly distributed; \"zero\" starts at 0. "
							 "In a tick that follows an exhausted one, the sequence always starts at 0.",
							 &snowflake_sequence_start, SNOWFLAKE_START_RANDOM,
							 sequence_start_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_lead",
							"Sets how far bursts can move the timestamps of IDs ahead of the clock.",
							"When the sequence of a tick is exhausted, IDs are borrowed from following ticks up to this limit, without waiting.",
							&snowflake_max_lead, 0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomEnumVariable("snowflake.clock_backward",
							 "Sets what to do when the clock is behind the last ID.",
							 "\"continue\" continues from the last ID at the pace of real time; \"wait\" waits for the clock, or fails if it is behind by more than \"snowflake.max_clock_backward\".",
							 &snowflake_clock_backward, SNOWFLAKE_CLOCK_CONTINUE,
							 clock_backward_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_clock_backward",
							"Sets how far the clock can be behind the last ID before calls fail instead of waiting.",
							"This applies only if \"snowflake.clock_backward\" is \"wait\".",
							&snowflake_max_clock_backward, 5000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_clock_forward",
							"Sets how far snowflake IDs follow a clock that jumps ahead.",
							"If the clock jumps further, IDs continue at the pace of real time. "
							"After server start, calls fail if the clock and the mark are further apart.",
							&snowflake_max_clock_forward, 365 * SECS_PER_DAY, 60, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.reserve_time",
							"Sets how far ahead IDs are durably reserved.",
							"A busy server flushes WAL about twice in this time, an idle server never. "
							"After a crash, the first ID can wait for the unused part of this time.",
							&snowflake_reserve_time, 1000, 10, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("snowflake.synchronous_mark",
							 "Generates IDs only below a mark that the synchronous standbys have flushed.",
							 "This applies if \"synchronous_standby_names\" is set, regardless of \"synchronous_commit\". "
							 "If off, IDs that are in no committed row can be generated again after a failover.",
							 &snowflake_synchronous_mark, true,
							 PGC_SIGHUP, 0, NULL, assign_synchronous_mark, NULL);
	DefineCustomEnumVariable("snowflake.default_sequence_kind",
							 "Sets the kind of new sequences, also those of new tables.",
							 "With \"snowflake\", new bigint sequences are snowflake sequences, and smaller ones local, with a warning. "
							 "With \"range\", all are range sequences. "
							 "With \"distributed\", bigint ones are snowflake sequences, and smaller ones range sequences.",
							 &snowflake_default_sequence_kind, SNOWFLAKE_DEFAULT_LOCAL,
							 default_sequence_kind_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}

/*
 * Define the settings, and stop the start of the server if one of them has an
 * invalid value.
 *
 * The definition replaces an invalid value with the default, with only a
 * warning, so the original value is set again, now with an error.
 */
static void
define_settings(void)
{
	char	   *written[lengthof(names)];

	for (size_t i = 0; i < lengthof(names); i++)
	{
		const char *value = GetConfigOption(names[i], true, false);

		written[i] = value != NULL ? pstrdup(value) : NULL;
	}
	define_variables();
	for (size_t i = 0; i < lengthof(names); i++)
	{
		if (written[i] != NULL)
			(void) set_config_option(names[i], written[i],
									 PGC_POSTMASTER, PGC_S_FILE,
									 GUC_ACTION_SET, false, FATAL, false);
	}
	MarkGUCPrefixReserved("snowflake");
}

/*
 * Define and read the settings when the library is preloaded, and return the
 * server's scheme, which never changes while the server runs.
 *
 * Whether there is a registry does not change either: after a crash of a
 * backend, shared memory is initialized with the configuration of the last
 * reload, and the worker that calls the registry starts only with the server.
 */
const SnowflakeScheme *
snowflake_define_settings(void)
{
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	define_settings();
	if (!snowflake_scheme_read(snowflake_scheme, &server_scheme, error))
		elog(FATAL, "invalid snowflake scheme \"%s\"", snowflake_scheme);
	snowflake_has_registry = snowflake_registry[0] != '\0';
	generates_ids = true;
	if (snowflake_has_registry && server_scheme.width[SNOWFLAKE_WORKER] == 0)
		ereport(FATAL,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("\"snowflake.registry\" requires a scheme with a worker field"),
				 errdetail("\"snowflake.scheme\" is \"%s\".", snowflake_scheme),
				 errhint("Choose such a scheme, or reset \"snowflake.registry\".")));
	return &server_scheme;
}
