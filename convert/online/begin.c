/*-------------------------------------------------------------------------
 *
 * begin.c
 *	  How a conversion of tables in use begins: one at a time in a database, and
 *	  nothing is changed before the obstacles are known.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/begin.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "convert/catalog/findings.h"
#include "convert/columns/columns.h"
#include "convert/direct/conversion.h"
#include "convert/direct/sequences.h"
#include "convert/online/begin.h"
#include "convert/online/locks.h"
#include "convert/online/obstacles.h"
#include "convert/online/steps.h"
#include "convert/online/transaction.h"
#include "shared/table_owner.h"

/*
 * What the lock has in place of 1 or 2, which those of SQL functions have: no role can
 * take it but by a conversion.
 */
#define LOCK_KEYS	3

/* Before it is looked for obstacles again. */
#define LOOK_MS	200

/* What the functions have for lock_wait. */
#define DEFAULT_LOCK_MS	100

/*
 * The kind of sequences that an argument names.
 */
void
snowflake_online_get_kind(FunctionCallInfo fcinfo, int argument, SnowflakeOnline *online)
{
	snowflake_convert_get_kind(fcinfo, argument, online->generator, &online->blank);
	if (snowflake_convert_keeps_columns(&online->blank))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("kind \"%s\" changes no column",
						snowflake_convert_kind_name(online->blank.kind)),
				 errhint("Use snowflake_convert() or snowflake_convert_schema(), which take a moment only.")));
}

/*
 * The lock of conversions.  It is an advisory one, because only these outlive a
 * transaction that is rolled back.
 */
static LOCKTAG
conversions_lock(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, LOCK_KEYS);
	return tag;
}

/*
 * Take the lock, which the session has until it is released.
 */
void
snowflake_online_lock_conversions(bool until_commit)
{
	LOCKTAG		tag = conversions_lock();
	List	   *keys;
	char	   *converter;

	if (LockAcquire(&tag, ExclusiveLock, !until_commit, true) != LOCKACQUIRE_NOT_AVAIL)
		return;
	SPI_connect();
	keys = list_make1(psprintf("%d", LOCK_KEYS));
	converter = snowflake_convert_first(snowflake_convert_ask_server(keys, sql_converter));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("another session converts a table of this database"),
			 converter != NULL ? errdetail_internal("%s", converter) : 0,
			 errhint("snowflake_convert_plan() shows how far it is.")));
}

void
snowflake_online_unlock_conversions(void)
{
	LOCKTAG		tag = conversions_lock();

	(void) LockRelease(&tag, ExclusiveLock, true);
}

/*
 * Say what was found beside obstacles, unless an earlier call has said it, which has
 * begun the conversion.
 */
void
snowflake_online_give_notices(SnowflakeConversion *conversion, const List *steps, List *findings)
{
	if (snowflake_online_has_begun(conversion, steps))
		return;
	snowflake_convert_find_holders(conversion);
	findings = list_concat(findings, snowflake_convert_ask_notices(conversion, sql_online_notices));
	findings = list_concat(findings, snowflake_convert_list_notices(conversion));
	snowflake_convert_give_notices(conversion, findings);
}

/* What was seen in the first transaction. */
typedef struct Look
{
	bool		done;
	char	   *changer;		/* who has to end before */
} Look;

/*
 * SnowflakeOnlineWork: find the column and the obstacles, and try whether what is
 * to be created has a definition.
 */
static void
look(SnowflakeOnline *online, void *argument)
{
	Look	   *look = argument;
	SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *steps = snowflake_online_list_steps(conversion);
	List	   *findings = NIL;
	ListCell   *cell;

	online->transaction.only_looked = true;
	if (!snowflake_online_check_obstacles(online, steps, &findings, &look->changer))
	{
		if (look->changer != NULL)
			look->changer = MemoryContextStrdup(online->context, look->changer);
		return;
	}
	foreach(cell, steps)
	{
		SnowflakeOnlineStep *step = lfirst(cell);

		if (!step->done && step->statement == NULL &&
			step->kind != SNOWFLAKE_STEP_SWAP && step->kind != SNOWFLAKE_STEP_DEFAULT)
			(void) snowflake_online_step_statement(conversion, step);
	}
	online->column = MemoryContextStrdup(online->context,
										 ((SnowflakeKey *) linitial(conversion->keys))->column);
	snowflake_online_give_notices(conversion, steps, findings);
	look->done = true;
}

/*
 * The first transaction.
 */
void
snowflake_online_examine(SnowflakeOnline *online)
{
	Look		seen = {0};

	while (!seen.done)
	{
		if (snowflake_online_try(online, look, &seen) && !seen.done)
			snowflake_online_report_wait(online, "look for obstacles", seen.changer);
		if (!seen.done)
			snowflake_online_nap_about(LOOK_MS);
	}
	snowflake_online_end_wait(online);
}

/*
 * Begin a function, in the caller's transaction.
 */
void
snowflake_online_begin_function(FunctionCallInfo fcinfo, SnowflakeOnline *online)
{
	online->relid = PG_GETARG_OID(0);
	online->column = PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1));
	online->namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	online->context = CurrentMemoryContext;
	online->options.lock_ms = DEFAULT_LOCK_MS;
	snowflake_convert_refuse_old_snapshot();
	SPI_connect();
}
