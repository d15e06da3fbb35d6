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

#include "registry_client/workers/chain.h"
#include "registry_client/workers/range_needs.h"
#include "registry_client/workers/registry_worker.h"

/* The most sequences of one call. */
#define SNOWFLAKE_MAX_REQUESTS	100

/* A call of the registry. */
typedef struct RangeTask
{
	RegistryRequest base;
	RegistryOutcome outcome;
	RangeChain	chain;

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

extern void snowflake_log_range_problem(const RangeRequest *request,
										const RangeAnswer *answer);

extern const RegistryRequest snowflake_ranges_request;
extern const RegistryRequest snowflake_floors_request;
extern const RegistryRequest snowflake_changes_request;
extern const RegistryRequest snowflake_names_request;
extern const RegistryRequest snowflake_report_request;
extern const RegistryRequest snowflake_return_request;

#endif							/* SNOWFLAKE_RANGE_REQUEST_H */
