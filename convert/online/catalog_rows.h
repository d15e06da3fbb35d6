/*-------------------------------------------------------------------------
 *
 * catalog_rows.h
 *	  Rows of the catalogs that others may change.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/catalog_rows.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_CATALOG_ROWS_H
#define SNOWFLAKE_ONLINE_CATALOG_ROWS_H

#include "nodes/pg_list.h"

extern char *snowflake_online_find_changer(const List *relids);
extern bool snowflake_online_lock_rows(const List *relids);
extern bool snowflake_online_lock_functions(const List *relids);

#endif							/* SNOWFLAKE_ONLINE_CATALOG_ROWS_H */
