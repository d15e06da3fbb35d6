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

#include "access/transam.h"

#include "convert/catalog/findings.h"
#include "convert/direct/conversion.h"
#include "convert/online/obstacles.h"
#include "convert/online/rehearsal.h"
#include "convert/online/steps.h"

/*
 * Add foreign keys with SET DEFAULT whose triggers would be fired after those of
 * the new ones: see create_foreign_key().  The names have OIDs as text, so this
 * is known from what the next OID is, unless it gets one more digit before.
 */
static void
check_set_default(const SnowflakeConversion *conversion, List **obstacles)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_set_default))
	{
		const SnowflakeRow *row = lfirst(cell);

		if (strcmp(psprintf("RI_ConstraintTrigger_a_%u", GetNewObjectId()),
				   snowflake_convert_text(row, "last")) < 0)
			snowflake_convert_add_obstacle(obstacles, key->table,
										   snowflake_convert_text(row, "line"),
										   "Drop foreign keys with SET DEFAULT that would act too late, create them again as NOT VALID, and validate them.");
	}
}

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
 * The obstacles that objects in the catalogs are.
 */
List *
snowflake_online_list_object_obstacles(const SnowflakeConversion *conversion)
{
	List	   *obstacles = NIL;

	(void) snowflake_convert_ask_obstacles(conversion, sql_online_obstacles, &obstacles);
	(void) snowflake_convert_ask_obstacles(conversion, sql_trigger_obstacles, &obstacles);
	return obstacles;
}

/*
 * Objects of tables, or of all if there is no list, that were changed after their
 * counterparts were created, as obstacles.
 */
List *
snowflake_online_list_changed_objects(const SnowflakeConversion *conversion,
									  const List *relids)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *obstacles = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_online_changed_objects(conversion, relids))
		snowflake_convert_add_obstacle(&obstacles, key->table,
									   psprintf("%s was changed after its counterpart was created",
												(char *) lfirst(cell)),
									   "Drop the counterpart, which has the same name after \"snowflake_new_\"; the conversion creates it again.");
	return obstacles;
}

/*
 * Add pgAudit, if it has a version that fails within a procedure.
 */
static void
check_pgaudit(const SnowflakeConversion *conversion, List **findings)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	const char *version = snowflake_convert_first(snowflake_convert_ask_with(NIL, sql_pgaudit));

	if (version != NULL)
		snowflake_convert_add_obstacle(findings, key->table,
									   psprintf("pgAudit has version %s, which fails at statements within a procedure",
												version),
									   "Update pgAudit to 1.7.1, 16.1, 17.1 or later, or run the statements of snowflake_convert_plan() by hand.");
}

/*
 * List the obstacles of snowflake_convert() that apply here, and these.  Returns false if
 * they are not known now: see snowflake_online_rehearse_swaps().
 */
bool
snowflake_online_list_obstacles(const SnowflakeConversion *conversion,
								const SnowflakeOnlineOptions *options,
								List **findings)
{
	bool		accessible = snowflake_convert_list_obstacles(conversion, findings);
	bool		known;

	*findings = list_concat(*findings, snowflake_online_list_object_obstacles(conversion));
	*findings = list_concat(*findings, snowflake_online_list_changed_objects(conversion, NIL));
	(void) snowflake_convert_ask_obstacles(conversion, sql_function_obstacles, findings);
	if (!options->subscribers_ready)
		(void) snowflake_convert_ask_obstacles(conversion, sql_publication_obstacles, findings);
	if (snowflake_convert_ask_with(NIL, sql_has_citus) != NIL)
		(void) snowflake_convert_ask_obstacles(conversion, sql_online_citus_obstacles, findings);
	check_set_default(conversion, findings);
	known = snowflake_online_rehearse_swaps(conversion, findings);
	if (accessible)
		check_not_valid(conversion, findings);
	if (!options->by_hand)
		check_pgaudit(conversion, findings);
	return known;
}

/*
 * What an administrator needs to know before: also what the default will do.
 */
List *
snowflake_online_list_notices(const SnowflakeConversion *conversion)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *findings = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, sql_online_notices))
	{
		const SnowflakeRow *row = lfirst(cell);
		SnowflakeFinding *finding;

		finding = snowflake_convert_add_finding(&findings, SNOWFLAKE_WARNING, NULL, key->table,
												snowflake_convert_text(row, "title"),
												snowflake_convert_text(row, "hint"));
		finding->detail = snowflake_convert_text(row, "detail");
	}
	return list_concat(findings, snowflake_convert_list_notices(conversion));
}
