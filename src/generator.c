/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  Making snowflake IDs, one generator for all backends of a server.
 *
 * The generator's state is one 64-bit word in shared memory.  Its high bits
 * are a tick (the ID's timestamp, counted from the scheme's epoch), its low
 * bits the next sequence number of that tick.  Two rules keep it right:
 *
 * 1. A number inside the word's tick is claimed by an atomic fetch-add of 1.
 *	  The word that the fetch-add returns, not one read before, says which
 *	  tick and number the caller has.  (Several numbers are claimed at once by
 *	  a compare-and-swap that adds no more than the tick has left.)
 *
 * 2. The tick changes only under the generator's LWLock, held exclusively,
 *	  and only upwards (snowflake_reset() alone takes it back).  It is changed
 *	  by compare-and-swap, because claims go on meanwhile.
 *
 * So the word only ever rises, every value of it is claimed at most once, and
 * as an ID is made of the word's bits in the same order (the worker ID, which
 * stands between or below them, is constant), IDs strictly rise over all
 * backends: an ID asked for after another one was received is greater.
 *
 * The usual call takes no lock: the clock stands inside the word's tick, and
 * there are numbers left.  Claims that come too late for the last number add
 * to the word all the same.  A backend that came too late looks at the word
 * again, and adds again only after it saw a number left, so late claims are at
 * most as many as there are backends; the number has room above the scheme's
 * last one for more than MAX_BACKENDS of them: they cannot carry into the tick.
 *
 * A new tick is that of the clock, or the one after the word's if that is
 * later, as long as its start is at most snowflake.max_lead ahead of the
 * clock.  Otherwise the caller waits, without any lock, and starts again from
 * the top: for the next tick, if the sequence is used up, or for the clock, if
 * it stands behind the word's tick.  A clock that is behind by more than
 * snowflake.max_clock_backward is an error.
 *
 * A word that only rises is not enough when the server restarts, or a standby
 * takes over: shared memory is gone then, and the clock may be wrong.  So
 * there is the mark (mark.c), a durable promise that every ID handed out so
 * far is below it, and a third rule:
 *
 * 3. The word moves to a tick only if a mark above that tick is durable.
 *
 * The mark is kept some ticks ahead (snowflake.reserve_time), to be written
 * rarely.  As only the move of the word has to look at it, claims need not:
 * the word's tick is below the mark.  One backend at a time writes it, with
 * the reserve lock held, and does so when half of the reserve is left, while
 * all others go on.  Only who needs a tick that is not reserved yet has to wait
 * for that, and it does so on a condition variable, not on the lock, so that
 * it can be cancelled.
 *
 * In the beginning nothing is reserved.  The first caller after the start of
 * the server, or after its promotion, reads the mark and lifts the word to it:
 * to the last number of the tick before, so that the next ID is above all IDs
 * that were handed out, by whatever server of this timeline, with whatever
 * worker ID.  If the clock is behind that tick, that is a wait (or an error)
 * like any other for a clock that is behind; after a crash, the clock is
 * behind by what was left of the reserve.  See docs/guarantees.md for the
 * whole argument.
 *
 * Whether to claim, move, wait or fail is decided in one place, plan(), which
 * looks at nothing but a word and a clock reading.  It is asked first without
 * the lock, where waiting and errors are allowed; then, if the tick has to
 * move, again with the lock held, where nothing but the move is done.  Those
 * who find the lock taken wait for its release only, as the holder most likely
 * did the work for them (LWLockAcquireOrWait).
 *
 * src/generator.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/int.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "generator.h"
#include "mark.h"

/* Bits of a number that have room for one late claim of each backend. */
#define LATE_CLAIM_BITS 18
StaticAssertDecl(MAX_BACKENDS < (1 << LATE_CLAIM_BITS),
				 "late claims of all backends must not carry into the tick");

/* The longest sleep before the clock is looked at again. */
#define MAX_NAP_US	INT64CONST(100000)

/* The longest wait before another backend's reserving is looked at again. */
#define MAX_RESERVE_WAIT_MS 100

/* The most that is reserved for the sake of a slow disk. */
#define MAX_RESERVE_US	INT64CONST(60000000)

/* Wall clock against monotonic clock: a difference above this is a leap. */
#define CLOCK_LEAP_US	INT64CONST(1000000)

#define WORD_TRANCHE_NAME "SnowflakeGenerator"
#define RESERVE_TRANCHE_NAME "SnowflakeReserve"

/* What is waited for, and how often and how long. */
typedef struct WaitCounter
{
	pg_atomic_uint64 waits;		/* calls that waited */
	pg_atomic_uint64 wait_us;
} WaitCounter;

/* State in shared memory. */
typedef struct Generator
{
	/* By itself in its cache line: everybody writes to it, all the time. */
	pg_atomic_uint64 word;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	LWLock	   *lock;			/* protects the word's tick */

	/*
	 * The IDs made are these and the word's number (up to the limit): nothing
	 * is counted when a number is claimed.  Changed with the word's tick;
	 * changes is odd meanwhile, so that who reads both can tell.
	 */
	pg_atomic_uint64 ids_before;
	pg_atomic_uint64 changes;

	/*
	 * The word may move to ticks below this one: they are reserved, as the
	 * durable mark is above all their IDs.  (Right after the mark was read it
	 * may be in the middle of the last of them; but the word was lifted to
	 * that tick's end, so none of its IDs can be had.)  Changed with the
	 * reserve lock held.
	 */
	pg_atomic_uint64 reserved;

	/*
	 * The first tick after what was reserved before the server's start or
	 * promotion.  Changed with the reserve lock held.
	 */
	pg_atomic_uint64 first_tick;

	LWLock	   *reserve_lock;	/* held while the mark is read or written */
	ConditionVariable reserve_done; /* that lock was released */

	/* The rest is protected by the reserve lock. */
	bool		mark_known;		/* was the mark read since the start? */
	int64		flush_us;		/* how long the last write of it took */
	TimestampTz wall_clock;		/* both clocks when reserving last, */
	instr_time	monotonic_clock;	/* or 0 */

	/* Counters, each changed by itself. */
	WaitCounter sequence;
	WaitCounter clock;
	pg_atomic_uint64 clock_errors;
	pg_atomic_uint64 max_clock_backward_us;
	pg_atomic_uint64 reserves;
	pg_atomic_uint64 ids_reset; /* IDs made before stats_reset */
	pg_atomic_uint64 stats_reset;
} Generator;

/* What follows from the scheme and the worker ID, for quick use. */
typedef struct Layout
{
	SnowflakeScheme scheme;
	int			datacenter_id;
	int			worker_id;
	TimestampTz epoch;			/* start of tick 0 */
	int64		tick_us;		/* length of a tick */
	int64		base_tick;		/* the first one that can be used */
	int64		last_tick;		/* the last one */
	int			number_bits;	/* bits of the word below the tick */
	uint64		number_limit;	/* the first number that is too high */
	int64		constant;		/* datacenter and worker ID in place */
} Layout;

/* What to do with the word at a time. */
typedef enum Plan
{
	PLAN_CLAIM,					/* claim a number of the word's tick */
	PLAN_MOVE,					/* move the word to a later tick */
	PLAN_WAIT_SEQUENCE,			/* wait until a later tick may be used */
	PLAN_WAIT_CLOCK,			/* wait until the word's tick may be used */
	PLAN_BEFORE_EPOCH,			/* fail: there is no tick for the time */
	PLAN_USED_UP				/* fail: the timestamp does not fit */
} Plan;

int			snowflake_sequence_start = SNOWFLAKE_START_RANDOM;
int			snowflake_max_lead = 0;
int			snowflake_max_clock_backward = 5000;
int			snowflake_reserve_time = 1000;

static Layout layout;
static Generator *generator = NULL;

/*
 * Take over the server's scheme and IDs, which are known to fit it.  They
 * never change while the server runs.
 */
void
snowflake_generator_configure(const SnowflakeScheme *scheme,
							  int datacenter_id, int worker_id)
{
	int			sequence_bits = scheme->width[SNOWFLAKE_SEQUENCE];
	int64		last_tick;
	int64		span;

	layout.scheme = *scheme;
	layout.datacenter_id = datacenter_id;
	layout.worker_id = worker_id;
	layout.epoch = (scheme->epoch_ms -
					(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) *
					(USECS_PER_DAY / 1000)) * 1000;
	layout.tick_us = scheme->tick_us;
	layout.number_bits = Max(sequence_bits, LATE_CLAIM_BITS) + 1;
	layout.number_limit = UINT64CONST(1) << sequence_bits;
	layout.constant =
		snowflake_field_put(scheme, SNOWFLAKE_DATACENTER, datacenter_id) |
		snowflake_field_put(scheme, SNOWFLAKE_WORKER, worker_id);

	/*
	 * The word counts ticks from the epoch, or from 2000 where that is later:
	 * it has at least 45 bits for them where the sequence is narrower than 18
	 * bits, and room for every tick otherwise.
	 */
	layout.base_tick = layout.epoch < 0 ? -layout.epoch / layout.tick_us : 0;

	/* The last tick is the field's, unless word or timestamptz end before. */
	last_tick = snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP);
	last_tick = Min(last_tick, layout.base_tick +
					(INT64CONST(1) << (64 - layout.number_bits)) - 1);
	if (pg_sub_s64_overflow(END_TIMESTAMP - 1, layout.epoch, &span))
		span = PG_INT64_MAX;
	last_tick = Min(last_tick, span / layout.tick_us - 1);
	layout.last_tick = last_tick;
}

void
snowflake_generator_request_shmem(void)
{
	RequestAddinShmemSpace(sizeof(Generator));
	RequestNamedLWLockTranche(WORD_TRANCHE_NAME, 1);
	RequestNamedLWLockTranche(RESERVE_TRANCHE_NAME, 1);
}

static inline int64
word_tick(uint64 word)
{
	return (int64) (word >> layout.number_bits) + layout.base_tick;
}

static inline uint64
word_number(uint64 word)
{
	return word & ((UINT64CONST(1) << layout.number_bits) - 1);
}

static inline uint64
make_word(int64 tick, uint64 number)
{
	return ((uint64) (tick - layout.base_tick) << layout.number_bits) | number;
}

/* Numbers of the word's tick that were claimed, or skipped at its start. */
static inline uint64
numbers_used(uint64 word)
{
	return Min(word_number(word), layout.number_limit);
}

/* A word that nothing was claimed from, and nothing can be. */
static inline uint64
empty_word(void)
{
	return make_word(layout.base_tick, layout.number_limit);
}

/* Are there numbers left in the word's tick? */
static inline bool
numbers_left(uint64 word)
{
	return word_number(word) < layout.number_limit;
}

static inline TimestampTz
tick_start(int64 tick)
{
	return layout.epoch + tick * layout.tick_us;
}

/* How far ahead of the clock an ID's timestamp may be, in microseconds. */
static inline int64
max_lead_us(void)
{
	return (int64) snowflake_max_lead * 1000;
}

/*
 * The ID that belongs to a number of a tick.
 */
static inline int64
make_id(int64 tick, uint64 number)
{
	return layout.constant |
		snowflake_field_put(&layout.scheme, SNOWFLAKE_TIMESTAMP, tick) |
		snowflake_field_put(&layout.scheme, SNOWFLAKE_SEQUENCE, number);
}

void
snowflake_generator_attach_shmem(void)
{
	bool		found;

	generator = ShmemInitStruct("snowflake generator", sizeof(Generator),
								&found);
	if (!found)
	{
		pg_atomic_init_u64(&generator->word, empty_word());
		generator->lock = &GetNamedLWLockTranche(WORD_TRANCHE_NAME)->lock;
		pg_atomic_init_u64(&generator->reserved, 0);
		pg_atomic_init_u64(&generator->first_tick, 0);
		generator->reserve_lock =
			&GetNamedLWLockTranche(RESERVE_TRANCHE_NAME)->lock;
		ConditionVariableInit(&generator->reserve_done);
		generator->mark_known = false;
		generator->flush_us = 0;
		generator->wall_clock = 0;

		pg_atomic_init_u64(&generator->ids_before, -layout.number_limit);
		pg_atomic_init_u64(&generator->changes, 0);
		pg_atomic_init_u64(&generator->sequence.waits, 0);
		pg_atomic_init_u64(&generator->sequence.wait_us, 0);
		pg_atomic_init_u64(&generator->clock.waits, 0);
		pg_atomic_init_u64(&generator->clock.wait_us, 0);
		pg_atomic_init_u64(&generator->clock_errors, 0);
		pg_atomic_init_u64(&generator->max_clock_backward_us, 0);
		pg_atomic_init_u64(&generator->reserves, 0);
		pg_atomic_init_u64(&generator->ids_reset, 0);
		pg_atomic_init_u64(&generator->stats_reset, GetCurrentTimestamp());
	}
}

/*
 * Fail if this server has no generator.
 */
static inline void
check_loaded(void)
{
	if (unlikely(generator == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("snowflake must be loaded via shared_preload_libraries"),
				 errhint("Have a line like this in postgresql.conf and restart the server: shared_preload_libraries = 'snowflake'")));
}

const SnowflakeScheme *
snowflake_server_scheme(void)
{
	check_loaded();
	return &layout.scheme;
}

/*
 * May the word move to a tick?
 */
static inline bool
is_reserved(int64 tick)
{
	return tick < (int64) pg_atomic_read_u64(&generator->reserved);
}

/*
 * How many ticks to reserve.
 */
static inline int64
reserve_ticks(void)
{
	int64		reserve_us = (int64) snowflake_reserve_time * 1000;

	return (reserve_us + layout.tick_us - 1) / layout.tick_us;
}

/*
 * Should more ticks be reserved before all are in use?
 */
static inline bool
reserve_is_low(int64 tick)
{
	int64		left = (int64) pg_atomic_read_u64(&generator->reserved) - tick;

	return left <= reserve_ticks() / 2;
}

/*
 * Set the word, whatever numbers of its old tick are being claimed meanwhile.
 * expected is what it was last seen to be; if it is something else by now,
 * return false with that.  The lock is held.  skipped are the numbers of the
 * new word that no ID has or will have.
 */
static bool
change_word(uint64 *expected, uint64 new, uint64 skipped)
{
	bool		changed;
	uint64		changes = pg_atomic_read_u64(&generator->changes);

	pg_atomic_write_u64(&generator->changes, changes + 1);
	pg_write_barrier();
	changed = pg_atomic_compare_exchange_u64(&generator->word, expected, new);
	if (changed)
		pg_atomic_write_u64(&generator->ids_before,
							pg_atomic_read_u64(&generator->ids_before) +
							numbers_used(*expected) - skipped);
	pg_write_barrier();
	pg_atomic_write_u64(&generator->changes, changes + 2);
	return changed;
}

/*
 * Decide what a caller has to do, by the word and the time.  next is the tick
 * to claim from, to move to or to wait for.
 */
static Plan
plan(uint64 word, TimestampTz now, int64 *next)
{
	int64		tick = word_tick(word);
	int64		latest_tick;

	if (now < tick_start(layout.base_tick))
		return PLAN_BEFORE_EPOCH;

	*next = Max((now - layout.epoch) / layout.tick_us,
				numbers_left(word) ? tick : tick + 1);
	latest_tick = (now - layout.epoch + max_lead_us()) / layout.tick_us;

	if (tick > latest_tick)
		return PLAN_WAIT_CLOCK;
	if (*next > layout.last_tick)
		return PLAN_USED_UP;
	if (*next > latest_tick)
		return PLAN_WAIT_SEQUENCE;
	return *next == tick ? PLAN_CLAIM : PLAN_MOVE;
}

/*
 * The number to start a tick with.
 *
 * Where fewer than one ID per tick is needed, starting with 0 would make all
 * IDs even, and a table sharded by id % N would use but one of its shards.  A
 * tick that follows a used up one is probably needed as a whole, though, as is
 * one that a large block is taken from.
 */
static inline uint64
start_number(uint64 previous, int wanted)
{
	if (snowflake_sequence_start == SNOWFLAKE_START_ZERO ||
		!numbers_left(previous) || (uint64) wanted > layout.number_limit / 2)
		return 0;
	return pg_prng_uint64(&pg_global_prng_state) &
		(Max(layout.number_limit / 2, 2) - 1);
}

/*
 * Sleep, without any lock, until a time or a little later, or less if that is
 * far away: the caller looks at the clock again, which may have been set.
 * naps counts the sleeps of a call.
 *
 * WaitLatch knows whole milliseconds only.  The rest of the way to a tick's
 * edge is slept without looking at the latch, which keeps an interrupt waiting
 * for less than 2 ms.
 */
static void
nap(TimestampTz until, TimestampTz now, uint32 wait_event,
	WaitCounter *counter, int *naps)
{
	int64		us = Min(until - now, MAX_NAP_US);
	instr_time	start;
	instr_time	slept;

	if ((*naps)++ == 0)
		pg_atomic_fetch_add_u64(&counter->waits, 1);
	INSTR_TIME_SET_CURRENT(start);
	if (us >= 2000)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 us / 1000, wait_event);
		ResetLatch(MyLatch);
	}
	else
	{
		pgstat_report_wait_start(wait_event);
		pg_usleep(us);
		pgstat_report_wait_end();
	}
	INSTR_TIME_SET_CURRENT(slept);
	INSTR_TIME_SUBTRACT(slept, start);
	pg_atomic_fetch_add_u64(&counter->wait_us, INSTR_TIME_GET_MICROSEC(slept));
	CHECK_FOR_INTERRUPTS();
}

/*
 * Wait for the next tick, as the sequence of the word's tick is used up.
 */
static void
wait_for_sequence(int64 next, TimestampTz now, int *naps)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeSequence");
	nap(tick_start(next) - max_lead_us(), now, wait_event,
		&generator->sequence, naps);
}

/*
 * Fail, as the clock is too far behind the last ID or behind the mark, below
 * which are all IDs that were made before the server's start.
 */
snowflake_noreturn static void
fail_clock_behind(int64 tick, TimestampTz now, bool is_mark)
{
	const char *clock_time = pstrdup(timestamptz_to_str(now));
	TimestampTz last = tick_start(is_mark ? tick + 1 : tick);
	const char *last_time = pstrdup(timestamptz_to_str(last));
	int64		behind_ms = (last - now + 999) / 1000;

	if (is_mark)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("next snowflake ID would be below the mark, and so perhaps one made before"),
				 errdetail("The mark is " UINT64_FORMAT ", IDs above it begin at %s by this scheme, and the clock reads %s, " INT64_FORMAT " ms less; snowflake.max_clock_backward is %d ms, snowflake.max_lead %d ms and snowflake.reserve_time %d ms.",
						   snowflake_mark_read(), last_time, clock_time,
						   behind_ms, snowflake_max_clock_backward,
						   snowflake_max_lead, snowflake_reserve_time),
				 errhint("Set the server's clock right, take back a change of snowflake.scheme that makes IDs smaller, or raise snowflake.max_lead to bridge the difference. If a wrong clock drove the mark ahead, see snowflake_reset().")));
	else
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("clock is too far behind the last snowflake ID"),
				 errdetail("The last ID's timestamp is %s and the clock reads %s, " INT64_FORMAT " ms less; snowflake.max_clock_backward is %d ms and snowflake.max_lead %d ms.",
						   last_time, clock_time, behind_ms,
						   snowflake_max_clock_backward, snowflake_max_lead),
				 errhint("Set the server's clock right, wait until it has passed the last ID's timestamp, or raise snowflake.max_lead to bridge the difference. If a wrong clock drove the IDs ahead, see snowflake_reset().")));
}

/*
 * Note how far the clock is behind the last ID, if that is a new record.
 */
static void
note_clock_backward(int64 us)
{
	uint64		most = pg_atomic_read_u64(&generator->max_clock_backward_us);

	while (us > (int64) most &&
		   !pg_atomic_compare_exchange_u64(&generator->max_clock_backward_us,
										   &most, us))
		;
}

/*
 * Wait for the clock, which is behind the word's tick, or fail if it is too
 * far behind.
 */
static void
wait_for_clock(int64 tick, TimestampTz now, int *naps)
{
	static uint32 wait_event = 0;
	TimestampTz until = tick_start(tick) - max_lead_us();
	int64		longest = (int64) snowflake_max_clock_backward * 1000;
	bool		is_mark = tick < (int64) pg_atomic_read_u64(&generator->first_tick);

	/* What was left of the reserve is no fault of the clock. */
	if (is_mark)
		longest += reserve_ticks() * layout.tick_us;
	else
		note_clock_backward(tick_start(tick) - now);
	if (until - now > longest)
	{
		pg_atomic_fetch_add_u64(&generator->clock_errors, 1);
		fail_clock_behind(tick, now, is_mark);
	}

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeClock");
	nap(until, now, wait_event, &generator->clock, naps);
}

snowflake_noreturn static void
fail_before_epoch(TimestampTz now)
{
	pg_atomic_fetch_add_u64(&generator->clock_errors, 1);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("clock is before the epoch of the snowflake scheme"),
			 errdetail("The clock reads %s and the first ID can be made at %s.",
					   pstrdup(timestamptz_to_str(now)),
					   pstrdup(timestamptz_to_str(tick_start(layout.base_tick)))),
			 errhint("Set the server's clock right, or give snowflake.scheme an earlier epoch.")));
}

snowflake_noreturn static void
fail_used_up(TimestampTz now)
{
	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 errmsg("timestamp field of the snowflake scheme is used up"),
			 errdetail("The clock reads %s and the field ends at %s.",
					   pstrdup(timestamptz_to_str(now)),
					   pstrdup(timestamptz_to_str(tick_start(layout.last_tick + 1)))),
			 errhint("Set the server's clock right, or give snowflake.scheme a wider timestamp field.")));
}

/*
 * Read the mark for the first time since the start, or promotion, of the
 * server, and lift the word to it.  The reserve lock is held.
 */
static void
recover_mark(void)
{
	uint64		mark = snowflake_mark_read();
	int			shift = layout.scheme.shift[SNOWFLAKE_TIMESTAMP];
	int64		tick = (int64) (mark >> shift);
	uint64		word;

	/* The first tick whose IDs are all at or above the mark. */
	if (((uint64) tick << shift) != mark)
		tick++;
	/* A mark above all IDs of the scheme leaves none of them. */
	tick = Min(tick, layout.last_tick + 1);

	if (tick > layout.base_tick)
	{
		uint64		lifted = make_word(tick - 1, layout.number_limit);

		LWLockAcquire(generator->lock, LW_EXCLUSIVE);
		word = pg_atomic_read_u64(&generator->word);
		while (word < lifted &&
			   !change_word(&word, lifted, layout.number_limit))
			;
		LWLockRelease(generator->lock);
	}
	pg_atomic_write_u64(&generator->first_tick, tick);
	pg_atomic_write_u64(&generator->reserved, tick);
	generator->mark_known = true;
	generator->wall_clock = 0;
}

/*
 * How much farther the wall clock went than the monotonic clock since this was
 * asked last, in microseconds, and the way of the wall clock.  The reserve
 * lock is held.
 */
static int64
clock_leap(TimestampTz wall_now, instr_time monotonic_now, int64 *wall_way)
{
	TimestampTz wall_before = generator->wall_clock;
	instr_time	way = monotonic_now;

	INSTR_TIME_SUBTRACT(way, generator->monotonic_clock);
	generator->wall_clock = wall_now;
	generator->monotonic_clock = monotonic_now;
	if (wall_before == 0)
		return 0;
	*wall_way = wall_now - wall_before;
	return *wall_way - (int64) INSTR_TIME_GET_MICROSEC(way);
}

/*
 * Get the reserve lock, or, if another backend has it, return false: at once,
 * or if required after that backend is done.  That is waited for on a
 * condition variable, so that it can be cancelled.  Whoever fails while it
 * holds the lock wakes nobody, therefore the wait is short.
 */
static bool
get_reserve_lock(bool required)
{
	static uint32 wait_event = 0;
	bool		acquired;

	acquired = LWLockConditionalAcquire(generator->reserve_lock, LW_EXCLUSIVE);
	if (acquired || !required)
		return acquired;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeReserve");

	ConditionVariablePrepareToSleep(&generator->reserve_done);
	acquired = LWLockConditionalAcquire(generator->reserve_lock, LW_EXCLUSIVE);
	if (!acquired)
		(void) ConditionVariableTimedSleep(&generator->reserve_done,
										   MAX_RESERVE_WAIT_MS, wait_event);
	ConditionVariableCancelSleep();
	return acquired;
}

/*
 * Reserve more ticks: make a mark above them durable, before IDs of them are
 * handed out.  If another backend is about to do it, this is waited for only if
 * required.  In any case the caller has to look at the word again: it is lifted
 * when the mark is read for the first time.
 *
 * A disk that needs longer to flush than a reserve lasts would leave nothing of
 * it to use, so what is reserved lasts for at least two flushes like the last.
 */
static void
reserve(bool required)
{
	int64		leap = 0;
	int64		wall_way = 0;
	TimestampTz now;
	int64		next;
	Plan		what;

	if (!get_reserve_lock(required))
		return;

	now = GetCurrentTimestamp();
	what = plan(pg_atomic_read_u64(&generator->word), now, &next);
	if (!generator->mark_known)
		recover_mark();
	else if ((what == PLAN_CLAIM || what == PLAN_MOVE) && reserve_is_low(next))
	{
		instr_time	start;
		instr_time	took;
		int64		flushes = 2 * generator->flush_us / layout.tick_us + 1;
		int64		end = next + Max(reserve_ticks(),
									 Min(flushes, MAX_RESERVE_US / layout.tick_us));

		end = Min(end, layout.last_tick + 1);
		INSTR_TIME_SET_CURRENT(start);
		snowflake_mark_raise((uint64) end <<
							 layout.scheme.shift[SNOWFLAKE_TIMESTAMP]);
		pg_atomic_write_u64(&generator->reserved, end);
		pg_atomic_fetch_add_u64(&generator->reserves, 1);

		INSTR_TIME_SET_CURRENT(took);
		INSTR_TIME_SUBTRACT(took, start);
		generator->flush_us = INSTR_TIME_GET_MICROSEC(took);
		leap = clock_leap(now, start, &wall_way);
	}

	LWLockRelease(generator->reserve_lock);
	ConditionVariableBroadcast(&generator->reserve_done);

	if (leap > CLOCK_LEAP_US)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("clock leapt ahead by " INT64_FORMAT " ms",
						leap / 1000),
				 errdetail("Since snowflake IDs were reserved last, the wall clock went " INT64_FORMAT " ms and the monotonic clock " INT64_FORMAT " ms.",
						   wall_way / 1000, (wall_way - leap) / 1000),
				 errhint("After a suspended machine was resumed this is in order. Otherwise check the clock: IDs have followed it, and wait or fail if it is set back.")));
}

/*
 * Set the mark to any value, and go on from there as after a start.
 */
void
snowflake_set_mark(int64 mark)
{
	uint64		before;
	uint64		word;

	check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot set the mark of snowflake IDs during recovery"),
				 errhint("Use the primary server; its mark is replicated.")));

	while (!get_reserve_lock(true))
		;
	before = snowflake_mark_read();

	/* Nothing is handed out from here until somebody has read the mark. */
	LWLockAcquire(generator->lock, LW_EXCLUSIVE);
	pg_atomic_write_u64(&generator->reserved, 0);
	word = pg_atomic_read_u64(&generator->word);
	while (!change_word(&word, empty_word(), layout.number_limit))
		;
	LWLockRelease(generator->lock);
	generator->mark_known = false;

	snowflake_mark_set(mark);
	LWLockRelease(generator->reserve_lock);
	ConditionVariableBroadcast(&generator->reserve_done);

	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("mark of snowflake IDs was set from " UINT64_FORMAT " to " INT64_FORMAT,
					before, mark),
			 errdetail("IDs at or above the new mark that were handed out before may be handed out again.")));
}

/*
 * Move the word to a later tick and take as many of its numbers as are wanted,
 * or all.  Return how many there are, with the first ID.  Return 0 if the
 * caller should look again: another backend moved the word, or some time was
 * spent waiting, which naps counts.
 */
static int
move_word(int wanted, int64 *first, int *naps)
{
	uint64		word = pg_atomic_read_u64(&generator->word);
	TimestampTz now = GetCurrentTimestamp();
	int64		next;
	uint64		number;
	int			taken = 0;

	switch (plan(word, now, &next))
	{
		case PLAN_MOVE:
			break;
		case PLAN_CLAIM:
			return 0;
		case PLAN_WAIT_SEQUENCE:
			wait_for_sequence(next, now, naps);
			return 0;
		case PLAN_WAIT_CLOCK:
			wait_for_clock(word_tick(word), now, naps);
			return 0;
		case PLAN_BEFORE_EPOCH:
			fail_before_epoch(now);
		case PLAN_USED_UP:
			fail_used_up(now);
	}

	if (!is_reserved(next))
	{
		reserve(true);
		return 0;
	}

	if (!LWLockAcquireOrWait(generator->lock, LW_EXCLUSIVE))
		return 0;
	word = pg_atomic_read_u64(&generator->word);
	now = GetCurrentTimestamp();
	if (plan(word, now, &next) == PLAN_MOVE && is_reserved(next))
	{
		/* Claims change the number meanwhile, and so perhaps the start. */
		do
		{
			number = start_number(word, wanted);
			taken = Min((uint64) wanted, layout.number_limit - number);
		} while (!change_word(&word, make_word(next, number + taken), number));
		*first = make_id(next, number);
	}
	LWLockRelease(generator->lock);

	if (taken > 0 && reserve_is_low(next))
		reserve(false);
	return taken;
}

/*
 * Fail if this server makes no IDs.
 */
static inline void
check_makes_ids(void)
{
	check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot make snowflake IDs during recovery"),
				 errdetail("A standby makes none, so that none is made twice when it is promoted."),
				 errhint("Use the primary server.")));
}

/*
 * May numbers of this tick be claimed now?  As plan() would say, but without
 * its divisions.
 */
static inline bool
is_current(int64 tick)
{
	int64		lead = tick_start(tick) - GetCurrentTimestamp();

	return lead > -layout.tick_us && lead <= max_lead_us();
}

/*
 * Make an ID.
 *
 * Fails during recovery, if the clock is too far behind the last ID or before
 * the epoch, and if the timestamp field is used up.  May wait for the clock.
 */
int64
snowflake_generate(void)
{
	/*
	 * The word as this backend saw it last, with a number left, or 0.  As
	 * long as the clock is in its tick the word is most likely in that tick
	 * still.  Where many backends make IDs, the word's cache line then
	 * travels once for an ID, for the fetch-add, and not for a look at the
	 * word before it, too.
	 */
	static uint64 seen = 0;
	int64		id;
	int			naps = 0;

	check_makes_ids();
	if (seen == 0)
		seen = pg_atomic_read_u64(&generator->word);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (numbers_left(seen) && is_current(word_tick(seen)))
		{
			seen = pg_atomic_fetch_add_u64(&generator->word, 1);
			if (numbers_left(seen))
				return make_id(word_tick(seen), word_number(seen));
		}
		if (move_word(1, &id, &naps) > 0)
			return id;
		seen = pg_atomic_read_u64(&generator->word);
	}
}

/*
 * Make a block of IDs, as many as are wanted or as one tick has.  Returns how
 * many there are, at least 1; the first is first, and each of the others is step
 * more than the one before.  Fails and waits as making a single one does.
 *
 * The numbers are claimed by compare-and-swap: a fetch-add of as many could, if
 * all backends came too late, carry into the tick.
 */
int
snowflake_generate_block(int wanted, int64 *first, int64 *step)
{
	int			taken;
	int			naps = 0;

	check_makes_ids();
	*step = snowflake_field_put(&layout.scheme, SNOWFLAKE_SEQUENCE, 1);
	do
	{
		uint64		word;

		CHECK_FOR_INTERRUPTS();
		word = pg_atomic_read_u64(&generator->word);
		while (numbers_left(word) && is_current(word_tick(word)))
		{
			taken = Min((uint64) wanted,
						layout.number_limit - word_number(word));
			*first = make_id(word_tick(word), word_number(word));
			if (pg_atomic_compare_exchange_u64(&generator->word, &word,
											   word + taken))
				return taken;
		}
		taken = move_word(wanted, first, &naps);
	} while (taken == 0);

	return taken;
}

/*
 * The IDs made since the server's start, and the word at that moment.  Takes no
 * lock, so that nobody is held up.
 */
static uint64
count_ids(uint64 *word)
{
	for (;;)
	{
		uint64		changes = pg_atomic_read_u64(&generator->changes);
		uint64		before;

		pg_read_barrier();
		before = pg_atomic_read_u64(&generator->ids_before);
		*word = pg_atomic_read_u64(&generator->word);
		pg_read_barrier();
		if (changes % 2 == 0 &&
			changes == pg_atomic_read_u64(&generator->changes))
			return before + numbers_used(*word);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * What the generator is, did and waited for.
 */
void
snowflake_get_stat(SnowflakeStat *stat)
{
	int			shift = layout.scheme.shift[SNOWFLAKE_TIMESTAMP];
	uint64		word;

	check_loaded();
	stat->scheme = &layout.scheme;
	stat->datacenter_id = layout.datacenter_id;
	stat->worker_id = layout.worker_id;

	stat->ids = count_ids(&word) -
		pg_atomic_read_u64(&generator->ids_reset);
	stat->last_timestamp = 0;
	if (word_tick(word) > layout.base_tick &&
		word_tick(word) >= (int64) pg_atomic_read_u64(&generator->first_tick))
		stat->last_timestamp = tick_start(word_tick(word));

	stat->mark = snowflake_mark_read();
	stat->mark_timestamp = 0;
	if (stat->mark > 0 && (int64) (stat->mark >> shift) <= layout.last_tick + 1)
		stat->mark_timestamp = tick_start((int64) (stat->mark >> shift));
	stat->expires_at = tick_start(layout.last_tick + 1);

	stat->sequence_waits = pg_atomic_read_u64(&generator->sequence.waits);
	stat->sequence_wait_us = pg_atomic_read_u64(&generator->sequence.wait_us);
	stat->clock_waits = pg_atomic_read_u64(&generator->clock.waits);
	stat->clock_wait_us = pg_atomic_read_u64(&generator->clock.wait_us);
	stat->clock_errors = pg_atomic_read_u64(&generator->clock_errors);
	stat->max_clock_backward_us =
		pg_atomic_read_u64(&generator->max_clock_backward_us);
	stat->reserves = pg_atomic_read_u64(&generator->reserves);
	stat->stats_reset =
		(TimestampTz) pg_atomic_read_u64(&generator->stats_reset);
}

/*
 * Count from 0 again.
 */
void
snowflake_reset_stat(void)
{
	uint64		word;

	check_loaded();
	pg_atomic_write_u64(&generator->ids_reset, count_ids(&word));
	pg_atomic_write_u64(&generator->sequence.waits, 0);
	pg_atomic_write_u64(&generator->sequence.wait_us, 0);
	pg_atomic_write_u64(&generator->clock.waits, 0);
	pg_atomic_write_u64(&generator->clock.wait_us, 0);
	pg_atomic_write_u64(&generator->clock_errors, 0);
	pg_atomic_write_u64(&generator->max_clock_backward_us, 0);
	pg_atomic_write_u64(&generator->reserves, 0);
	pg_atomic_write_u64(&generator->stats_reset, GetCurrentTimestamp());
}
