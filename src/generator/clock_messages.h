/*-------------------------------------------------------------------------
 *
 * clock_messages.h
 *	  What is logged, and which errors are raised, because of clocks.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/clock_messages.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CLOCK_MESSAGES_H
#define SNOWFLAKE_CLOCK_MESSAGES_H

#include "generator/word.h"
#include "shared/compat.h"

extern void snowflake_warn_at_start(void);
extern void snowflake_note_backward(int64 lead);
extern void snowflake_note_lead(int64 tick, TimestampTz now);
extern void snowflake_note_jump(const SnowflakeSnapshot *snapshot,
								const SnowflakeStep *step);
extern bool snowflake_is_too_far_behind(const SnowflakeSnapshot *snapshot,
										const SnowflakeStep *step);
snowflake_noreturn extern void snowflake_fail_plan(const SnowflakeStep *step,
												   const SnowflakeSnapshot *snapshot);

#endif							/* SNOWFLAKE_CLOCK_MESSAGES_H */
