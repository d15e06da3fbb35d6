/*-------------------------------------------------------------------------
 *
 * slots.c
 *	  Ranges of numbers, in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/slots.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ranges/slots.h"

/*
 * Does this server have ranges, because it has a registry?
 */
bool
snowflake_ranges_enabled(void)
{
	return false;
}

/*
 * Set the latch of the worker that calls the registry, or NULL when it ends.
 */
void
snowflake_set_range_worker_latch(Latch *latch)
{
}

/*
 * Collect what the registry is to be asked now, at most so many sequences.
 */
int
snowflake_collect_range_requests(RangeRequest *requests, int max)
{
	return 0;
}

/*
 * Take an answer, unless the slot belongs to another sequence by now.
 */
void
snowflake_install_range(const RangeRequest *request, const RangeAnswer *answer)
{
}

/*
 * Note that a call failed, or that its answer did not arrive.
 */
void
snowflake_fail_range_requests(const RangeRequest *requests, int n, const char *why)
{
}

/*
 * Give up all numbers that are not above a floor.
 */
void
snowflake_note_range_floor(const char *database, const char *name, int64 floor)
{
}

/*
 * Does this server hold any numbers?
 */
bool
snowflake_holds_ranges(void)
{
	return false;
}

/*
 * Have the next calls say what was granted: the registry may be another one.
 */
void
snowflake_announce_ranges(void)
{
}

/*
 * Give up all numbers.
 */
void
snowflake_drop_all_ranges(void)
{
}
