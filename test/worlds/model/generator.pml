/*-------------------------------------------------------------------------
 *
 * generator.pml
 *	  One server: the word, the queue, the mark and the grant, as a model of
 *	  which Spin explores all interleavings.
 *
 * Names are those of src/generator/generator.c, reserve.c and grant.c.  Each atomic
 * sequence does at most one thing that others see: besides that it uses only
 * what is its own, or what a lock protects that is held, and it may begin with
 * taking that lock and end with releasing it.  A loop around a
 * compare-and-swap is the one that succeeds.  Time does not matter to what is
 * checked, so there is no clock: where snowflake_plan() decides by it, the
 * model takes every decision.
 *
 * An ID is (worker, tick, number) here.  The mark is a tick: above all IDs of
 * the ticks before it.  What the registry does is in registry.pml; here it
 * gives a range of ticks that it gave to nobody before.  Worker ID 1 was another
 * server's before, which generated all of its IDs.
 *
 * After a crash of a backend, the server still has its grant, while the word is
 * where the mark is.  After a crash of the whole server, and a failover, it has
 * none.  No mark is written when a grant is installed, and the clock may then be
 * ahead of the word by any number of ticks: a grant may begin later than the next
 * tick, and after the crash the clock may be before that.  (These are explored only
 * with crashes.)
 *
 * script/tests/model has the sizes and the list of seeded bugs.
 *
 * test/worlds/model/generator.pml
 *
 *-------------------------------------------------------------------------
 */
#ifndef BACKENDS
#define BACKENDS	3
#endif
#ifndef CALLS
#define CALLS		1			/* of each backend */
#endif
#ifndef TICKS
#define TICKS		3			/* ticks are 1 to TICKS - 1 */
#endif
#ifndef CANCELS
#define CANCELS		0			/* are calls in the queue cancelled? */
#endif
#ifndef MARKS
#define MARKS		0			/* is there a mark?  0: all that is granted is
								 * reserved */
#endif
#ifndef CRASHES
#define CRASHES		0			/* crashes, or failovers to the standby */
#endif
#ifndef STANDBY
#define STANDBY		0			/* is there a synchronous standby? */
#endif
#ifndef GRANTS
#define GRANTS		0			/* answers of the registry; 0: there is none */
#endif
#ifndef RESETS
#define RESETS		0			/* calls of snowflake_set_mark() */
#endif

/* Seeded bugs. */
#define MOVE_UNLOCKED		1	/* the tick is moved without the lock */
#define NO_ROOM				2	/* there is none for late claims */
#define LATE_USED			3	/* a number past the limit is used */
#define QUEUE_FORGOTTEN		4	/* given numbers may be claimed as well */
#define GIVEN_KEPT			5	/* a call finds what a cancelled one was given */
#define NOT_FLUSHED			6	/* the mark counts before its flush */
#define NOT_ON_STANDBY		7	/* ... before the standby has it */
#define NOT_LIFTED			8	/* the word begins in the mark's last tick */
#define NOT_READ_AGAIN		9	/* the grant number, after the claim */
#define NUMBER_FIRST		10	/* it is raised before all else */
#define NOT_EXHAUSTED		11	/* a grant leaves the word as it is */
#define RESERVED_NOT_CUT	12	/* ... and what is reserved */
#define PENDING_NOT_CUT		13	/* a pending mark counts past the grant */
#define GIVEN_AS_WORD		14	/* the waiter adds the worker ID */
#define STALE_ANSWER		15	/* the answer counts though there was a reset */
#define FROM_WORD			16	/* ... and its grant begins at the word, not at
								 * the ID that the registry was told */
#define GRANT_KEPT			17	/* a reset keeps the grant */
#define NOT_SEALED			18	/* what is given back may still be used */
#define KEPT_FROM_IGNORED	19	/* a kept grant is used from the mark on */
#define KEPT_SEALED			20	/* a grant that is given back is kept */
#define KEPT_RESET			21	/* ... or one that a reset dropped */
#ifndef BUG
#define BUG			0
#endif

/* The word: the number has room for one late claim of each backend. */
#define LIMIT		2
#define ROOM		(BACKENDS * (BUG != NO_ROOM))
#define WORD(t, n)	((t) * (LIMIT + ROOM + 1) + (n))
#define TICK(w)		((w) / (LIMIT + ROOM + 1))
#define NUMBER(w)	((w) % (LIMIT + ROOM + 1))
#define LEFT(w)		(NUMBER(w) < LIMIT)
#define EMPTY		WORD(0, LIMIT)
#define BIT(w)		(1 << (TICK(w) * LIMIT + NUMBER(w)))
#define ORDER(w, k)	((TICK(w) * WORKERS + (k)) * LIMIT + NUMBER(w))

/* The first tick after the mark was read. */
#define FIRST_TICK	IF(BUG == KEPT_FROM_IGNORED, MAX(mark, 1), MAX(MAX(mark, 1), from))

#define RESERVE		1			/* so many ticks are reserved at once */
#define WORKERS		3
#define NOBODY		WORKERS		/* no worker ID */
#define NONE		255

#define IF(c, a, b)	(((c) != 0) * (a) + ((c) == 0) * (b))
#define MIN(a, b)	IF((a) < (b), a, b)
#define MAX(a, b)	IF((a) > (b), a, b)

/* Shared memory. */
byte	word = EMPTY;
bool	lock, reserve_lock;
chan	queue = [BACKENDS] of { byte };
bool	queued[BACKENDS];
byte	given[BACKENDS];		/* a word, or 0 for nothing */
byte	given_worker[BACKENDS];
byte	reserved = (!MARKS) * TICKS;	/* 0: the mark was not read */
byte	pending;				/* what may be reserved when the standby has it */
byte	grant_number;
byte	constant;
byte	from;
byte	until = TICKS;

/* What is kept of the grant when a backend crashes. */
byte	kept_worker, kept_from, kept_until;

/* The durable state: here, and on the standby. */
byte	mark = (GRANTS > 0), standby_mark;

/* The registry: the end of what it gave of each worker ID. */
byte	stored_until[WORKERS];

/* What is checked. */
byte	starts, resets;
byte	received;				/* the last ID that was received */
int		made[WORKERS];			/* all of them, a bit each */
int		granted[WORKERS];		/* ticks that are granted, a bit each */

/*
 * A client receives an ID.  If there was a reset since it asked, it may be one
 * from before.
 */
inline receive(received_word, received_worker)
{
	assert(received_worker != NOBODY && LEFT(received_word));
	assert(!(made[received_worker] & BIT(received_word)));
	made[received_worker] = made[received_worker] | BIT(received_word);
	if
	:: GRANTS -> assert(granted[received_worker] & (1 << TICK(received_word)))
	:: else
	fi;
	if
	:: my_reset == resets ->
		assert(ORDER(received_word, received_worker) > floor);
		assert(!MARKS || TICK(received_word) < mark);
		assert(!STANDBY || TICK(received_word) < standby_mark);
		received = MAX(received, ORDER(received_word, received_worker))
	:: else
	fi
}

/* With the lock held: exhaust the word, and let it be at a tick at least. */
inline lift_word(tick)
{
	word = WORD(MAX(TICK(word), tick), LIMIT)
}

/* The reserve lock is held from the first step to the last. */
inline snowflake_reserve()
{
	atomic {
		reserve_lock == 0 -> reserve_lock = 1;
		/* settle_pending_mark() */
		if
		:: pending && (!STANDBY || standby_mark >= pending ||
					   BUG == NOT_ON_STANDBY) ->
			if
			:: BUG == PENDING_NOT_CUT -> reserved = pending
			:: else -> reserved = MIN(pending, MAX(until, 1))
			fi;
			pending = 0
		:: else
		fi
	};
	if
	:: reserved == 0 ->
		/* recover_mark() */
		atomic {
			lock == 0;
			if
			:: BUG == NOT_LIFTED -> word = MAX(word, WORD(MAX(mark, 1) - 1, 0))
			:: else -> lift_word(FIRST_TICK - 1)
			fi
		};
		atomic { reserved = FIRST_TICK; reserve_lock = 0 }
	:: reserved && !pending ->
		/* raise_mark(), but not past the grant */
		atomic {
			end = MIN(TICK(word) + 1 + RESERVE, MIN(until, TICKS));
			if
			:: end <= reserved -> end = reserved
			:: BUG == NOT_FLUSHED
			:: else -> mark = MAX(mark, end)
			fi
		};
		atomic {
			if
			:: end == reserved
			:: STANDBY && BUG != NOT_ON_STANDBY -> pending = end
			:: else -> reserved = end
			fi;
			end = 0;
			reserve_lock = 0
		}
	:: else -> reserve_lock = 0
	fi
}

/* With the lock held: move the word to the next tick, and serve the queue. */
inline enter_tick()
{
	atomic {
		/* Numbers given to the queue come first, then the caller's own. */
		count = MIN(len(queue), LIMIT);
		taken = !queued[me] && count < LIMIT;
		word = WORD(next, IF(BUG == QUEUE_FORGOTTEN, 0, count) + taken);
		if
		:: taken -> id = WORD(next, count); worker = constant
		:: else
		fi;
		count = WORD(next, 0);
		do
		:: len(queue) && LEFT(count) ->
			queue?b;
			queued[b] = 0;
			given[b] = count;
			given_worker[b] = constant;
			count++
		:: else -> break
		od;
		if
		:: id == 0 && given[me] ->
			id = given[me];
			worker = given_worker[me];
			given[me] = 0
		:: else
		fi;
		b = 0; count = 0; taken = 0; next = 0;
		lock = 0
	}
}

proctype backend(byte me)
{
	byte seen, id, worker, next, count, end, b, number, calls, floor;
	byte my_constant, cached = (GRANTS > 0) * NONE;
	byte my_start, my_reset;
	bool waiting, taken;

	do
	:: {
		/* snowflake_generate() */
		atomic { calls < CALLS -> calls++; floor = received; my_reset = resets };
		do
		:: !waiting && LEFT(seen) ->
			atomic {
				number = grant_number;
				if
				:: number == cached -> goto claim
				:: else
				fi
			};
			atomic { my_constant = constant; cached = number };
claim:		atomic {
				seen = word;
				word++;
				if
				:: LEFT(seen) || BUG == LATE_USED
				:: else -> number = 0; goto move
				fi
			};
			atomic {
				if
				:: number == grant_number || BUG == NOT_READ_AGAIN ->
					id = seen; worker = my_constant; number = 0;
					break
				:: else -> number = 0
				fi
			}
		:: true ->
move:		if
			:: atomic { waiting && given[me] ->
					/* take_given() */
					id = given[me];
					worker = given_worker[me];
					if
					:: BUG == GIVEN_AS_WORD -> worker = constant
					:: else
					fi;
					given[me] = 0;
					break
				}
			:: CANCELS && waiting -> break
			:: MARKS && reserved <= TICK(word) + 1 -> snowflake_reserve()
			:: atomic { lock == 0 && !LEFT(word) && !waiting && reserved ->
					/* join_queue() */
					if
					:: queued[me]		/* the place of a cancelled call */
					:: else -> queue!me; queued[me] = 1
					fi;
					if
					:: BUG == GIVEN_KEPT
					:: else -> given[me] = 0
					fi;
					waiting = 1
				}
			:: atomic { lock == 0 && LEFT(word) && !(waiting && given[me]) ->
					/* claim_numbers() */
					id = word; worker = constant;
					word++;
					break
				}
			:: atomic { (lock == 0 || BUG == MOVE_UNLOCKED) &&
						TICK(word) + 1 < reserved && !(waiting && given[me]) ->
					lock = (BUG != MOVE_UNLOCKED);
					next = TICK(word) + 1
				};
				enter_tick();
				if
				:: atomic { id -> break }
				:: else
				fi
			fi;
			if
			:: waiting
			:: else -> seen = word
			fi
		od;
		atomic {
			if
			:: id -> receive(id, worker)
			:: else
			fi;
			id = 0; worker = 0; waiting = 0; floor = 0; my_reset = 0;
			if
			:: calls == CALLS -> seen = 0; my_constant = 0; cached = 0
			:: else
			fi
		}
	   }
	   unless {
		atomic {
			starts != my_start ->
			my_start = starts;
			seen = 0; id = 0; worker = 0; number = 0; waiting = 0; next = 0;
			floor = 0; my_reset = 0;
			count = 0; end = 0; b = 0; taken = 0; my_constant = 0; cached = (GRANTS > 0) * NONE
		}
	   }
	od
}

/* Keep a grant; it is protected by a checksum, so it is kept whole or not. */
inline keep_grant(new_worker, new_from, new_until)
{
	atomic {
		kept_worker = new_worker;
		kept_from = new_from;
		kept_until = new_until
	}
}

/*
 * Change the grant, in this order, and release both locks, which are held.
 */
inline set_grant(first_tick, new_constant, new_until)
{
	if
	:: !CRASHES || (BUG == KEPT_SEALED && new_constant == NOBODY)
	:: else -> keep_grant(new_constant, first_tick, new_until)
	fi;
	if
	:: BUG == NUMBER_FIRST -> grant_number++
	:: else
	fi;
	if
	:: BUG == NOT_EXHAUSTED
	:: BUG == FROM_WORD -> lift_word(0)
	:: else -> lift_word(first_tick - 1)
	fi;
	atomic {
		constant = new_constant;
		from = IF(CRASHES, first_tick, 0);
		until = new_until;
		if
		:: BUG == RESERVED_NOT_CUT
		:: else -> reserved = MIN(IF(MARKS, reserved, until), MAX(until, 1))
		fi
	};
	atomic {
		if
		:: BUG == NUMBER_FIRST
		:: else -> grant_number++
		fi;
		lock = 0;
		reserve_lock = 0
	}
}

/* The background worker that speaks to the registry. */
proctype grant_worker()
{
	byte next, number, worker, answer, answers, my_start;

	do
	:: {
		atomic { answers < GRANTS && reserved -> answers++; number = grant_number };
		if
		:: atomic { constant != NOBODY && stored_until[constant] < TICKS ->
				/* Extend. */
				worker = constant;
				granted[worker] = granted[worker] | (1 << stored_until[worker]);
				stored_until[worker]++;
				answer = stored_until[worker]
			};
			atomic {
				reserve_lock == 0;
				if
				:: number == grant_number || BUG == STALE_ANSWER ->
					kept_until = IF(CRASHES, answer, 0);
					until = answer;
					reserved = IF(MARKS, reserved, until)
				:: else
				fi
			}
		:: atomic { TICK(word) + 1 < TICKS ->
				/*
				 * Get a worker ID that is exhausted, from the next tick on, or
				 * from that of the clock.
				 */
				next = TICK(word) + 1;
				do
				:: CRASHES && next + 1 < TICKS -> next++
				:: break
				od;
				do
				:: stored_until[worker] <= next -> break
				:: (CRASHES || stored_until[worker] > next) && worker + 1 < WORKERS -> worker++
				:: worker + 1 == WORKERS && stored_until[worker] > next -> goto over
				od;
				answer = next + 1;
				if
				:: answer < TICKS -> answer = TICKS
				:: true
				fi;
				stored_until[worker] = answer;
				granted[worker] = granted[worker] | ((1 << answer) - (1 << next))
			};
			atomic { reserve_lock == 0 && lock == 0 -> reserve_lock = 1; lock = 1 };
			if
			:: number == grant_number || BUG == FROM_WORD ->
				set_grant(next, worker, answer)
			:: else -> atomic { lock = 0; reserve_lock = 0 }
			fi
		:: atomic { reserve_lock == 0 && lock == 0 && constant != NOBODY ->
				/* Give back what is left, after it was sealed. */
				worker = constant;
				answer = TICK(word) + 1;
				reserve_lock = (BUG != NOT_SEALED);
				lock = (BUG != NOT_SEALED)
			};
			if
			:: BUG == NOT_SEALED
			:: else -> set_grant(0, NOBODY, 0)
			fi;
			atomic {
				stored_until[worker] = answer;
				granted[worker] = granted[worker] & ((1 << answer) - 1)
			}
		fi;
over:	atomic { next = 0; number = 0; worker = 0; answer = 0 }
	   }
	   unless {
		atomic {
			starts != my_start ->
			my_start = starts;
			next = 0; number = 0; worker = 0; answer = 0
		}
	   }
	od
}

/* snowflake_set_mark() to the first tick.  It drops the grant. */
proctype reset()
{
	byte my_start;

	do
	:: {
		atomic { resets < RESETS && reserved && reserve_lock == 0 ->
			reserve_lock = 1; reserved = 0; pending = 0
		};
		atomic { lock == 0 -> lock = 1; word = EMPTY; resets++; received = 0 };
		atomic {
			if
			:: BUG == GRANT_KEPT
			:: else -> constant = NOBODY; from = 0; until = 0
			fi;
			if
			:: BUG == GRANT_KEPT || BUG == KEPT_RESET
			:: else -> kept_worker = NOBODY; kept_from = 0; kept_until = 0
			fi
		};
		atomic { grant_number++; lock = 0 };
		mark = 1;
		atomic { reserved = 1; reserve_lock = 0 }
	   }
	   unless { starts != my_start -> my_start = starts }
	od
}

/* The server crashes, or the standby is promoted, which may follow later. */
proctype world()
{
	byte b;

	do
	:: STANDBY && standby_mark != mark -> standby_mark = mark
	:: atomic { starts < CRASHES ->
			/* A backend, the whole server, or a failover */
			if
			:: GRANTS
			:: true -> kept_worker = NOBODY; kept_from = 0; kept_until = 0
			:: STANDBY ->
				mark = standby_mark;
				kept_worker = NOBODY; kept_from = 0; kept_until = 0
			fi;
			starts++;
			word = EMPTY; lock = 0; reserve_lock = 0; reserved = 0; pending = 0;
			grant_number = 0;
			constant = IF(GRANTS, kept_worker, 0);
			from = IF(GRANTS, kept_from, 0);
			until = IF(GRANTS, kept_until, TICKS);
			do
			:: len(queue) -> queue?_
			:: else -> break
			od;
			do
			:: b < BACKENDS -> queued[b] = 0; given[b] = 0; given_worker[b] = 0; b++
			:: else -> break
			od;
			b = 0
		}
	od
}

init
{
	byte b;

	atomic {
		if
		:: GRANTS ->
			/* It begins with a grant. */
			until = TICKS - 1;
			kept_until = IF(CRASHES, until, 0);
			reserved = IF(MARKS, 1, until);
			stored_until[0] = until;
			granted[0] = (1 << until) - 1;
			stored_until[1] = 2;
			made[1] = BIT(WORD(1, 0)) | BIT(WORD(1, 1));
			run grant_worker()
		:: else
		fi;
		if
		:: RESETS -> run reset()
		:: else
		fi;
		if
		:: CRASHES || STANDBY -> run world()
		:: else
		fi;
		do
		:: b < BACKENDS -> run backend(b); b++
		:: else -> break
		od
	}
}
