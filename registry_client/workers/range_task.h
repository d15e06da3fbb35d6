/*-------------------------------------------------------------------------
 *
 * range_task.h
 *	  What each call for ranges asks, and how its answer is used.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_task.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_TASK_H
#define SNOWFLAKE_RANGE_TASK_H

#include "registry_client/workers/range_request.h"

struct RangeTask;

/* A kind of call. */
typedef struct RangeTaskKind
{
	/* Fills in the call, right before it is sent. */
	void		(*prepare) (struct RangeTask *task);
	/* Takes the answer apart, and uses it. */
	RangeOutcome (*read) (struct RangeTask *task, StringInfo error);
	bool		extends_chain;	/* has the call a token of its own? */
} RangeTaskKind;

/* A call of the registry. */
typedef struct RangeTask
{
	const RangeTaskKind *kind;
	RegistryCall call;
	RangeChain	chain;
	WaitLimit	limit;
	int			timeout_ms;		/* for each host */
	RangeOutcome outcome;

	int64		changes;		/* the answer of whether there are floors */
	bool		must_report;	/* what this server was granted */
	int			n;				/* sequences of a call for ranges, or a report */
	RangeRequest *requests;
	RangeAnswer *answers;
	int			after;			/* names that were answered before */
	RangeName  *names;
	const RangeReport *reports;
	bool		is_complete;	/* are these the last ones? */
} RangeTask;

extern const RangeTaskKind snowflake_ranges_task;
extern const RangeTaskKind snowflake_floors_task;
extern const RangeTaskKind snowflake_changes_task;
extern const RangeTaskKind snowflake_names_task;
extern const RangeTaskKind snowflake_report_task;
extern const RangeTaskKind snowflake_return_task;

#endif							/* SNOWFLAKE_RANGE_TASK_H */
