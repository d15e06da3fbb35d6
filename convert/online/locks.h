/*-------------------------------------------------------------------------
 *
 * locks.h
 *	  Locks that nobody has to wait behind.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/locks.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_LOCKS_H
#define SNOWFLAKE_ONLINE_LOCKS_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "convert/online/transaction.h"

/* What to do with locked tables. */
typedef void (*SnowflakeOnlineWork) (SnowflakeOnline *online, void *argument);

extern bool snowflake_online_try(SnowflakeOnline *online, SnowflakeOnlineWork work,
								 void *argument);
extern char *snowflake_online_find_holder(Oid relid, LOCKMODE mode);
extern void snowflake_online_lock(SnowflakeOnline *online, List *relids, LOCKMODE mode);
extern bool snowflake_online_with_locks(SnowflakeOnline *online, List *relids,
										LOCKMODE mode, SnowflakeOnlineWork work,
										void *argument);
extern List *snowflake_online_with_partitions(const List *relids);

#endif							/* SNOWFLAKE_ONLINE_LOCKS_H */
