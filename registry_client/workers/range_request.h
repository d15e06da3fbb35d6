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

extern void snowflake_ask_for_ranges(RegistryCall *call, const RangeChain *chain,
									 const RangeRequest *requests, int n);
extern void snowflake_ask_for_floors(RegistryCall *call, const RangeChain *chain);
extern void snowflake_ask_for_changes(RegistryCall *call);
extern void snowflake_return_ranges(RegistryCall *call, const RangeChain *chain);
extern RangeOutcome snowflake_read_ranges(const RegistryAnswer *answer,
										  const RangeRequest *requests, int n,
										  RangeAnswer *ranges, StringInfo error);
extern RangeOutcome snowflake_read_floors(const RegistryAnswer *answer,
										  StringInfo error);
extern RangeOutcome snowflake_read_changes(const RegistryAnswer *answer,
										   int64 *changes, StringInfo error);
extern RangeOutcome snowflake_read_returned(const RegistryAnswer *answer,
											StringInfo error);

#endif							/* SNOWFLAKE_RANGE_REQUEST_H */
