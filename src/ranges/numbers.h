/*-------------------------------------------------------------------------
 *
 * numbers.h
 *	  Numbers of range sequences.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/numbers.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NUMBERS_H
#define SNOWFLAKE_NUMBERS_H

#include "ranges/slots.h"
#include "shared/compat.h"

extern void snowflake_check_ranges_enabled(void);
snowflake_noreturn extern void snowflake_fail_long_name(void);
extern void snowflake_attach_range(RangeHandle *handle, const char *name);
extern bool snowflake_next_number(const RangeHandle *handle, int64 *number);
extern bool snowflake_settle_floor(const RangeHandle *handle, int64 floor);

#endif							/* SNOWFLAKE_NUMBERS_H */
