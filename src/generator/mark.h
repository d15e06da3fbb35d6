/*-------------------------------------------------------------------------
 *
 * mark.h
 *	  The durable mark: every ID handed out so far is below it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/mark.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_MARK_H
#define SNOWFLAKE_MARK_H

#include "access/xlogdefs.h"

extern uint64 snowflake_mark_read(void);
extern XLogRecPtr snowflake_mark_raise(uint64 mark);
extern XLogRecPtr snowflake_mark_set(uint64 mark);

#endif							/* SNOWFLAKE_MARK_H */
