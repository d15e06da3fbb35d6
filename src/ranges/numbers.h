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

/* No floor is asked for. */
#define NO_FLOOR	(-1)

/* What a call for a number comes to. */
typedef enum RangeNumber
{
	RANGE_NUMBER_TAKEN,
	RANGE_NUMBER_UNKNOWN,		/* the registry does not know the name */
	RANGE_NUMBER_OTHER			/* the slot belongs to another sequence */
} RangeNumber;

extern void snowflake_check_ranges_enabled(void);
snowflake_noreturn extern void snowflake_fail_long_name(void);
extern void snowflake_attach_range(RangeHandle *handle, const char *name,
								   const char *source, int64 floor);
extern bool snowflake_is_slot_attached(const char *name, Oid relid);
extern void snowflake_note_attached(const RangeHandle *handle);
extern RangeNumber snowflake_next_number(const RangeHandle *handle, int64 *number);
extern bool snowflake_settle_floor(const RangeHandle *handle, int64 floor,
								   bool wait_for_others);
extern void snowflake_check_asked(Oid relid);
extern bool snowflake_find_granted(const RangeHandle *handle, int64 *granted);

#endif							/* SNOWFLAKE_NUMBERS_H */
