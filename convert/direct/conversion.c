/*-------------------------------------------------------------------------
 *
 * conversion.c
 *	  The steps of a conversion, of one key or of many.
 *
 * In order: find the keys and their generators; lock the views that are
 * dropped, and the tables; list what prevents the conversion, if anything
 * does; give notices; execute the statements; check the result.  If no column
 * changes its type, the tables are locked exclusively for the last two only.
 *
 * All of it runs as the owner of the tables: convert.c says why.
 *
 * The columns may be converted in part, or by hand, before: what has to be done
 * is read from the catalogs each time.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/conversion.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/watch.h"
#include "convert/checks/expressions.h"
#include "convert/checks/new_ids.h"
#include "convert/checks/obstacles.h"
#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/direct/sequences.h"
#include "shared/table_owner.h"

/* How often a plan is made again because a table was changed. */
#define PLANS	3

/*
 * Fail if the snapshot may be older than some rows and foreign keys.
 */
void
snowflake_convert_refuse_old_snapshot(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert a table in a transaction with isolation level %s",
						XactIsoLevel == XACT_SERIALIZABLE ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("The snapshot of the transaction might not contain all rows and foreign keys."),
				 errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED, or set default_transaction_isolation to 'read committed'.")));
}

/*
 * Find out which keys do not have their generator as the default, or do not
 * have it in a partition or child, and which have sequences of another kind.
 */
static void
find_defaults(SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, conversion->keys)
		((SnowflakeKey *) lfirst(cell))->set_default = false;
	snowflake_convert_find_key_sequences(conversion);
	foreach(cell, snowflake_convert_ask(conversion, sql_key_columns))
	{
		const SnowflakeRow *row = lfirst(cell);
		Oid			relid = snowflake_convert_oid(row, "relid");
		AttrNumber	attnum = (AttrNumber) snowflake_convert_number(row, "attnum");
		SnowflakeKey *key = list_nth(conversion->keys, snowflake_convert_number(row, "key") - 1);

		if (key->keeps_sequences)
			continue;
		if (get_atttype(relid, attnum) != key->type ||
			snowflake_convert_default_function(relid, attnum, key->type) != key->generator)
			key->set_default = true;
	}
}

/*
 * Find what changes, and the relations that are locked before the tables: clients lock a
 * view before the tables that it is made of, so a deadlock would end one of us otherwise.
 */
static void
find_targets(SnowflakeConversion *conversion)
{
	snowflake_convert_find_targets(conversion);
	if (!conversion->online)
		conversion->views = snowflake_convert_ask_oids(conversion, InvalidOid, sql_views_to_lock);
}

static void
lock_views(const SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, conversion->views)
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
}

/*
 * Lock the tables that ALTER TABLE will lock.  Tables that only reference them
 * get a lock that allows reads and writes, but no new foreign key, which would
 * need a stronger one.  New tables may have appeared while waiting for a lock,
 * so repeat until there are none.  Tables of other owners are obstacles.  Returns
 * false if they are to be locked exclusively before.
 */
static bool
lock_tables(SnowflakeConversion *conversion, Oid owner)
{
	List	   *locked[2] = {NIL, NIL}; /* not altered, altered */
	bool		found;

	do
	{
		ListCell   *cell;

		found = false;
		find_targets(conversion);
		snowflake_convert_find_key_sequences(conversion);
		conversion->rewrites = snowflake_convert_ask(conversion, sql_narrow_targets) != NIL;
		if (conversion->rewrites && conversion->lock != AccessExclusiveLock)
			return false;
		lock_views(conversion);
		foreach(cell, snowflake_convert_ask(conversion, sql_tables_to_lock))
		{
			const SnowflakeRow *row = lfirst(cell);
			Oid			relid = snowflake_convert_oid(row, "relid");
			int			altered = snowflake_convert_flag(row, "altered");

			if (list_member_oid(locked[altered], relid))
				continue;
			found = true;
			locked[altered] = lappend_oid(locked[altered], relid);
			if (!altered)
				LockRelationOid(relid, RowExclusiveLock);
			else if (snowflake_table_owner(relid) == owner)
				LockRelationOid(relid, conversion->lock);
		}
	} while (found);
	snowflake_convert_watch(list_concat(list_concat_copy(locked[0], locked[1]),
										conversion->sequences));
	return true;
}

/*
 * Lock the functions that are altered, because altering one that was altered or
 * dropped meanwhile would fail after all the work was done.  Their rows, too:
 * ALTER FUNCTION and CREATE OR REPLACE FUNCTION may take no other lock, and the
 * statements would set again what they have changed.  After a wait, there may be
 * others, and their bodies may be new.
 */
static void
lock_functions(SnowflakeConversion *conversion)
{
	List	   *locked = NIL;
	bool		found;

	do
	{
		ListCell   *cell;

		found = false;
		foreach(cell, snowflake_convert_ask_oids(conversion, InvalidOid, sql_functions_to_lock))
		{
			Oid			function = lfirst_oid(cell);

			if (list_member_oid(locked, function))
				continue;
			found = true;
			locked = lappend_oid(locked, function);
			LockDatabaseObject(ProcedureRelationId, function, 0,
							   ShareUpdateExclusiveLock);
			(void) snowflake_convert_ask_server(snowflake_convert_oid_parameter(function),
												sql_lock_function);
		}
	} while (found);
	AcceptInvalidationMessages();
}

/*
 * Find the columns to convert, and lock their tables unless it is a dry run,
 * in which the tables of the keys are locked already.  An online conversion does
 * this in each transaction, and finds the names of sequences where it needs them.
 * Returns false if a column changes its type, and the locks are weaker than that
 * needs.
 */
bool
snowflake_convert_prepare(SnowflakeConversion *conversion, Oid owner)
{
	ListCell   *cell;

	/* Any key might have to get a default. */
	foreach(cell, conversion->keys)
		((SnowflakeKey *) lfirst(cell))->set_default = true;
	if (conversion->dry_run)
		find_targets(conversion);
	else if (!lock_tables(conversion, owner))
		return false;
	find_defaults(conversion);
	if (!conversion->dry_run)
		conversion->altered = snowflake_convert_ask_oids(conversion, InvalidOid,
														 sql_altered_tables);
	if (!conversion->online)
		snowflake_convert_find_sequence_names(conversion);
	return true;
}

/* A check whose error is none if there are obstacles. */
typedef struct NewIdCheck
{
	const SnowflakeConversion *conversion;
	List	   *findings;
} NewIdCheck;

static bool
check_new_ids(void *argument)
{
	NewIdCheck *check = argument;

	snowflake_convert_check_new_ids(check->conversion, &check->findings);
	return true;
}

/*
 * List what prevents a conversion, and what is to be said of it beside.  Returns whether
 * the rows can be accessed.
 */
bool
snowflake_convert_list_obstacles(const SnowflakeConversion *conversion, List **findings)
{
	bool		accessible = snowflake_convert_find_obstacles(conversion, findings);
	NewIdCheck	check = {.conversion = conversion};

	if (conversion->sequences != NIL)
		(void) snowflake_convert_ask_obstacles(conversion, sql_kind_obstacles, findings);
	(void) snowflake_convert_check_expressions(conversion, InvalidOid, NULL, 0, findings);
	if (!accessible)
		return false;
	check.findings = list_copy(*findings);
	if (*findings == NIL)
		(void) check_new_ids(&check);
	else if (snowflake_convert_try(check_new_ids, &check) != NULL)
		return true;
	*findings = check.findings;
	return true;
}

/*
 * Fail because the statements did not have the expected result: a schema was
 * renamed, or an event trigger interfered.
 */
static void
report_change(const char *column, const char *table)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("column \"%s\" of table %s was changed during the conversion",
					column, table),
			 errhint("Check for event triggers and for sessions that rename schemas.")));
}

static void
check_result(SnowflakeConversion *conversion)
{
	ListCell   *cell;

	snowflake_convert_find_targets(conversion);
	foreach(cell, snowflake_convert_ask(conversion, sql_narrow_targets))
	{
		const SnowflakeRow *row = lfirst(cell);

		report_change(snowflake_convert_text(row, "attname"),
					  snowflake_relation_name(snowflake_convert_oid(row, "relid")));
	}
	find_defaults(conversion);
	foreach(cell, conversion->keys)
	{
		const SnowflakeKey *key = lfirst(cell);

		if (key->set_default)
			report_change(key->column, key->table);
	}
}

/*
 * What is to be said of a conversion that the statements do not show.
 */
List *
snowflake_convert_list_notices(const SnowflakeConversion *conversion)
{
	List	   *findings = NIL;

	if (!OidIsValid(conversion->schema))
		snowflake_convert_find_kept_default(linitial(conversion->keys), &findings);
	findings = list_concat(findings, snowflake_convert_ask_notices(conversion, sql_notices));
	findings = list_concat(findings, snowflake_convert_ask_notices(conversion, sql_kind_notices));
	snowflake_convert_find_doubles(conversion, &findings);
	return findings;
}

/*
 * Find the statements, and lock what they alter beside tables, unless it is a dry run.
 */
List *
snowflake_convert_find_statements(SnowflakeConversion *conversion)
{
	List	   *statements;

	if (!conversion->dry_run)
		lock_functions(conversion);
	statements = snowflake_convert_ask_texts(conversion, sql_statements);
	if (conversion->sequences == NIL)
		return statements;
	return list_concat(statements, snowflake_convert_ask_texts(conversion, sql_kind_statements));
}

/*
 * Execute them.
 */
void
snowflake_convert_execute(SnowflakeConversion *conversion, const List *statements)
{
	snowflake_convert_run_statements(statements);
	check_result(conversion);
}

/*
 * Lock the tables that are altered exclusively, those of the keys first, as clients
 * lock partitions after their table.  Returns false if a definition has changed.
 */
static bool
lock_altered(void *argument)
{
	const SnowflakeConversion *conversion = argument;
	ListCell   *cell;

	lock_views(conversion);
	foreach(cell, conversion->keys)
	{
		Oid			relid = ((SnowflakeKey *) lfirst(cell))->relid;

		if (list_member_oid(conversion->altered, relid))
			LockRelationOid(relid, AccessExclusiveLock);
	}
	foreach(cell, conversion->altered)
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
	/* So that nobody can rename them, nor give them to somebody else. */
	foreach(cell, conversion->sequences)
		LockRelationOid(lfirst_oid(cell), AccessShareLock);
	return !snowflake_convert_has_changed();
}

/*
 * Plan a conversion that changes no type, with locks that let clients read and write;
 * then lock the tables exclusively, for no longer than the statements take.  Returns
 * false if that is not possible.
 *
 * Who holds a lock and waits for a stronger one has everybody fail who has read or
 * written the table and does the same.  So those of the plan are released before, and
 * with them what its queries have locked.
 */
static bool
plan_with_weak_locks(SnowflakeConversion *conversion, SnowflakeWork plan, void *argument)
{
	conversion->lock = ShareUpdateExclusiveLock;
	snowflake_convert_watch(NIL);
	snowflake_convert_forget(conversion);
	(void) snowflake_convert_do(plan, argument, NULL);
	return !conversion->rewrites && snowflake_convert_do(lock_altered, conversion, NULL);
}

/*
 * Find out what to do, and then have the tables locked exclusively, unless it is a
 * dry run.  The work returns false.
 */
void
snowflake_convert_lock_and_plan(SnowflakeConversion *conversion,
								SnowflakeWork plan, void *argument)
{
	conversion->lock = AccessShareLock;
	if (!conversion->dry_run)
	{
		for (int i = 0; i < PLANS && !conversion->rewrites; i++)
		{
			if (plan_with_weak_locks(conversion, plan, argument))
				return;
		}
		conversion->lock = AccessExclusiveLock;
		lock_views(conversion);
	}
	snowflake_convert_forget(conversion);
	(void) plan(argument);
}
