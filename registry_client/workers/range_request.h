/*-------------------------------------------------------------------------
 *
 * range_request.h
 *	  Calls of the registry for ranges, and its answers.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_request.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_REQUEST_H
#define SNOWFLAKE_RANGE_REQUEST_H

#include "registry_client/calls/client.h"
#include "registry_client/workers/chain.h"
#include "registry_client/workers/range_needs.h"

/* The most sequences of one call. */
#define SNOWFLAKE_MAX_REQUESTS	100

/* What a call comes to. */
typedef enum RangeOutcome
{
	SNOWFLAKE_RANGES_FAILED,	/* an error says why */
	SNOWFLAKE_RANGES_SUPERSEDED,	/* somebody else called as this client */
	SNOWFLAKE_RANGES_ANSWERED
} RangeOutcome;

/* A call of the registry. */
typedef struct RangeTask
{
	const struct RangeTaskKind *kind;
	RegistryCall call;
	RangeChain	chain;
	WaitLimit	limit;
	int			timeout_ms;		/* for each host */
	RangeOutcome outcome;

	int64		changes;		/* the answer of whether there are floors */
	int64		receipt;		/* of the answer, to be kept before anything
								 * else of it is used; 0: none */
	bool		must_report;	/* what this server was granted */
	int			n;				/* sequences of a call for ranges, or a report */
	RangeRequest *requests;
	RangeAnswer *answers;
	int			after;			/* names that were answered, or reported,
								 * before */
	RangeName  *names;
	bool		elsewhere;		/* are they those of others? */
	const RangeReport *reports;
	bool		is_complete;	/* are these the last ones? */
	int			unread;			/* how many of all could not be read */
} RangeTask;

/* A kind of call. */
typedef struct RangeTaskKind
{
	/* Fills in the call, right before it is sent. */
	void		(*prepare) (RangeTask *task);
	/* Takes the answer apart, and uses it. */
	RangeOutcome (*read) (RangeTask *task, StringInfo error);
	bool		extends_chain;	/* has the call a token of its own? */
} RangeTaskKind;

extern const RangeTaskKind snowflake_ranges_task;
extern const RangeTaskKind snowflake_floors_task;
extern const RangeTaskKind snowflake_changes_task;
extern const RangeTaskKind snowflake_names_task;
extern const RangeTaskKind snowflake_report_task;
extern const RangeTaskKind snowflake_return_task;

#endif							/* SNOWFLAKE_RANGE_REQUEST_H */
