/*-------------------------------------------------------------------------
 *
 * orders.cpp
 *	  Orders of memory accesses of the generator, for processors that change
 *	  them, such as ARM: with Relacy, which tries all interleavings with up to
 *	  SWITCHES switches to another thread that need not be, and all values that a
 *	  load may return by the memory model of C++.
 *
 * What processes exchange without a lock is modelled, by the names of src:
 *
 *	given		a waiter finds the numbers that it was given (generator.c)
 *	grant		a number is used with the worker ID of its tick only, although the
 *				worker ID changes meanwhile (generator.c, state.c)
 *	recovered	whoever sees that the mark was read sees what was read (reserve.c)
 *	settled		whoever sees ticks reserved sees whether synchronous standbys have to
 *				confirm that (reserve.c)
 *	ranges		a claim gets a number of the range that it claimed from, although
 *				another one takes its place meanwhile (numbers.c, slots.c)
 *
 * An atomic variable of PostgreSQL is read and written as relaxed, a
 * read-modify-write is acquire and release (which is what ARM's instruction is; the
 * server promises more), and pg_read_barrier() and pg_write_barrier() are fences.
 * An LWLock is a mutex.  Plain variables must not be accessed at the same time.
 *
 * script/tests/model compiles it once, and once for each bug, -DBUG=..., which has
 * to be found:
 *
 *	GIVEN_WRITE, GIVEN_READ, GRANT_WRITE, GRANT_READ, RECOVERED_WRITE, RECOVERED_READ,
 *	SETTLED_WRITE, SETTLED_READ
 *				without this barrier
 *	GRANT_CHECK	the generation is not looked at again after the claim
 *	GRANT_FIRST	the generation is raised before the word is exhausted
 *	RANGE_INVALID, RANGE_READ, RANGE_MOVE
 *				without this barrier
 *	RANGE_CHECK	the generation is not looked at after the range was read
 *	RANGE_NEXT	the word moves to the generation of the reserve that is dropped
 *	RANGE_VALID	the segment is not invalid while it is changed
 *
 * The exit status is 0 if nothing is wrong.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/model/orders.cpp
 *
 *-------------------------------------------------------------------------
 */
#include <relacy/relacy.hpp>

enum Bug
{
	NONE,
	GIVEN_WRITE,
	GIVEN_READ,
	GRANT_WRITE,
	GRANT_READ,
	GRANT_CHECK,
	GRANT_FIRST,
	RECOVERED_WRITE,
	RECOVERED_READ,
	SETTLED_WRITE,
	SETTLED_READ,
	RANGE_INVALID,
	RANGE_READ,
	RANGE_CHECK,
	RANGE_VALID,
	RANGE_MOVE,
	RANGE_NEXT
};

#ifndef BUG
#define BUG NONE
#endif

typedef rl::atomic<int> Atomic;

#define READ(atomic)			(atomic)($).load(rl::mo_relaxed)
#define WRITE(atomic, value)	(atomic)($).store(value, rl::mo_relaxed)
#define WITHOUT(bug, barrier)	if (BUG != (bug)) rl::atomic_thread_fence(barrier, $)
#define read_barrier(bug)		WITHOUT(bug, rl::mo_acquire)
#define write_barrier(bug)		WITHOUT(bug, rl::mo_release)

/*
 * Two rounds of a waiter that joins the queue, and of one who serves it.
 */
struct Given : rl::test_suite<Given, 2>
{
	rl::mutex	lock;
	rl::var<bool> queued;
	rl::var<int> first;
	Atomic		given;

	void before()
	{
		queued($) = false;
		first($) = 0;
		WRITE(given, 0);
	}

	void wait_in_queue(int round)
	{
		lock.lock($);
		queued($) = true;
		WRITE(given, 0);
		lock.unlock($);

		/* take_given() */
		while (READ(given) == 0)
			rl::yield(1, $);
		read_barrier(GIVEN_READ);
		RL_ASSERT(first($) == round);
		WRITE(given, 0);
	}

	void serve_queue(int round)
	{
		bool		served = false;

		while (!served)
		{
			lock.lock($);
			if (queued($))
			{
				RL_ASSERT(READ(given) == 0);
				queued($) = false;
				first($) = round;
				write_barrier(GIVEN_WRITE);
				WRITE(given, 1);
				served = true;
			}
			lock.unlock($);
			if (!served)
				rl::yield(1, $);
		}
	}

	void thread(unsigned number)
	{
		for (int round = 1; round <= 2; round++)
		{
			if (number == 0)
				wait_in_queue(round);
			else
				serve_queue(round);
		}
	}
};

/*
 * A worker ID is replaced by another one, for ticks from NEW_TICK on.  Meanwhile one
 * backend claims numbers, and one moves the word.
 */
struct GrantChange : rl::test_suite<GrantChange, 3>
{
	enum
	{
		LIMIT = 2,				/* numbers of a tick */
		TICK = 8,				/* of the word */
		NEW_TICK = 4
	};

	rl::mutex	lock;
	Atomic		word;
	Atomic		generation;
	Atomic		worker;			/* plain, but may be read while it changes */
	rl::var<int> from;
	int			used[2 * NEW_TICK][LIMIT];

	void before()
	{
		WRITE(word, 1 * TICK);
		WRITE(generation, 1);
		WRITE(worker, 1);
		from($) = 0;
		memset(used, 0, sizeof(used));
	}

	/* An ID: of a tick of this worker ID, and nobody else has it. */
	void use(int claimed, int with)
	{
		int			tick = claimed / TICK;
		int			id = claimed % TICK;

		RL_ASSERT(id < LIMIT);
		RL_ASSERT(with == (tick >= NEW_TICK ? 2 : 1));
		RL_ASSERT(used[tick][id]++ == 0);
	}

	/* snowflake_generate(), without what is behind the lock */
	void claim()
	{
		int			bits_generation = 0;
		int			bits = 0;

		for (int i = 0; i < 3; i++)
		{
			int			number = READ(generation);
			int			seen;

			if (number != bits_generation)
			{
				read_barrier(GRANT_READ);
				bits = READ(worker);
				bits_generation = number;
			}
			if (READ(word) % TICK >= LIMIT)
				continue;
			seen = word($).fetch_add(1, rl::mo_acq_rel);
			if (seen % TICK < LIMIT &&
				(BUG == GRANT_CHECK || READ(generation) == number))
				use(seen, bits);
		}
	}

	/* enter_tick() */
	void move()
	{
		lock.lock($);
		int			number = READ(generation);
		int			bits = READ(worker);
		int			old = READ(word);
		int			tick = old / TICK + 1;

		if (from($) > tick)
			tick = from($);
		while (!word($).compare_exchange_strong(old, tick * TICK + 1, rl::mo_acq_rel))
			;
		RL_ASSERT(READ(generation) == number);
		use(tick * TICK, bits);
		lock.unlock($);
	}

	/* snowflake_change_worker_id() */
	void change()
	{
		lock.lock($);
		if (BUG == GRANT_FIRST)
			WRITE(generation, 2);

		int			old = READ(word);
		int			exhausted = (old / TICK) * TICK + LIMIT;

		while (old < exhausted &&
			   !word($).compare_exchange_strong(old, exhausted, rl::mo_acq_rel))
			;
		WRITE(worker, 2);
		from($) = NEW_TICK;
		write_barrier(GRANT_WRITE);
		WRITE(generation, 2);
		lock.unlock($);
	}

	void thread(unsigned number)
	{
		if (number == 0)
			claim();
		else if (number == 1)
			move();
		else
			change();
	}
};

/*
 * One backend reads the mark, and another one sees that it was read.
 */
struct Recovered : rl::test_suite<Recovered, 2>
{
	Atomic		reserved;
	Atomic		word;
	rl::var<int> first_tick;

	void before()
	{
		WRITE(reserved, 0);
		WRITE(word, 0);
		first_tick($) = 0;
	}

	void thread(unsigned number)
	{
		if (number == 0)
		{
			/* snowflake_recover_mark() */
			first_tick($) = 5;
			WRITE(word, 4);
			write_barrier(RECOVERED_WRITE);
			WRITE(reserved, 5);
		}
		else if (READ(reserved) != 0)
		{
			/* snowflake_take_snapshot() */
			read_barrier(RECOVERED_READ);
			RL_ASSERT(READ(word) == 4);
			RL_ASSERT(first_tick($) == 5);
		}
	}
};

/*
 * Ticks are reserved, and standbys have to have the mark that reserved them.
 */
struct Settled : rl::test_suite<Settled, 2>
{
	Atomic		reserved;
	Atomic		mark_lsn;

	void before()
	{
		WRITE(reserved, 0);
		WRITE(mark_lsn, 0);
	}

	void thread(unsigned number)
	{
		if (number == 0)
		{
			/* settle_pending_mark() */
			WRITE(mark_lsn, 1);
			write_barrier(SETTLED_WRITE);
			WRITE(reserved, 1);
		}
		else if (READ(reserved) != 0)
		{
			/* snowflake_mark_is_unconfirmed() */
			read_barrier(SETTLED_READ);
			RL_ASSERT(READ(mark_lsn) == 1);
		}
	}
};

/*
 * Two backends claim numbers of a range, and one of them makes the reserve the
 * current range.  Meanwhile the worker drops both ranges, or gets another one.  The
 * range of a generation has numbers of its own.
 */
struct RangeClaims : rl::test_suite<RangeClaims, 3>
{
	enum
	{
		COUNT = 2,				/* numbers of the first range */
		GENERATION = 8,			/* of the word */
		GENERATIONS = 5,
		INVALID = -1
	};

	rl::mutex	lock;
	Atomic		word;

	/* Plain but for the generation, but may be read while they change. */
	Atomic		generation[2];
	Atomic		first[2];
	Atomic		count[2];
	int			used[GENERATIONS][GENERATION];

	/* The first number of a range when it became the current one. */
	int			lowest[GENERATIONS];
	int			dropped;		/* a generation, or 0 */

	/* snowflake_set_reserve(): each range has one number more than the last. */
	void set_range(int number, int given_up = 0)
	{
		int			segment = number % 2;

		if (BUG != RANGE_VALID)
			WRITE(generation[segment], INVALID);
		write_barrier(RANGE_INVALID);
		WRITE(first[segment], number * GENERATION + given_up);
		WRITE(count[segment], COUNT + number - 1 - given_up);
		WRITE(generation[segment], number);
	}

	void before()
	{
		WRITE(word, 1 * GENERATION);
		set_range(1);
		set_range(2);
		memset(used, 0, sizeof(used));
		memset(lowest, 0, sizeof(lowest));
		dropped = 0;
	}

	/* move_word() */
	void move(int number)
	{
		write_barrier(RANGE_MOVE);
		lowest[number] = READ(first[number % 2]);
		WRITE(word, number * GENERATION);
	}

	/* claim() */
	bool claim()
	{
		int			claimed = word($).fetch_add(1, rl::mo_acq_rel);
		int			number = claimed / GENERATION;
		int			segment = number % 2;
		int			start;
		int			limit;

		start = READ(first[segment]);
		limit = READ(count[segment]);
		read_barrier(RANGE_READ);
		if (BUG != RANGE_CHECK && READ(generation[segment]) != number)
			return false;
		if (claimed % GENERATION >= limit)
			return false;

		int			value = start + claimed % GENERATION;

		RL_ASSERT(value / GENERATION == number && number != dropped);
		RL_ASSERT(value < number * GENERATION + COUNT + number - 1);
		RL_ASSERT(value >= lowest[number]);
		RL_ASSERT(used[number][value % GENERATION]++ == 0);
		return true;
	}

	/* snowflake_advance() */
	void advance()
	{
		lock.lock($);

		int			number = READ(word) / GENERATION;
		int			next = number + 1;
		bool		is_left = READ(generation[number % 2]) == number &&
			READ(word) % GENERATION < READ(count[number % 2]);

		if (!is_left)
		{
			/* snowflake_set_back_used() */
			WRITE(word, number * GENERATION +
				  (READ(generation[number % 2]) == number ? READ(count[number % 2]) : 0));
			if (READ(generation[next % 2]) == next)
				move(next);
		}
		lock.unlock($);
	}

	/*
	 * snowflake_drop_ranges() or snowflake_give_up(), or the range that comes
	 * next
	 */
	void change(bool drops)
	{
		lock.lock($);

		int			number = READ(word) / GENERATION;

		if (number == 1 && drops)
		{
			WRITE(generation[0], INVALID);
			WRITE(generation[1], INVALID);
			dropped = 2;
			move(BUG == RANGE_NEXT ? 2 : 3);
			set_range(BUG == RANGE_NEXT ? 3 : 4);
		}
		else if (number == 1)
			set_range(2, 1);
		else
			set_range(number + 1);
		lock.unlock($);
	}

	void thread(unsigned number)
	{
		if (number == 0)
			claim();
		else if (number == 1)
		{
			for (int i = 0; i < 3; i++)
				if (!claim())
					advance();
		}
		else
			change(rl::rand(2));
	}
};

template <typename Model>
static bool
is_right()
{
	rl::test_params params;

	params.search_type = rl::sched_bound;
	params.context_bound = SWITCHES;
	params.execution_depth_limit = 10000;
	return rl::simulate<Model>(params);
}

int
main()
{
	return is_right<Given>() && is_right<GrantChange>() && is_right<Recovered>() &&
		is_right<Settled>() && is_right<RangeClaims>() ? 0 : 1;
}
