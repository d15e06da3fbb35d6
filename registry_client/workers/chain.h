/*-------------------------------------------------------------------------
 *
 * chain.h
 *	  The tokens by which the registry knows the holder of ranges.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/chain.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CHAIN_H
#define SNOWFLAKE_CHAIN_H

#include "utils/uuid.h"

/* Maximum number of tokens of calls whose answers did not arrive. */
#define SNOWFLAKE_MAX_UNCONFIRMED	16

/* By what a call identifies this server. */
typedef struct RangeChain
{
	pg_uuid_t	client;
	int			nconfirmed;		/* 1, or 0 before the first answer */
	pg_uuid_t	confirmed;		/* the token of the last answer */
	int			nunconfirmed;
	pg_uuid_t	unconfirmed[SNOWFLAKE_MAX_UNCONFIRMED]; /* of calls since then */
	pg_uuid_t	new_token;		/* of this call */
} RangeChain;

/*
 * What tells one life of a server's memory from those before it.  No other data
 * directory that exists on the machine is the same, and since the machine was
 * started, each life of it has begun after the end of those before.
 */
typedef struct ServerLife
{
	bool		boot_is_known;
	pg_uuid_t	boot;			/* start of the machine */
	pg_uuid_t	directory;
	int64		started;		/* by the steady clock */
} ServerLife;

extern void snowflake_keep_chain(void);
extern bool snowflake_has_client(void);
extern void snowflake_get_chain(RangeChain *chain);
extern void snowflake_extend_chain(RangeChain *chain);
extern void snowflake_shorten_chain(const RangeChain *chain);
extern void snowflake_confirm_chain(const RangeChain *chain);
extern void snowflake_begin_chain(void);
extern bool snowflake_names_are_known(void);
extern void snowflake_note_names_known(void);
extern const ServerLife *snowflake_this_life(void);

#endif							/* SNOWFLAKE_CHAIN_H */
