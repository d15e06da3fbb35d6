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

/* An UPDATE of one table, and how many rows it has changed. */
typedef struct SnowflakeSilentUpdate
{
	const char *statement;
	int64		nrows;
} SnowflakeSilentUpdate;

extern bool snowflake_online_update_silently(void *argument);

#endif							/* SNOWFLAKE_ONLINE_SILENT_UPDATE_H */
