/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  Ranges of numbers, in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/slots.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SLOTS_H
#define SNOWFLAKE_SLOTS_H

#include "datatype/timestamp.h"
#include "storage/latch.h"

/* Room for a name: schema.sequence, each part quoted where that is needed. */
#define SNOWFLAKE_RANGE_NAME_SIZE	264

/* Room for each text of an answer; longer ones are cut. */
#define SNOWFLAKE_RANGE_TEXT_SIZE	512

/* The most numbers that a range has, and the greatest INCREMENT. */
#define SNOWFLAKE_MAX_RANGE			(INT64CONST(1) << 31)
#define SNOWFLAKE_MAX_RANGE_STEP	1000000

/* What the worker asks the registry for one sequence. */
typedef struct RangeRequest
{
	int			slot;
	uint32		version;
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	int64		last;			/* MAXVALUE of the sequence */
	int64		count;			/* how many numbers, or 0 */
	int64		least;			/* fewer than these are of no use */
	int64		floor;			/* this server gave up what is not above it, or
								 * -1 */
	int64		granted;		/* the greatest number ever granted, or 0 */
} RangeRequest;

/* What the registry answers, checked for what can be checked alone. */
typedef struct RangeAnswer
{
	int64		first;			/* 0: no range */
	int64		last;
	int64		floor;			/* -1: there is none */
	int64		grant_time_ms;
	char		waits_for[SNOWFLAKE_RANGE_TEXT_SIZE];	/* servers, or empty */
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE]; /* or empty */
} RangeAnswer;

extern bool snowflake_ranges_enabled(void);

/* For the worker that calls the registry. */
extern void snowflake_set_range_worker_latch(Latch *latch);
extern int	snowflake_collect_range_requests(RangeRequest *requests, int max);
extern void snowflake_install_range(const RangeRequest *request,
									const RangeAnswer *answer);
extern void snowflake_fail_range_requests(const RangeRequest *requests, int n,
										  const char *why);
extern void snowflake_note_range_floor(const char *database, const char *name,
									   int64 floor);
extern bool snowflake_holds_ranges(void);
extern void snowflake_announce_ranges(void);
extern void snowflake_drop_all_ranges(void);

#endif							/* SNOWFLAKE_SLOTS_H */
