/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  Making snowflake IDs.
 *
 * src/generator.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

#include "scheme.h"

/* Where the sequence begins in a tick that nobody waited for. */
typedef enum SnowflakeSequenceStart
{
	SNOWFLAKE_START_RANDOM,		/* anywhere in the lower half */
	SNOWFLAKE_START_ZERO
} SnowflakeSequenceStart;

/* Settings. */
extern int	snowflake_sequence_start;
extern int	snowflake_max_lead; /* ms */
extern int	snowflake_max_clock_backward;	/* ms */
extern int	snowflake_reserve_time; /* ms */

extern void snowflake_generator_configure(const SnowflakeScheme *scheme,
										  int datacenter_id, int worker_id);
extern void snowflake_generator_request_shmem(void);
extern void snowflake_generator_attach_shmem(void);

extern const SnowflakeScheme *snowflake_server_scheme(void);
extern int64 snowflake_generate(void);
extern int	snowflake_generate_block(int wanted, int64 *first, int64 *step);
extern void snowflake_set_mark(int64 mark);

#endif							/* SNOWFLAKE_GENERATOR_H */
