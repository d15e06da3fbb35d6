/*-------------------------------------------------------------------------
 *
 * swap.c
 *	  Swaps the columns of a table.
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
#include "convert/online/swap_statements.h"
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
	List	   *trees;			/* tables without their partitions */
	char	   *names;			/* of relations whose privileges are kept */
	char	   *privileges;
	List	   *before_drop;
	List	   *after_drop;
} Swap;

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
	snowflake_online_check_swap(conversion, swap->relid, obstacles);
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
	List	   *obstacles = NIL;

	snowflake_convert_find_targets(conversion);
	relids = snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_locks);
	if (list_difference_oid(relids, swap->locked) != NIL)
		snowflake_convert_give_way("a view, sequence, or foreign key was added");
	relids = snowflake_online_with_partitions(swap->locked);
	if (!snowflake_online_lock_functions(relids))
		snowflake_convert_give_way("a function was changed");
	swap->names = snowflake_online_swap_names(relids);
	swap->privileges = snowflake_online_swap_privileges(swap->names);
	require_objects(online, snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_scope));
	for (size_t i = 0; i < lengthof(lists); i++)
		(void) snowflake_convert_ask_obstacles(conversion, lists[i], &obstacles);
	snowflake_online_check_swap(conversion, swap->relid, obstacles);
	swap->trees = snowflake_convert_ask_oids(conversion, swap->relid, sql_swap_trees);
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
	snowflake_online_check_drop(swap->relid, swap->trees);
	snowflake_convert_run_statements(swap->after_drop);
	snowflake_online_check_privileges(swap->relid, swap->names, swap->privileges);
	if (list_member_oid(swap->trees, online->relid))
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
	if (list_member_oid(snowflake_convert_ask_oids(conversion, relid, sql_swap_trees),
						online->relid))
		after_drop = list_concat(after_drop, snowflake_online_session_statements(online));
	foreach(cell, list_concat(before_drop, after_drop))
		appendStringInfo(&script, "%s;\n", (char *) lfirst(cell));
	appendStringInfoString(&script, "COMMIT");
	return script.data;
}
