/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  Making snowflake IDs.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

#include "datatype/timestamp.h"

#include "scheme.h"

/* Where the sequence starts in a tick that nobody waited for. */
typedef enum SnowflakeSequenceStart
{
	SNOWFLAKE_START_RANDOM,		/* anywhere in the lower half */
	SNOWFLAKE_START_ZERO
} SnowflakeSequenceStart;

/* What to do when the clock is behind the last ID. */
typedef enum SnowflakeClockBackward
{
	SNOWFLAKE_CLOCK_CONTINUE,	/* continue from the last ID */
	SNOWFLAKE_CLOCK_WAIT		/* wait for the clock, or fail */
} SnowflakeClockBackward;

/* Settings. */
extern int	snowflake_sequence_start;
extern int	snowflake_max_lead; /* ms */
extern int	snowflake_clock_backward;
extern int	snowflake_max_clock_backward;	/* ms */
extern int	snowflake_max_clock_forward;	/* s */
extern int	snowflake_reserve_time; /* ms */
extern bool snowflake_synchronous_mark;
extern int	snowflake_grant_timeout;	/* ms */

extern void snowflake_generator_configure(const SnowflakeScheme *scheme);
extern void snowflake_generator_request_shmem(void);
extern void snowflake_generator_attach_shmem(void);

extern const SnowflakeScheme *snowflake_server_scheme(void);
extern int64 snowflake_generate(void);
extern int	snowflake_generate_block(int wanted, int64 *first, int64 *step);

#endif							/* SNOWFLAKE_GENERATOR_H */
