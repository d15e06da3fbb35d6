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

#include "datatype/timestamp.h"

#include "scheme.h"

/* Where the sequence begins in a tick that nobody waited for. */
typedef enum SnowflakeSequenceStart
{
	SNOWFLAKE_START_RANDOM,		/* anywhere in the lower half */
	SNOWFLAKE_START_ZERO
} SnowflakeSequenceStart;

/* What to do when the clock is behind the last ID. */
typedef enum SnowflakeClockBackward
{
	SNOWFLAKE_CLOCK_CONTINUE,	/* go on from the last ID */
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

/* Room for what the registry, or the way to it, has to say. */
#define SNOWFLAKE_REGISTRY_ERROR_SIZE	1024

/* What snowflake_stat shows; counted since stats_reset. */
typedef struct SnowflakeStat
{
	const SnowflakeScheme *scheme;
	int			datacenter_id;
	int			worker_id;		/* -1 if none is granted */
	TimestampTz last_timestamp; /* of the last ID, or 0 if there was none */
	uint64		mark;			/* 0 if there was none ever */
	TimestampTz mark_timestamp; /* 0 if the mark is no ID of the scheme */
	TimestampTz expires_at;		/* end of the timestamp field */
	int64		lead_us;		/* of the last ID, or else the mark */
	uint64		ids;
	uint64		sequence_waits;
	uint64		sequence_wait_us;
	uint64		clock_waits;
	uint64		clock_wait_us;
	uint64		reserve_waits;
	uint64		reserve_wait_us;
	uint64		grant_waits;
	uint64		grant_wait_us;
	uint64		clock_errors;
	uint64		clock_steps;
	uint64		max_backward_us;
	uint64		reserves;
	TimestampTz stats_reset;
	TimestampTz granted_until;	/* 0 without a grant of a registry */
	TimestampTz registry_contact;	/* its last answer, or 0 */
	TimestampTz registry_error_since;	/* 0 if there is no error */
	char		registry_error[SNOWFLAKE_REGISTRY_ERROR_SIZE];
} SnowflakeStat;

extern void snowflake_generator_configure(const SnowflakeScheme *scheme);
extern void snowflake_generator_request_shmem(void);
extern void snowflake_generator_attach_shmem(void);

extern const SnowflakeScheme *snowflake_server_scheme(void);
extern int64 snowflake_generate(void);
extern int	snowflake_generate_block(int wanted, int64 *first, int64 *step);

extern void snowflake_get_stat(SnowflakeStat *stat);
extern void snowflake_reset_stat(void);

#endif							/* SNOWFLAKE_GENERATOR_H */
