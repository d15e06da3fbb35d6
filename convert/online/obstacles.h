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

extern bool snowflake_online_check_obstacles(SnowflakeOnline *online, const List *steps,
											 List **findings, char **changer);

#endif							/* SNOWFLAKE_ONLINE_OBSTACLES_H */
