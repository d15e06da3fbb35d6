/*-------------------------------------------------------------------------
 *
 * obstacles.c
 *	  What prevents a conversion.
 *
 * ALTER TABLE would fail as well, but at the first obstacle, with less advice,
 * and perhaps after rewriting a large table.  So what may be expected is listed
 * at once, and a dry run finds it, too.  What is rare, and what the server refuses
 * with a clear error before it rewrites the table, is left to it.
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

/* When a list of obstacles is asked. */
enum
{
	DIRECT = 1,					/* unless the tables are in use */
	CITUS = 2,
	BLOCKS = 4					/* with one of these, the rows and the
								 * generator cannot be accessed, or code of
								 * others could be called */
};

static const struct
{
	SnowflakeQuery query;
	int			flags;
}			lists[] = {
	{sql_column_obstacles, 0},
	{sql_recreated_obstacles, 0},
	{sql_type_obstacles, 0},
	{sql_access_obstacles, BLOCKS},
	{sql_direct_obstacles, DIRECT},
	{sql_citus_obstacles, CITUS | BLOCKS},
};

/*
 * Find the obstacles that the catalogs show.  Returns whether the rows and the
 * generator can be accessed all the same.
 */
bool
snowflake_convert_find_obstacles(const SnowflakeConversion *conversion, List **obstacles)
{
	bool		accessible = true;
	int			never = conversion->online ? DIRECT : 0;

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
