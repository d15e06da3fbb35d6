/*-------------------------------------------------------------------------
 *
 * watch.h
 *	  Whether the definitions of tables change.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/watch.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_WATCH_H
#define SNOWFLAKE_CONVERT_WATCH_H

#include "nodes/pg_list.h"

extern void snowflake_convert_watch(const List *relids);
extern bool snowflake_convert_has_changed(void);

#endif							/* SNOWFLAKE_CONVERT_WATCH_H */
