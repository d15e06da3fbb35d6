/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The settings.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/settings.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SETTINGS_H
#define SNOWFLAKE_SETTINGS_H

#include "base/scheme.h"
#include "shared/compat.h"

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

/* The kind of sequences of new tables. */
typedef enum SnowflakeDefaultKind
{
	SNOWFLAKE_DEFAULT_LOCAL,	/* PostgreSQL's own */
	SNOWFLAKE_DEFAULT_SNOWFLAKE,
	SNOWFLAKE_DEFAULT_RANGE,
	SNOWFLAKE_DEFAULT_DISTRIBUTED	/* bigint: snowflake; smaller: range */
} SnowflakeDefaultKind;

/* Fixed at server start. */
extern PGDLLEXPORT char *snowflake_scheme;
extern PGDLLEXPORT int snowflake_datacenter_id;
extern PGDLLEXPORT int snowflake_worker_id; /* -1: not set; then 0 */
extern bool snowflake_has_registry;
extern PGDLLEXPORT int snowflake_max_range_sequences;

/* Changed by a reload. */
extern PGDLLEXPORT char *snowflake_registry;	/* conninfo */
extern PGDLLEXPORT char *snowflake_server_name; /* or empty */
extern int	snowflake_grant_timeout;	/* ms */
extern int	snowflake_sequence_start;
extern int	snowflake_max_lead; /* ms */
extern int	snowflake_clock_backward;
extern int	snowflake_max_clock_backward;	/* ms */
extern int	snowflake_max_clock_forward;	/* s */
extern PGDLLEXPORT int snowflake_reserve_time;	/* ms */
extern bool snowflake_synchronous_mark;

/* Changed by anybody. */
extern int	snowflake_default_sequence_kind;

/* snowflake.max_lead in microseconds. */
static inline int64
snowflake_max_lead_us(void)
{
	return (int64) snowflake_max_lead * 1000;
}

/* In shared memory, once that is attached; see settings.c. */
extern bool *snowflake_shared_synchronous_mark;

extern const SnowflakeScheme *snowflake_define_settings(void);

#endif							/* SNOWFLAKE_SETTINGS_H */
