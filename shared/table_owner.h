/*-------------------------------------------------------------------------
 *
 * table_owner.h
 *	  Access to tables of other owners.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/table_owner.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_TABLE_OWNER_H
#define SNOWFLAKE_TABLE_OWNER_H

#include "storage/lockdefs.h"

/* The state to switch back to. */
typedef struct SnowflakeCaller
{
	Oid			user;
	int			sec_context;
	int			nest_level;
} SnowflakeCaller;

extern char *snowflake_relation_name(Oid relid);
extern Oid	snowflake_table_owner(Oid relid);
extern Oid	snowflake_look_up_function(Oid namespace, const char *name, const Oid *types,
									   int nargs);
extern Oid	snowflake_find_function(Oid namespace, const char *name);
extern Oid	snowflake_lock_table(Oid relid, LOCKMODE mode);
extern void snowflake_use_safe_settings(void);
extern void snowflake_become_owner(Oid owner, SnowflakeCaller *caller);
extern void snowflake_become_caller(const SnowflakeCaller *caller);

#endif							/* SNOWFLAKE_TABLE_OWNER_H */
