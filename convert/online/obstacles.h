/*-------------------------------------------------------------------------
 *
 * obstacles.h
 *	  What prevents a conversion of tables in use.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/obstacles.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_OBSTACLES_H
#define SNOWFLAKE_ONLINE_OBSTACLES_H

#include "convert/online/transaction.h"

extern List *snowflake_online_list_obstacles(const SnowflakeConversion *conversion,
											 const SnowflakeOnlineOptions *options,
											 bool *known);
extern List *snowflake_online_list_changed_objects(const SnowflakeConversion *conversion,
												   const List *relids);
extern List *snowflake_online_list_object_obstacles(const SnowflakeConversion *conversion);
extern void snowflake_online_give_notices(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_ONLINE_OBSTACLES_H */
