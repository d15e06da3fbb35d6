/*-------------------------------------------------------------------------
 *
 * durable.h
 *	  Durable numbers of the server: the mark, and the receipt.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/durable.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DURABLE_H
#define SNOWFLAKE_DURABLE_H

#include "access/xlogdefs.h"

#include "shared/compat.h"

extern uint64 snowflake_mark_read(void);
extern XLogRecPtr snowflake_mark_raise(uint64 mark);
extern XLogRecPtr snowflake_mark_set(uint64 mark);
extern PGDLLEXPORT int64 snowflake_receipt_read(void);
extern PGDLLEXPORT void snowflake_receipt_set(int64 receipt);

#endif							/* SNOWFLAKE_DURABLE_H */
