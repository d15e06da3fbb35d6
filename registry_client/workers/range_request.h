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

#include "ranges/chain.h"
#include "ranges/needs.h"
#include "registry_client/calls/client.h"

/* The most sequences of one call. */
#define SNOWFLAKE_MAX_REQUESTS	100

/* What a call comes to. */
typedef enum RangeOutcome
{
	SNOWFLAKE_RANGES_FAILED,	/* an error says why */
	SNOWFLAKE_RANGES_SUPERSEDED,	/* somebody else called as this client */
	SNOWFLAKE_RANGES_ANSWERED
} RangeOutcome;

/* What an answer says of this server. */
typedef struct RangeStanding
{
	int64		receipt;		/* to be kept before anything else of the
								 * answer is used; 0: none */
	bool		must_report;	/* what it may have been granted */
} RangeStanding;

extern void snowflake_ask_for_ranges(RegistryCall *call, const RangeChain *chain,
									 int64 receipt,
									 const RangeRequest *requests, int n);
extern void snowflake_ask_for_floors(RegistryCall *call, const RangeChain *chain,
									 int64 receipt);
extern void snowflake_ask_for_changes(RegistryCall *call);
extern void snowflake_ask_for_names(RegistryCall *call, const RangeChain *chain,
									int after);
extern void snowflake_report_ranges(RegistryCall *call, const RangeChain *chain,
									const RangeReport *reports, int n,
									bool complete);
extern void snowflake_return_ranges(RegistryCall *call, const RangeChain *chain);
extern RangeOutcome snowflake_read_ranges(const RegistryAnswer *answer,
										  const RangeRequest *requests, int n,
										  RangeAnswer *ranges,
										  RangeStanding *standing,
										  StringInfo error);
extern RangeOutcome snowflake_read_floors(const RegistryAnswer *answer,
										  bool *must_report, StringInfo error);
extern RangeOutcome snowflake_read_changes(const RegistryAnswer *answer,
										   int64 *changes, StringInfo error);
extern RangeOutcome snowflake_read_names(const RegistryAnswer *answer,
										 RangeName *names, int *n,
										 StringInfo error);
extern RangeOutcome snowflake_read_taken(const RegistryAnswer *answer,
										 StringInfo error);

#endif							/* SNOWFLAKE_RANGE_REQUEST_H */
