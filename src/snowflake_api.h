/*-------------------------------------------------------------------------
 *
 * snowflake_api.h
 *	  Snowflake IDs for the C code of other extensions.
 *
 * It is found through a rendezvous variable, so that an extension can be
 * built, installed, and loaded without snowflake, and before or after it:
 *
 *		#include "extension/snowflake/snowflake_api.h"
 *
 *		int64		id = snowflake_get_api(1)->generate();
 *
 * This file requires nothing else from snowflake.  See docs/develop/api.md.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/snowflake_api.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_API_H
#define SNOWFLAKE_API_H

#include "datatype/timestamp.h"
#include "fmgr.h"

/*
 * The version of this interface.  A later one adds members at the end of
 * SnowflakeApi and SnowflakeApiScheme, and changes none: code that needs
 * version n can use version n and all later ones.
 */
#define SNOWFLAKE_API_VERSION	1

/* The rendezvous variable that points to the server's SnowflakeApi. */
#define SNOWFLAKE_API_VARIABLE	"snowflake_api"

/* The bits of a field in an ID; width 0: the scheme does not have it. */
typedef struct SnowflakeApiField
{
	int			width;
	int			shift;			/* bits below it */
} SnowflakeApiField;

/* The scheme of the IDs of this server. */
typedef struct SnowflakeApiScheme
{
	const char *text;			/* as in snowflake.scheme */
	TimestampTz epoch;			/* start of tick 0 */
	int64		tick_us;		/* length of a tick, in microseconds */
	SnowflakeApiField timestamp;
	SnowflakeApiField datacenter;
	SnowflakeApiField worker;
	SnowflakeApiField sequence;
} SnowflakeApiScheme;

/* The parts of an ID; 0 if the scheme does not have the field. */
typedef struct SnowflakeApiParts
{
	TimestampTz timestamp;		/* start of its tick */
	int64		tick;			/* value of the timestamp field */
	int			datacenter_id;
	int			worker_id;
	int64		sequence;
} SnowflakeApiParts;

/*
 * All functions can raise an error.  Those that generate IDs can also wait, with
 * interrupts enabled, and write and flush WAL: call them without holding
 * locks, and not in a critical section.
 */
typedef struct SnowflakeApi
{
	int			version;		/* SNOWFLAKE_API_VERSION of the server */

	/* A new ID, like snowflake_nextval(). */
	int64		(*generate) (void);

	/*
	 * New IDs: as many as wanted, which must be at least 1, or fewer, but at
	 * least 1.  Returns how many.  The first is *first, and each following
	 * one is *step more than the one before.
	 */
	int			(*generate_block) (int wanted, int64 *first, int64 *step);

	/* The server's scheme, which never changes while it runs. */
	const SnowflakeApiScheme *(*get_scheme) (void);

	/* The parts of an ID in the server's scheme. */
	void		(*parse) (int64 id, SnowflakeApiParts *parts);
} SnowflakeApi;

/*
 * Get the interface, of at least this version, or fail.  version is the one
 * that introduced the newest member that the caller uses.
 *
 * Call it when IDs are needed, not in _PG_init(): snowflake may be loaded
 * later.
 */
static inline const SnowflakeApi *
snowflake_get_api(int version)
{
	static const SnowflakeApi *api = NULL;

	if (unlikely(api == NULL))
		api = (const SnowflakeApi *) *find_rendezvous_variable(SNOWFLAKE_API_VARIABLE);
	if (unlikely(api == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("snowflake is not loaded"),
				 errhint("Install the extension snowflake, append snowflake to \"shared_preload_libraries\" in postgresql.conf, and restart the server.")));
	if (unlikely(api->version < version))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the loaded version of snowflake is too old"),
				 errdetail("Its C interface has version %d, but version %d is required.",
						   api->version, version),
				 errhint("Upgrade the extension snowflake and restart the server.")));
	return api;
}

#endif							/* SNOWFLAKE_API_H */
