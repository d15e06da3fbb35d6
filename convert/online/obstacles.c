/*-------------------------------------------------------------------------
 *
 * obstacles.c
 *	  What prevents a conversion of a table in use.
 *
 * A swap drops what depends on the old columns and creates it again.  What it
 * does not create again must not be there: so the queries look for everything
 * that depends on the columns, on views that depend on them, and on what else
 * is dropped, and exclude what is known to be carried over.  They are asked
 * before the first change, and again when the conversion continues.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/obstacles.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/catalog/findings.h"
#include "convert/direct/conversion.h"
#include "convert/online/catalog_rows.h"
#include "convert/online/locks.h"
#include "convert/online/obstacles.h"
#include "convert/online/rehearsal.h"
#include "convert/online/steps.h"

/*
 * Add CHECK constraints that are not valid, and that some row does not satisfy: the
 * backfill updates all rows.
 */
static void
check_not_valid(const SnowflakeConversion *conversion, List **obstacles)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_not_valid))
	{
		const SnowflakeRow *row = lfirst(cell);

		if (snowflake_convert_run(snowflake_convert_text(row, "query"), NIL) != NIL)
			snowflake_convert_add_obstacle(obstacles, key->table,
										   snowflake_convert_text(row, "line"),
										   "Correct such rows, and run ALTER TABLE ... VALIDATE CONSTRAINT.");
	}
}

/*
 * Has somebody changed what the swaps are about, in a transaction that is open?
 * Returns who.  To rehearse them would wait for it, and then fail.
 */
static char *
find_changer_of_swaps(const SnowflakeConversion *conversion, const List *steps)
{
	List	   *relids = NIL;
	ListCell   *cell;

	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if (step->kind == SNOWFLAKE_STEP_SWAP && !step->done)
			relids = list_concat_unique_oid(relids,
											snowflake_convert_ask_oids(conversion, step->relid,
																	   sql_swap_locks));
	}
	return snowflake_online_find_changer(snowflake_online_with_partitions(relids));
}

/*
 * Fail if there are obstacles: those of snowflake_convert() that apply here, and these.
 * Returns false if they are not known now: see snowflake_online_rehearse_swaps(); and who
 * has to end before, if somebody has.
 */
bool
snowflake_online_check_obstacles(SnowflakeOnline *online, const List *steps, List **findings,
								 char **changer)
{
	SnowflakeConversion *conversion = &online->transaction.conversion;
	bool		accessible;

	*changer = find_changer_of_swaps(conversion, steps);
	if (*changer != NULL)
		return false;
	snowflake_convert_find_sequence_names(conversion);
	accessible = snowflake_convert_list_obstacles(conversion, findings);
	(void) snowflake_convert_ask_obstacles(conversion, sql_online_obstacles, findings);
	(void) snowflake_convert_ask_obstacles(conversion, sql_function_obstacles, findings);
	if (!online->options.subscribers_ready)
		(void) snowflake_convert_ask_obstacles(conversion, sql_publication_obstacles, findings);
	snowflake_online_find_changed_objects(conversion, steps, NIL, findings);
	if (accessible)
		check_not_valid(conversion, findings);
	if (!snowflake_online_rehearse_swaps(conversion, steps, findings))
		return false;
	snowflake_convert_report_obstacles(conversion, *findings);
	return true;
}
