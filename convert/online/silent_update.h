/*-------------------------------------------------------------------------
 *
 * silent_update.h
 *	  An UPDATE that fires no triggers.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/silent_update.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_SILENT_UPDATE_H
#define SNOWFLAKE_ONLINE_SILENT_UPDATE_H

extern uint64 snowflake_online_update_silently(const char *statement);

#endif							/* SNOWFLAKE_ONLINE_SILENT_UPDATE_H */
