/*-------------------------------------------------------------------------
 *
 * rollback.h
 *	  Ranges that are noted in a file which a rollback takes back.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/rollback.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ROLLBACK_H
#define SNOWFLAKE_ROLLBACK_H

#include "ranges/slots.h"

extern void snowflake_drop_on_rollback(const RangeHandle *handle);
extern void snowflake_watch_rollbacks(void);

#endif							/* SNOWFLAKE_ROLLBACK_H */
