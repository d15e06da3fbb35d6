/*-------------------------------------------------------------------------
 *
 * swap.c
 *	  Swaps the columns of a table.
 *
 * The statements are found and executed while the table is locked.  All that
 * depends on the old columns is dropped by a statement of its own, never by
 * CASCADE.  Then check_drop() looks whether something else depends on them, which
 * would be dropped with them without notice.  Only then they are dropped; the new
 * ones get their names, and what hung on the old ones is created again from its
 * definition, which has these names already.
 *
 * A partitioned table is swapped with all its partitions.  What they have from
 * their parent is dropped and created with that; what they have alone, or have
 * changed, is treated as that of any table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/swap.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/catalog_rows.h"
#include "convert/online/locks.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
#include "convert/online/swap.h"
#include "convert/online/transaction.h"
#include "shared/table_owner.h"

/* The obstacles that would have a swap fail, or lose something. */
static const SnowflakeQuery lists[] = {
	sql_online_obstacles, sql_recreated_obstacles, sql_type_obstacles
};

/* A swap, once its statements are known. */
typedef struct Swap
{
	Oid			relid;
	List	   *locked;			/* relations */
	List	   *scope;			/* tables, with their partitions */
	char	   *names;			/* of relations whose privileges are kept; by
								 * these, views that are created again are
								 * found */
	char	   *privileges;
	List	   *before_drop;
	List	   *after_drop;
} Swap;

/*
 * The statements of a swap: until the old columns can be dropped, and from
 * then on.
 */
void
snowflake_online_swap_statements(const SnowflakeConversion *conversion, Oid relid,
								 List **before_drop, List **after_drop)
{
	ListCell   *cell;

	*before_drop = NIL;
	*after_drop = NIL;
	foreach(cell, snowflake_convert_ask_of(conversion, relid, sql_swap_statements))
	{
		const SnowflakeRow *row = lfirst(cell);
		char	   *command = snowflake_convert_text(row, "command");

		if (command == NULL)
			elog(ERROR, "no statement in stage %s of a swap",
				 snowflake_convert_text(row, "stage"));
		if (snowflake_convert_flag(row, "after_drop"))
			*after_drop = lappend(*after_drop, command);
		else
			*before_drop = lappend(*before_drop, command);
	}
}

/*
 * Fail, because the columns cannot be swapped any more.
 */
static void
report_change(Oid relid, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("table %s was changed during the conversion",
					snowflake_relation_name(relid)),
			 errdetail("%s.", detail),
			 errhint("Its columns were not swapped. Call snowflake_convert_online() again.")));
}

/*
 * Fail if there are rows, which say why.
 */
static void
check_none(Oid relid, List *rows, const char *message)
{
	if (rows != NIL)
		report_change(relid, psprintf("%s %s", message, snowflake_convert_first(rows)));
}

/*
 * Is all there that takes the place of the old columns, and are there no obstacles
 * that were not there when the call began?
 */
static void
check_swap(const SnowflakeConversion *conversion, Oid relid, const List *obstacles)
{
	check_none(relid, snowflake_convert_ask_of(conversion, relid, sql_missing),
			   "There is no counterpart for");
	if (obstacles != NIL)
		report_change(relid, ((SnowflakeFinding *) linitial(obstacles))->line);
}

/*
 * The privileges on views, and columns of relations, by which those
 * before a swap and after it are compared.
 */
static char *
find_privileges(char *names)
{
	return snowflake_convert_first(snowflake_convert_ask_server(list_make1(names),
																sql_swap_privileges));
}

/*
 * Fail if privileges are not as they were.  What the swap has found is locked,
 * but for default privileges, of which there may be others since then; and an
 * event trigger may grant some.
 */
static void
check_privileges(const Swap *swap)
{
	if (strcmp(find_privileges(swap->names), swap->privileges) != 0)
		report_change(swap->relid, "Its views or columns would have other privileges, by new default privileges or an event trigger");
}

/*
 * Before the old columns are dropped: does anything still depend on them?
 */
static void
check_drop(const Swap *swap)
{
	check_none(swap->relid,
			   snowflake_convert_ask_with(snowflake_convert_oids_parameter(swap->scope),
										  sql_dependents_of_columns),
			   "The old column would be dropped with");
}

/*
 * SnowflakeOnlineWork: look whether objects were changed after their counterparts were
 * created.  To see this, some are created, so the transaction is rolled back.
 */
static void
check_objects(SnowflakeOnline *online, void *argument)
{
	const Swap *swap = argument;
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *scope = snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_scope);
	List	   *obstacles = NIL;

	snowflake_online_find_changed_objects(conversion, snowflake_online_list_steps(conversion),
										  scope, &obstacles);
	check_swap(conversion, swap->relid, obstacles);
	online->swap.checked = swap->relid;
	online->swap.definitions = MemoryContextStrdup(online->context,
												   snowflake_online_definitions(scope));
	online->transaction.only_looked = true;
	online->transaction.prepared = true;
}

/*
 * Have they changed since then?
 */
static void
require_objects(SnowflakeOnline *online, const List *scope)
{
	if (strcmp(snowflake_online_definitions(scope), online->swap.definitions) == 0)
		return;
	online->swap.checked = InvalidOid;
	snowflake_convert_give_way("an index, constraint, or statistics object was changed");
}

/*
 * SnowflakeOnlineWork: find the statements of a swap.  What they depend on cannot
 * change any more, except for comments, of which the swap has those from now.
 */
static void
find_statements(SnowflakeOnline *online, void *argument)
{
	Swap	   *swap = argument;
	SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *relids;
	List	   *names;
	List	   *obstacles = NIL;

	snowflake_convert_find_targets(conversion);
	relids = snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_locks);
	if (list_difference_oid(relids, swap->locked) != NIL)
		snowflake_convert_give_way("a view, sequence, or foreign key was added");
	relids = snowflake_online_with_partitions(swap->locked);
	if (!snowflake_online_lock_functions(relids))
		snowflake_convert_give_way("a function was changed");
	names = snowflake_convert_ask_server(snowflake_convert_oids_parameter(relids), sql_swap_names);
	swap->names = snowflake_convert_first(names);
	swap->privileges = find_privileges(swap->names);
	swap->scope = snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_scope);
	require_objects(online, swap->scope);
	for (size_t i = 0; i < lengthof(lists); i++)
		(void) snowflake_convert_ask_obstacles(conversion, lists[i], &obstacles);
	check_swap(conversion, swap->relid, obstacles);
	snowflake_online_swap_statements(conversion, swap->relid, &swap->before_drop,
									 &swap->after_drop);
}

/*
 * SnowflakeOnlineWork: execute them.
 */
static void
swap_columns(SnowflakeOnline *online, void *argument)
{
	const Swap *swap = argument;

	snowflake_convert_run_statements(swap->before_drop);
	check_drop(swap);
	snowflake_convert_run_statements(swap->after_drop);
	check_privileges(swap);
	if (list_member_oid(swap->scope, online->relid))
		snowflake_convert_run_statements(snowflake_online_session_statements(online));
}

/*
 * Swap the columns of a table.  To find the statements takes longer than to
 * execute them, so it is done with a lock that blocks no client, but everybody
 * who would change the table or its views.
 */
bool
snowflake_online_swap_table(SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	Swap		swap = {.relid = step->relid};
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *all;
	char	   *snapshot = snowflake_online_find_old_snapshot(online, step->relid);

	if (snapshot != NULL)
	{
		snowflake_online_report_wait(online, psprintf("swap the columns of table %s", step->table),
									 snapshot);
		return false;
	}
	swap.locked = snowflake_convert_ask_oids(conversion, step->relid, sql_swap_locks);

	/*
	 * Indexes can be changed although their table is locked, unless
	 * exclusively.
	 */
	all = list_concat(snowflake_convert_ask_oids(conversion, step->relid, sql_swap_indexes),
					  swap.locked);
	if (online->swap.checked != step->relid)
	{
		(void) snowflake_online_with_locks(online, all, ShareUpdateExclusiveLock,
										   check_objects, &swap);
		return false;
	}
	return snowflake_online_with_locks(online, all, ShareUpdateExclusiveLock,
									   find_statements, &swap) &&
		snowflake_online_with_locks(online, swap.locked, AccessExclusiveLock,
									swap_columns, &swap);
}

/*
 * The statements of a swap, as a transaction.
 */
char *
snowflake_online_swap_script(const SnowflakeOnline *online, Oid relid)
{
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	StringInfoData script;
	List	   *before_drop;
	List	   *after_drop;
	ListCell   *cell;

	initStringInfo(&script);
	appendStringInfoString(&script, "BEGIN;\n");
	foreach(cell, snowflake_convert_ask_oids(conversion, relid, sql_swap_locks))
	{
		/* LOCK TABLE does not lock a sequence. */
		if (get_rel_relkind(lfirst_oid(cell)) != RELKIND_SEQUENCE)
			appendStringInfo(&script, "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n",
							 snowflake_relation_name(lfirst_oid(cell)));
	}
	snowflake_online_swap_statements(conversion, relid, &before_drop, &after_drop);
	if (list_member_oid(snowflake_convert_ask_oids(conversion, relid, sql_swap_scope),
						online->relid))
		after_drop = list_concat(after_drop, snowflake_online_session_statements(online));
	foreach(cell, list_concat(before_drop, after_drop))
		appendStringInfo(&script, "%s;\n", (char *) lfirst(cell));
	appendStringInfoString(&script, "COMMIT");
	return script.data;
}
