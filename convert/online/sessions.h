/*-------------------------------------------------------------------------
 *
 * sessions.h
 *	  Sessions that a swap or the default waits for.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/sessions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_SESSIONS_H
#define SNOWFLAKE_ONLINE_SESSIONS_H

#include "convert/online/transaction.h"

extern List *snowflake_online_session_statements(const SnowflakeOnline *online);
extern char *snowflake_online_find_old_snapshot(SnowflakeOnline *online, Oid relid);
extern char *snowflake_online_drop_sessions(const SnowflakeOnline *online);
extern char *snowflake_online_find_old_sessions(const SnowflakeOnline *online);

#endif							/* SNOWFLAKE_ONLINE_SESSIONS_H */
