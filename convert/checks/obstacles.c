/*-------------------------------------------------------------------------
 *
 * obstacles.c
 *	  What prevents a conversion.
 *
 * ALTER TABLE would fail as well, but at the first obstacle, with less advice,
 * and perhaps after rewriting a large table.  So everything that can be known
 * before is listed at once, and a dry run finds what the conversion would.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/obstacles.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_namespace.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "convert/catalog/queries.h"
#include "convert/checks/obstacles.h"

/*
 * Can the current user read a catalog of Citus?
 */
static bool
can_read(const char *catalog)
{
	Oid			relid = get_relname_relid(catalog, PG_CATALOG_NAMESPACE);

	return OidIsValid(relid) &&
		pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

void
snowflake_convert_add_obstacle(List **obstacles, const char *object, const char *line,
							   const char *hint)
{
	SnowflakeObstacle *obstacle = palloc(sizeof(SnowflakeObstacle));

	obstacle->object = object;
	obstacle->line = line;
	obstacle->hint = hint;
	*obstacles = lappend(*obstacles, obstacle);
}

/*
 * Add the obstacles that a query of a list of them finds.
 */
void
snowflake_convert_ask_obstacles(const SnowflakeConversion *conversion, SnowflakeQuery query,
								List **obstacles)
{
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask(conversion, query))
	{
		char	  **row = lfirst(cell);

		snowflake_convert_add_obstacle(obstacles, row[1], row[0], row[2]);
	}
}

/*
 * Is there a key whose default must be set?
 */
static bool
sets_default(const SnowflakeConversion *conversion)
{
	ListCell   *cell;

	foreach(cell, conversion->keys)
	{
		if (((SnowflakeKey *) lfirst(cell))->set_default)
			return true;
	}
	return false;
}

/*
 * Find what has the row types of the tables, among others: anybody can create
 * that at any time.
 */
void
snowflake_convert_find_type_obstacles(const SnowflakeConversion *conversion,
									  List **obstacles)
{
	snowflake_convert_ask_obstacles(conversion, sql_type_obstacles, obstacles);
}

void
snowflake_convert_find_trigger_obstacles(const SnowflakeConversion *conversion,
										 List **obstacles)
{
	snowflake_convert_ask_obstacles(conversion, sql_trigger_obstacles, obstacles);
}

/*
 * Find the obstacles that the catalogs show.
 */
void
snowflake_convert_find_obstacles(const SnowflakeConversion *conversion,
								 List **obstacles)
{
	snowflake_convert_ask_obstacles(conversion, sql_column_obstacles, obstacles);
	snowflake_convert_ask_obstacles(conversion, sql_cast_obstacles, obstacles);
	snowflake_convert_ask_obstacles(conversion, sql_call_obstacles, obstacles);
	if (!conversion->online)
	{
		snowflake_convert_ask_obstacles(conversion, sql_dependent_obstacles, obstacles);
		snowflake_convert_ask_obstacles(conversion, sql_recreated_obstacles, obstacles);
		snowflake_convert_ask_obstacles(conversion, sql_row_obstacles, obstacles);
		snowflake_convert_ask_obstacles(conversion, sql_rebuilt_obstacles, obstacles);
		snowflake_convert_find_trigger_obstacles(conversion, obstacles);
	}
	else
		snowflake_convert_ask_obstacles(conversion, sql_online_row_obstacles, obstacles);
	snowflake_convert_find_type_obstacles(conversion, obstacles);
	if (sets_default(conversion))
	{
		snowflake_convert_ask_obstacles(conversion, sql_key_obstacles, obstacles);
		Assert(conversion->arrays[parameter_known_sequences] != (Datum) 0);
		snowflake_convert_ask_obstacles(conversion, sql_sequence_obstacles, obstacles);
	}
	snowflake_convert_ask_obstacles(conversion, sql_table_obstacles, obstacles);
	if (!conversion->online)
		snowflake_convert_ask_obstacles(conversion, sql_begun_obstacles, obstacles);
	if (can_read("pg_dist_partition") && can_read("pg_dist_local_group"))
		snowflake_convert_ask_obstacles(conversion, sql_citus_obstacles, obstacles);
}

/*
 * Fail if there are obstacles, and list all of them, each hint once.
 */
void
snowflake_convert_report_obstacles(const SnowflakeConversion *conversion,
								   const List *obstacles)
{
	SnowflakeKey *key = conversion->keys == NIL ? NULL : linitial(conversion->keys);
	StringInfoData lines;
	StringInfoData hints;
	ListCell   *cell;

	if (obstacles == NIL)
		return;
	initStringInfo(&lines);
	initStringInfo(&hints);
	foreach(cell, obstacles)
	{
		const SnowflakeObstacle *obstacle = lfirst(cell);

		appendStringInfo(&lines, "%s%s", lines.len > 0 ? "\n" : "",
						 obstacle->line);
		if (strstr(hints.data, obstacle->hint) == NULL)
			appendStringInfo(&hints, " %s", obstacle->hint);
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 OidIsValid(conversion->schema) ?
			 errmsg("cannot convert the tables of schema \"%s\"",
					get_namespace_name(conversion->schema)) :
			 key == NULL ? errmsg("cannot change the kind of these sequences") :
			 errmsg("cannot convert column \"%s\" of table %s", key->column,
					key->table),
			 errdetail_internal("%s", lines.data),
			 errhint("Nothing was changed.%s", hints.data)));
}
