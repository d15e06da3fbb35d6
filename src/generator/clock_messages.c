/*-------------------------------------------------------------------------
 *
 * clock_messages.c
 *	  What is logged, and which errors are raised, because of clocks.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/clock_messages.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "generator/clock_messages.h"
#include "generator/durable.h"
#include "generator/grant.h"
#include "generator/settings.h"
#include "generator/state.h"

/*
 * Keep the farthest that the clock was behind.
 */
void
snowflake_note_backward(int64 lead)
{
	pg_atomic_uint64 *record = &snowflake_state->counters[SNOWFLAKE_MAX_BACKWARD_US];
	uint64		most = pg_atomic_read_u64(record);

	while (lead > (int64) most &&
		   !pg_atomic_compare_exchange_u64(record, &most, lead))
		;
}

static int64
max_forward_us(void)
{
	return (int64) snowflake_max_clock_forward * USECS_PER_SEC;
}

/*
 * A time, and that of a tick, for messages that have several.
 */
static const char *
time_text(TimestampTz time)
{
	return pstrdup(timestamptz_to_str(time));
}

static const char *
tick_text(int64 tick)
{
	return time_text(snowflake_tick_start(&snowflake_layout, tick));
}

/*
 * Warn once that IDs are ahead of the clock, and again if the clock is set
 * back further.
 */
void
snowflake_note_lead(int64 tick, TimestampTz now)
{
	SnowflakeGenerator *state = snowflake_state;
	int64		lead = snowflake_tick_lead(&snowflake_layout, tick, now);
	bool		behind = lead > snowflake_max_lead_us();
	uint64		known = pg_atomic_read_u64(&state->logged_lead);
	uint64		new_known = Max(lead, 0) + SNOWFLAKE_CLOCK_STEP_US;

	Assert(!LWLockHeldByMe(state->lock));
	if (behind)
		snowflake_note_backward(lead);
	if (lead <= (int64) known || !behind)
	{
		/* As the lead decreases, so does the lead that has been logged. */
		if (new_known < known)
			(void) pg_atomic_compare_exchange_u64(&state->logged_lead, &known,
												  new_known);
		return;
	}
	if (!pg_atomic_compare_exchange_u64(&state->logged_lead, &known, new_known))
		return;

	snowflake_count(SNOWFLAKE_CLOCK_STEPS, 1);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("snowflake IDs are " INT64_FORMAT " ms ahead of the clock",
					lead / 1000),
			 errdetail("The timestamp of the last ID is %s, and the clock reads %s.",
					   tick_text(tick), time_text(now)),
			 lead <= max_forward_us() ?
			 errhint("IDs continue at the pace of real time until the server's clock has caught up. Check the server's clock and, after a failover, the clock of the former primary.") :
			 errhint("IDs continue at the pace of real time, but after a restart no ID can be generated, because the mark is more than \"snowflake.max_clock_forward\" (%d s) ahead of the clock. If the clock was wrong before, replace these IDs, and lower the mark with snowflake_set_mark().",
					 snowflake_max_clock_forward)));
}

/*
 * Warn that the wall clock has jumped ahead of the steady one.  Slewing, up to
 * a thousandth of the time elapsed, is not a jump.
 */
void
snowflake_note_jump(const SnowflakeSnapshot *snapshot, const SnowflakeStep *step)
{
	SnowflakeGenerator *state = snowflake_state;
	const char *limit = "";
	const char *hint = "Snowflake IDs follow the clock. Check that it is correct.";

	if (step->followed)
		pg_atomic_write_u32(&state->not_followed, 0);
	else if (pg_atomic_exchange_u32(&state->not_followed, 1) == 1)
		return;
	else if (state->grant.registry)
		snowflake_wake_grant_worker();
	if (step->jump <= SNOWFLAKE_CLOCK_STEP_US +
		(snapshot->steady - snapshot->entered) / 1000)
		return;

	snowflake_count(SNOWFLAKE_CLOCK_STEPS, 1);
	if (!step->followed && step->jump > max_forward_us())
	{
		limit = psprintf(" \"snowflake.max_clock_forward\" is %d s.", snowflake_max_clock_forward);
		hint = "Correct the server's clock. If it is correct, call snowflake_accept_clock().";
	}
	else if (!step->followed)
	{
		limit = psprintf(" The registry has granted IDs up to %s.", tick_text(snapshot->until));
		hint = "Correct the server's clock. If it is correct, snowflake IDs follow it as soon as the registry grants later IDs.";
	}
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 step->followed ?
			 errmsg("clock jumped ahead by " INT64_FORMAT " ms", step->jump / 1000) :
			 errmsg("clock jumped ahead by " INT64_FORMAT " ms, but snowflake IDs do not follow it",
					step->jump / 1000),
			 errdetail("The clock reads %s, but the last snowflake ID and the time elapsed since then indicate %s.%s",
					   time_text(snapshot->wall), time_text(snapshot->wall - step->jump), limit),
			 errhint("%s", hint)));
}

/*
 * Would a call that waits for the clock fail instead?  Right after the start,
 * the unused reserve does not count; it may be larger than usual because of a
 * slow disk or standby.
 */
bool
snowflake_is_too_far_behind(const SnowflakeSnapshot *snapshot,
							const SnowflakeStep *step)
{
	int64		longest = (int64) snowflake_max_clock_backward * 1000;

	if (snowflake_before_first_tick(&snowflake_layout, snapshot))
		longest += Max(snowflake_reserve_ticks() * snowflake_layout.tick_us,
					   SNOWFLAKE_MAX_RESERVE_US);
	return step->wait > longest;
}

/*
 * Report that no ID can be generated at this time, and why.  If a call would wait for the
 * clock, that is too far behind the last ID, or behind the mark, below which are all IDs
 * that were generated before the server's start.
 */
static void
report_plan(int elevel, const SnowflakeStep *step, const SnowflakeSnapshot *snapshot)
{
	const SnowflakeLayout *layout = &snowflake_layout;
	const char *clock_time = time_text(snapshot->wall);
	const char *first_time = tick_text(snapshot->first_tick);

	switch (step->plan)
	{
		case SNOWFLAKE_BEFORE_EPOCH:
			ereport(elevel,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("clock is before the epoch of the snowflake scheme"),
					 errdetail("The clock reads %s, and the first ID can be generated at %s.",
							   clock_time, tick_text(layout->base_tick)),
					 errhint("Correct the server's clock, or set an earlier epoch in \"snowflake.scheme\".")));
			break;
		case SNOWFLAKE_EXHAUSTED:
			ereport(elevel,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("timestamp field of the snowflake scheme is exhausted"),
					 errdetail("The clock reads %s, and the field ends at %s.",
							   clock_time, tick_text(layout->last_tick + 1)),
					 errhint("Correct the server's clock, or set a wider timestamp field in \"snowflake.scheme\".")));
			break;
		case SNOWFLAKE_CLOCK_AHEAD:
			ereport(elevel,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("clock is too far ahead of the mark of snowflake IDs"),
					 errdetail("The mark is " UINT64_FORMAT " (%s in this scheme), and the clock reads %s. \"snowflake.max_clock_forward\" is %d s.",
							   snowflake_mark_read(), first_time, clock_time,
							   snowflake_max_clock_forward),
					 errhint("Correct the server's clock. If it is correct because no ID was generated for that long or \"snowflake.scheme\" was changed, call snowflake_accept_clock().")));
			break;
		case SNOWFLAKE_MARK_AHEAD:
			ereport(elevel,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("mark of snowflake IDs is too far ahead of the clock"),
					 errdetail("The mark is " UINT64_FORMAT " (%s in this scheme), the clock reads %s, and the last checkpoint before server start was at %s. \"snowflake.max_clock_forward\" is %d s.",
							   snowflake_mark_read(), first_time, clock_time,
							   time_text(snapshot->last_checkpoint),
							   snowflake_max_clock_forward),
					 errhint("If the clock is wrong, correct it. If it was wrong while IDs were generated, replace them, and lower the mark with snowflake_set_mark(mark, tables). If \"snowflake.scheme\" was changed, revert the change, or call snowflake_set_mark(0, force => true) if no ID of the former scheme is kept anywhere. To continue above the mark anyway, increase \"snowflake.max_clock_forward\".")));
			break;
		default:
			Assert(step->plan == SNOWFLAKE_WAIT_CLOCK);
			ereport(elevel,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 snowflake_before_first_tick(layout, snapshot) ?
					 errmsg("clock is too far behind the mark of snowflake IDs") :
					 errmsg("clock is too far behind the last snowflake ID"),
					 errdetail("%s, and the clock reads %s. \"snowflake.max_clock_backward\" is %d ms, and \"snowflake.max_lead\" is %d ms.",
							   snowflake_before_first_tick(layout, snapshot) ?
							   psprintf("The mark is " UINT64_FORMAT " (%s in this scheme)",
										snowflake_mark_read(), tick_text(step->next)) :
							   psprintf("The timestamp of the next ID is %s", tick_text(step->next)),
							   clock_time, snowflake_max_clock_backward, snowflake_max_lead),
					 errhint("Correct the server's clock, or set \"snowflake.clock_backward\" to \"continue\".")));
			break;
	}
}

/*
 * Fail because no ID can be generated at this time.
 */
void
snowflake_fail_plan(const SnowflakeStep *step, const SnowflakeSnapshot *snapshot)
{
	snowflake_count(SNOWFLAKE_CLOCK_ERRORS, 1);
	report_plan(ERROR, step, snapshot);
	pg_unreachable();
}

static void
start_context(void *arg)
{
	errcontext("while checking at server start whether snowflake IDs can be generated");
}

/*
 * Warn if calls would fail because of the scheme, the mark, or the clock.  The
 * mark has been read.
 */
void
snowflake_warn_at_start(void)
{
	SnowflakeRules rules = snowflake_rules();
	SnowflakeSnapshot snapshot;
	SnowflakeStep step;
	ErrorContextCallback context = {
		.callback = start_context,
		.previous = error_context_stack
	};

	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	if (step.plan < SNOWFLAKE_BEFORE_EPOCH &&
		(step.plan != SNOWFLAKE_WAIT_CLOCK || !snowflake_is_too_far_behind(&snapshot, &step)))
		return;
	error_context_stack = &context;
	report_plan(WARNING, &step, &snapshot);
	error_context_stack = context.previous;
}
