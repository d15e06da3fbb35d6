/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  The rows of a query's result.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/rows.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_ROWS_H
#define SNOWFLAKE_CONVERT_ROWS_H

#include "nodes/pg_list.h"

extern List *snowflake_convert_rows(void);
extern char *snowflake_convert_text(char **row, const char *column);
extern Oid	snowflake_convert_oid(char **row, const char *column);
extern int64 snowflake_convert_number(char **row, const char *column);
extern bool snowflake_convert_flag(char **row, const char *column);
extern char *snowflake_convert_first(const List *rows);
extern List *snowflake_convert_texts(const List *rows);
extern List *snowflake_convert_oids(const List *rows);

#endif							/* SNOWFLAKE_CONVERT_ROWS_H */
