/*-------------------------------------------------------------------------
 *
 * range_needs.h
 *	  What the registry is asked for each sequence, and what its answers come to.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_needs.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_NEEDS_H
#define SNOWFLAKE_RANGE_NEEDS_H

#include "ranges/needs.h"

/* The slot of a name that had one. */
#define NO_SLOT		(-1)

/* What the worker asks the registry for one sequence. */
typedef struct RangeRequest
{
	int			slot;			/* or NO_SLOT */
	uint32		version;
	int64		asked_at;		/* by the steady clock */
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	int64		last;			/* MAXVALUE of the sequence */
	int64		count;			/* how many numbers, or 0 */
	int64		least;			/* fewer than these are of no use */
	int64		floor;			/* this server gave up what is not above it,
								 * or -1 */
	char		source[NAMEDATALEN];	/* the database that the sequence was
										 * copied with, or empty */
} RangeRequest;

/* What the registry answers, checked for what can be checked alone. */
typedef struct RangeAnswer
{
	int64		first;			/* 0: no range */
	int64		last;
	int64		floor;			/* -1: there is none */
	int64		next;			/* what is granted next; -1: not known */
	int64		grant_time_ms;
	char		waits_for[SNOWFLAKE_RANGE_TEXT_SIZE];	/* servers, or empty */
	RangeProblem problem_kind;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE]; /* or empty */
	bool		is_logged;		/* because it is another one than before */
} RangeAnswer;

/* A sequence that this server was granted numbers of, as the registry knows it. */
typedef struct RangeName
{
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	int64		last;			/* MAXVALUE */
	int64		least;			/* as in the last request */
	int64		wish;			/* how many numbers to ask for */
} RangeName;

/* What this server reports of a sequence. */
typedef struct RangeReport
{
	char		database[NAMEDATALEN];
	char		name[SNOWFLAKE_RANGE_NAME_SIZE];
	int64		last;			/* MAXVALUE */
	int64		granted;		/* the greatest number that it knows of */
	bool		is_exact;		/* can it have been granted no greater one? */
	bool		is_unread;		/* could its keys not be read now? */
} RangeReport;

extern int	snowflake_collect_range_requests(RangeRequest *requests, int max);
extern bool snowflake_install_range(const RangeRequest *request,
									const RangeAnswer *answer);
extern void snowflake_fail_range_requests(const RangeRequest *requests, int n,
										  const char *why);
extern void snowflake_note_range_floor(const char *database, const char *name,
									   int64 floor);
extern void snowflake_repeat_floors(void);
extern bool snowflake_expect_range(const char *database, const char *name,
								   int64 last, int64 least, int64 wish);
extern bool snowflake_get_granted_here(int number, RangeReport *granted);
extern void snowflake_drop_all_ranges(void);

#endif							/* SNOWFLAKE_RANGE_NEEDS_H */
