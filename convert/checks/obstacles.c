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
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "convert/catalog/findings.h"
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

/* When a list of obstacles is asked. */
enum
{
	DIRECT = 1,					/* unless the tables are in use */
	ONLINE = 2,					/* if they are */
	DEFAULTS = 4,				/* if a default is set */
	CITUS = 8,
	BLOCKS = 16					/* with one of these, the rows and the
								 * generator cannot be accessed, or code of
								 * others could be called */
};

static const struct
{
	SnowflakeQuery query;
	int			flags;
}			lists[] = {
	{sql_column_obstacles, 0},
	{sql_object_obstacles, 0},
	{sql_call_obstacles, BLOCKS},
	{sql_dependent_obstacles, DIRECT},
	{sql_recreated_obstacles, DIRECT},
	{sql_lock_obstacles, DIRECT},
	{sql_rebuilt_obstacles, DIRECT},
	{sql_trigger_obstacles, DIRECT},
	{sql_online_row_obstacles, ONLINE},
	{sql_type_obstacles, 0},
	{sql_key_obstacles, DEFAULTS | BLOCKS},
	{sql_sequence_obstacles, DEFAULTS},
	{sql_table_obstacles, BLOCKS},
	{sql_begun_obstacles, DIRECT},
	{sql_citus_obstacles, CITUS | BLOCKS},
	{sql_online_citus_obstacles, ONLINE | CITUS},
};

/*
 * Find the obstacles that the catalogs show.  Returns whether the rows and the
 * generator can be accessed all the same.
 */
bool
snowflake_convert_find_obstacles(const SnowflakeConversion *conversion, List **obstacles)
{
	bool		accessible = true;
	int			never = conversion->online ? DIRECT : ONLINE;

	if (!sets_default(conversion))
		never |= DEFAULTS;
	if (!can_read("pg_dist_partition") || !can_read("pg_dist_local_group"))
		never |= CITUS;
	for (size_t i = 0; i < lengthof(lists); i++)
	{
		if ((lists[i].flags & never) == 0 &&
			snowflake_convert_ask_obstacles(conversion, lists[i].query, obstacles) &&
			(lists[i].flags & BLOCKS) != 0)
			accessible = false;
	}
	return accessible;
}
