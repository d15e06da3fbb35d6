/*-------------------------------------------------------------------------
 *
 * registry.pml
 *	  Servers and a registry with its standbys: who is granted which range of
 *	  IDs, as a model of which Spin explores all sequences of actions.
 *
 * One registry call is one action, as the registry's lock makes it; so is what
 * a server does with the answer, or a fault.  Between any two of them anything
 * else may happen: a server or a call that is held up for long is just one whose
 * next action comes late.  Clocks: a server's is anything at all; a registry's is
 * anything that is at most reach ahead of "now", so two of them differ by at most
 * reach.
 *
 * An ID is (worker, tick) here.  A server that starts anew from an older backup
 * is one with a lower last tick; a copy of a data directory, too, is a server
 * with some last tick and without tokens.  A machine that is brought back from a
 * snapshot of its memory is a twin: it may do nothing for as long as it likes
 * before it goes on.
 *
 * Standbys that are promoted may become the same timeline, as long as none of
 * them has archived it.  Only the one that archives it first grants anything; it
 * does so when it is called, because nothing depends on it before.  Without an
 * archive, only one with a standby that has WAL of its timeline does: such a
 * standby can follow no other registry of that timeline.
 *
 * A registry may be dropped, and created again with a shorter reach.  Or reach is
 * shortened, and then a dump, which has no grants, becomes the registry.
 *
 * script/tests/model has the sizes and the list of seeded bugs.
 *
 * test/worlds/model/registry.pml
 *
 *-------------------------------------------------------------------------
 */
#ifndef SERVERS
#define SERVERS		2			/* the last one begins as a twin if TWINS */
#endif
#ifndef TWINS
#define TWINS		0
#endif
#ifndef REGISTRIES
#define REGISTRIES	1			/* the first one, and its standbys */
#endif
#ifndef CALLS
#define CALLS		4			/* of all servers */
#endif
#ifndef FAULTS
#define FAULTS		2
#endif
#ifndef LAST
#define LAST		2			/* "now" goes from 1 to this */
#endif
#define GRANT_TIME	1
#ifndef REACH
#define REACH		1
#endif
#ifndef SLICES
#define SLICES		1
#endif
#ifndef WORKERS
#define WORKERS		2			/* worker IDs, in all slices */
#endif
#ifndef ARCHIVE
#define ARCHIVE		1			/* a common one, or standbys confirm a timeline */
#endif
#ifndef DROPS
#define DROPS		0			/* how often a registry is dropped */
#endif
#ifndef DUMPS
#define DUMPS		0			/* 1: reach is shortened; 2: and a dump is restored */
#endif
#define REACH_THEN	1			/* reach that a registry has then */
#define NOBODY		WORKERS

/* Seeded bugs. */
#define CLOCK_ONLY			1	/* a get does not look at the next ID */
#define NO_TOKEN			2	/* an extension does not look at the token */
#define TOKEN_STAYS			3	/* a call stores no new token */
#define TOKEN_REPEATED		4	/* a repeated call brings the same new token */
#define RETURN_NO_TOKEN		5	/* a return does not look at the token */
#define RETURN_UNSEALED		6	/* the server goes on after it gave back */
#define TOKENS_AFTER_RESET	7	/* the server keeps them at a reset */
#define ANSWER_AFTER_RESET	8	/* an answer counts though there was a reset */
#define FROM_IGNORED		9	/* a get or an extension finds a range that begins later */
#define NO_SLICES			10	/* a new primary grants any worker ID */
#define NO_LIFT				11	/* ... and lifts none */
#define LIFT_LAST			12	/* ... or the slice of the last timeline only */
#define LIFT_REACH			13	/* ... or by reach, not by twice as much */
#define TOKENS_AFTER_LOSS	14	/* ... and leaves the tokens */
#define EXTEND_OLD			15	/* a lost get is followed by an extension of what
								 * the server had before */

#define SAME_TIMELINE		16	/* a registry whose timeline is not confirmed grants */
#define FOLLOWER_SWITCHES	19	/* what follows a registry, and then another one of its
								 * timeline, counts as its standby, as a subscription */
#define DROP_FORGOTTEN		20	/* a registry that is created knows of no dropped one */
#define NEW_AFTER_DROP		21	/* ... and is created as if nothing had been granted */
#define REACH_FORGOTTEN		22	/* a dump does not have what was granted with a
								 * longer reach */

/* What has to be as docs/develop/internals.md says; these break it. */
#define OLD_ONE_LIVES		17	/* a primary lives on until its slice returns */
#define CLOCK_FAR_AHEAD		18	/* a registry's clock is ahead by more */
#ifndef BUG
#define BUG			0
#endif

#define IF(c, a, b)	(((c) != 0) * (a) + ((c) == 0) * (b))
#define MIN(a, b)	IF((a) < (b), a, b)
#define MAX(a, b)	IF((a) > (b), a, b)

typedef Server {
	bool	runs;
	byte	tick;				/* of its last ID, or below its mark */
	byte	worker, until;		/* its grant */
	byte	tokens;				/* those that may be stored, as a set */
	byte	lost_token;			/* only for TOKEN_REPEATED */

	/* The answer that is on its way: for which worker ID, NOBODY: no row. */
	bool	answered;
	byte	answer_worker, answer_until, answer_next, answer_token;

	/* A twin may repeat what the other one does, up to there. */
	byte	twin_worker, twin_until;
};

typedef Registry {
	bool	runs;
	byte	timeline;
	byte	seen_timeline;		/* stored with the settings */
	byte	reach;				/* of its settings, as lifted */
	byte	longer;				/* end of what was granted with a longer one */
	byte	lifted[SLICES];
	byte	from[WORKERS];
	byte	until[WORKERS];
	byte	token[WORKERS];
};

/* A call that arrives when its server has given up on it. */
typedef Call {
	byte	kind, worker, tokens, new_token, next, until;
};

#define GET			1
#define EXTEND		2
#define RETURN		3

Server		server[SERVERS];
Registry	registry[REGISTRIES];
Call		call, late;
byte		calls, faults, now = 1;
byte		archived[REGISTRIES + 2];	/* by which registry, from 1 on, a timeline is */
byte		followers[REGISTRIES];	/* standbys with WAL of its timeline, a bit each */
byte		standby_of[REGISTRIES];	/* whose WAL of its timeline a standby has, from 1 on */
byte		drops, dumps;
int			used[WORKERS];		/* ticks that a server may use, a bit each */

/* Any number from low to high. */
inline choose(number, low, high)
{
	number = low;
	do
	:: number < high -> number++
	:: break
	od
}

/* All tokens that are stored, or may be when a call or an answer arrives. */
inline stored_tokens()
{
	all = late.new_token;
	i = 0;
	do
	:: i < SERVERS -> all = all | server[i].answer_token; i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < REGISTRIES * WORKERS ->
		all = all | registry[i / WORKERS].token[i % WORKERS];
		i++
	:: else -> break
	od
}

/* A new token. */
inline draw(drawn)
{
	stored_tokens();
	i = 0;
	do
	:: i < SERVERS -> all = all | server[i].tokens; i++
	:: else -> break
	od;
	drawn = 1;
	do
	:: all & drawn -> drawn = drawn << 1
	:: else -> break
	od;
	assert(drawn);
	i = 0; all = 0
}

/* May the registry grant, or can another one have its timeline? */
#define MAY_GRANT(r) \
	(registry[r].seen_timeline == registry[r].timeline || BUG == SAME_TIMELINE || \
	 archived[registry[r].timeline] == (r) + 1 || followers[r])

/* snowflake_registry.lock(): are grants missing? */
inline lock_registry()
{
	choose(clock, now, now + IF(BUG == CLOCK_FAR_AHEAD, 2, 1) * REACH);
	if
	:: ARCHIVE && !archived[registry[r].timeline] -> archived[registry[r].timeline] = r + 1
	:: else
	fi;
	if
	:: registry[r].seen_timeline < registry[r].timeline && MAY_GRANT(r) ->
		i = IF(BUG == LIFT_LAST, registry[r].timeline - 1, registry[r].seen_timeline);
		do
		:: i < registry[r].timeline ->
			if
			:: BUG == NO_LIFT
			:: else ->
				registry[r].lifted[i % SLICES] = MAX(registry[r].lifted[i % SLICES],
					clock + IF(BUG == LIFT_REACH, 1, 2) * registry[r].reach)
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS && BUG != TOKENS_AFTER_LOSS ->
			registry[r].token[i] = 0;
			registry[r].from[i] = 0;
			i++
		:: else -> break
		od;
		i = 0;
		registry[r].seen_timeline = registry[r].timeline
	:: else
	fi
}

#define SLICE(w)	((w) % SLICES)
#define HELD(w)		(registry[r].token[w] & call.tokens)
#define GOES_ON(w) \
	(registry[r].from[w] <= call.next || BUG == FROM_IGNORED)
#define FREE(w) \
	(registry[r].until[w] <= clock && \
	 (registry[r].until[w] <= call.next || BUG == CLOCK_ONLY) && \
	 (SLICE(w) == registry[r].timeline % SLICES || BUG == NO_SLICES) && \
	 registry[r].lifted[SLICE(w)] <= MIN(clock, call.next))

/* The registry answers a call: worker is NOBODY for an error, or no row. */
inline execute()
{
	lock_registry();
	worker = call.worker;
	if
	:: !MAY_GRANT(r) -> worker = NOBODY
	:: MAY_GRANT(r) && call.kind == GET ->
		worker = 0;
		do
		:: worker < WORKERS && HELD(worker) && GOES_ON(worker) -> break
		:: worker < WORKERS && !(HELD(worker) && GOES_ON(worker)) -> worker++
		:: worker == WORKERS -> break
		od;
		if
		:: worker == WORKERS ->
			choose(worker, 0, WORKERS - 1);
			if
			:: FREE(worker) -> first = call.next
			:: else -> worker = NOBODY
			fi
		:: else
		fi
	:: MAY_GRANT(r) && call.kind != GET ->
		if
		:: HELD(worker) && (call.kind == RETURN || GOES_ON(worker))
		:: call.kind == EXTEND && BUG == NO_TOKEN
		:: call.kind == RETURN && BUG == RETURN_NO_TOKEN
		:: else -> worker = NOBODY
		fi
	fi;
	/* A range that is held may be extended up to reach, others are shorter. */
	until = MIN(MAX(clock, call.next) + GRANT_TIME,
				clock + IF(first, GRANT_TIME, registry[r].reach));
	if
	:: worker == NOBODY
	:: worker != NOBODY && call.kind == RETURN ->
		registry[r].until[worker] = MIN(call.until, registry[r].until[worker]);
		registry[r].token[worker] = 0;
		registry[r].from[worker] = 0
	:: worker != NOBODY && call.kind != RETURN && until <= call.next ->
		/* The server's IDs are too far ahead. */
		worker = NOBODY; until = 0
	:: else ->
		if
		:: first -> registry[r].from[worker] = first
		:: else
		fi;
		until = MAX(until, registry[r].until[worker]);
		registry[r].until[worker] = until;
		registry[r].token[worker] = call.new_token
	fi;
	printf("registry %d, clock %d: call %d from %d, tokens %d, new %d: worker %d until %d\n",
		   r, clock, call.kind, call.next, call.tokens, call.new_token, worker, until)
}

/* A registry that answers, whichever. */
inline choose_registry()
{
	r = 0;
	do
	:: registry[r].runs -> break
	:: r + 1 < REGISTRIES && (registry[r + 1].runs || !registry[r].runs) -> r++
	:: r + 2 < REGISTRIES && registry[r + 2].runs -> r = r + 2
	od
}

/*
 * A server calls.  Each call brings a new token, and names all that may be
 * stored now.
 */
inline prepare_call(what)
{
	calls++;
	call.kind = what;
	call.worker = server[s].worker;
	call.tokens = server[s].tokens;
	call.until = server[s].tick + 1;
	choose(call.next, server[s].tick + 1, MAX(server[s].tick + 1, now + REACH));
	if
	:: BUG == TOKEN_STAYS && server[s].tokens -> call.new_token = server[s].tokens
	:: BUG == TOKEN_REPEATED && server[s].lost_token ->
		call.new_token = server[s].lost_token
	:: else -> draw(call.new_token)
	fi
}

/* What becomes of the call: it is answered, or the server gives up on it. */
inline send_call()
{
	if
	:: choose_registry();
		execute();
		if
		:: call.kind == RETURN
		:: call.kind == GET && worker == NOBODY -> calls--	/* an error */
		:: call.kind == EXTEND && worker == NOBODY ->
			drop_grant()
		:: call.kind != RETURN && worker != NOBODY ->
			server[s].answered = 1;
			server[s].answer_worker = worker;
			server[s].answer_until = until;
			server[s].answer_next = IF(call.kind == GET, call.next, 0);
			server[s].answer_token = call.new_token
		fi
	:: faults < FAULTS ->
		/* It is executed, but the answer is lost. */
		faults++;
		choose_registry();
		execute();
		lose_call()
	:: faults < FAULTS && late.kind == 0 ->
		/* It is executed later, if ever. */
		faults++;
		late.kind = call.kind; late.worker = call.worker;
		late.tokens = call.tokens; late.new_token = call.new_token;
		late.next = call.next; late.until = call.until;
		lose_call()
	fi;
	forget_call()
}

inline lose_call()
{
	if
	:: call.kind == RETURN
	:: else ->
		server[s].tokens = server[s].tokens | call.new_token;
		server[s].lost_token = IF(BUG == TOKEN_REPEATED, call.new_token, 0)
	fi
}

/* Forget what is of no use, so that states that are alike are the same. */
inline forget_call()
{
	stored_tokens();
	i = 0;
	do
	:: i < SERVERS -> server[i].tokens = server[i].tokens & all; i++
	:: else -> break
	od;
	i = 0; all = 0;
	call.kind = 0; call.worker = 0; call.tokens = 0; call.new_token = 0;
	call.next = 0; call.until = 0;
	worker = 0; first = 0; until = 0; clock = 0; r = 0
}

inline forget_answer()
{
	server[s].answered = 0; server[s].answer_worker = 0;
	server[s].answer_until = 0; server[s].answer_next = 0;
	server[s].answer_token = 0
}

inline drop_grant()
{
	server[s].worker = NOBODY; server[s].until = 0; server[s].tokens = 0;
	server[s].lost_token = 0
}

/*
 * The server may use these ticks from now on.  Nobody else may, or ever could,
 * but the other one of a pair of twins, up to where they parted.
 */
inline begin_range(worker_id, first, end)
{
	i = first;
	do
	:: i < end ->
		if
		:: TWINS && worker_id == server[SERVERS - 1].twin_worker &&
		   i < server[SERVERS - 1].twin_until
		:: else -> assert(!(used[worker_id] & (1 << i)))
		fi;
		used[worker_id] = used[worker_id] | (1 << i);
		i++
	:: else -> break
	od;
	i = 0
}

proctype run_server(byte s)
{
	byte r, i, all, worker, first, until, clock;

	do
	:: atomic { server[s].runs && !server[s].answered && calls < CALLS ->
			if
			:: server[s].worker == NOBODY -> prepare_call(GET)
			:: server[s].worker != NOBODY && BUG == EXTEND_OLD && !server[s].tokens ->
				prepare_call(GET)
			:: server[s].worker != NOBODY && server[s].tokens -> prepare_call(EXTEND)
			:: server[s].worker != NOBODY && server[s].tokens ->
				/* Seal, and give back. */
				choose(server[s].tick, server[s].tick, server[s].until - 1);
				prepare_call(RETURN);
				if
				:: BUG == RETURN_UNSEALED
				:: else ->
					used[call.worker] = used[call.worker] &
						~((1 << server[s].until) - (1 << call.until));
					drop_grant()
				fi
			fi;
			send_call()
		}
	:: atomic { server[s].worker != NOBODY && !server[s].tokens && !server[s].answered &&
				BUG != EXTEND_OLD ->
			/* An extension finds no row. */
			drop_grant()
		}
	:: atomic { server[s].answered ->
			worker = server[s].answer_worker;
			if
			:: server[s].answer_next -> first = server[s].answer_next
			:: !server[s].answer_next && server[s].worker == worker ->
				first = server[s].until
			:: else -> first = server[s].tick + 1
			fi;
			begin_range(worker, first, server[s].answer_until);
			server[s].tick = MAX(server[s].tick + 1, server[s].answer_next) - 1;
			server[s].worker = worker;
			server[s].until = server[s].answer_until;
			server[s].tokens = server[s].answer_token;
			printf("server %d has worker %d until %d\n", s, worker, server[s].until);
			server[s].lost_token = 0;
			forget_answer();
			forget_call()
		}
	:: atomic { server[s].runs && faults < FAULTS ->
			/* snowflake_set_mark(), or a start with the data of a backup. */
			printf("server %d: reset\n", s);
			faults++;
			server[s].tick = 0;
			if
			:: BUG == TOKENS_AFTER_RESET -> server[s].worker = NOBODY; server[s].until = 0
			:: else -> drop_grant()
			fi;
			if
			:: BUG == ANSWER_AFTER_RESET
			:: else -> forget_answer()
			fi
		}
	:: atomic { TWINS && s == 0 && !server[s].answered && !server[SERVERS - 1].runs && faults < FAULTS ->
			/* A snapshot of the memory, that will go on. */
			printf("server %d: twin\n", s);
			faults++;
			server[SERVERS - 1].runs = 1;
			server[SERVERS - 1].tick = server[s].tick;
			server[SERVERS - 1].worker = server[s].worker;
			server[SERVERS - 1].until = server[s].until;
			server[SERVERS - 1].tokens = server[s].tokens;
			server[SERVERS - 1].lost_token = server[s].lost_token;
			server[SERVERS - 1].twin_worker = server[s].worker;
			server[SERVERS - 1].twin_until = server[s].until
		}
	od
}

/* A standby follows nobody any more. */
inline forget_follower()
{
	do
	:: i < REGISTRIES -> followers[i] = followers[i] & ~(1 << r); i++
	:: else -> break
	od;
	i = 0
}

/*
 * An administrator drops the registry and creates it again, with another reach.
 * What it lifts counts from the clock and with the reach of the new one, unless
 * the dropped one left a later end; all slices are lifted.
 */
inline drop_registry()
{
	lock_registry();
	if
	:: MAY_GRANT(r) ->
		printf("registry %d: dropped\n", r);
		drops++;
		until = clock + 2 * registry[r].reach;
		do
		:: i < SLICES -> until = MAX(until, registry[r].lifted[i]); i++
		:: else -> break
		od;
		i = 0;
		choose(clock, now, now + REACH);
		registry[r].reach = REACH_THEN;
		until = IF(BUG == NEW_AFTER_DROP, 0,
				   MAX(clock + 2 * REACH_THEN, IF(BUG == DROP_FORGOTTEN, 0, until)));
		do
		:: i < SLICES -> registry[r].lifted[i] = until; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS ->
			registry[r].from[i] = 0;
			registry[r].until[i] = 0;
			registry[r].token[i] = 0;
			i++
		:: else -> break
		od;
		i = 0
	:: else
	fi
}

/* reach is shortened, or the registry goes to another database by a dump. */
inline dump_registry()
{
	lock_registry();
	if
	:: MAY_GRANT(r) && dumps == 0 ->
		printf("registry %d, clock %d: reach is shortened\n", r, clock);
		dumps++;
		registry[r].longer = IF(BUG == REACH_FORGOTTEN, 0, clock + 2 * registry[r].reach);
		registry[r].reach = REACH_THEN
	:: MAY_GRANT(r) && dumps == 1 ->
		printf("registry %d, clock %d: a dump is restored\n", r, clock);
		dumps++;
		until = MAX(clock + 2 * registry[r].reach, registry[r].longer);
		do
		:: i < SLICES ->
			registry[r].lifted[i] = MAX(registry[r].lifted[i], until);
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < WORKERS ->
			registry[r].from[i] = 0;
			registry[r].until[i] = 0;
			registry[r].token[i] = 0;
			i++
		:: else -> break
		od;
		i = 0
	:: else
	fi
}

/* A standby replays what a primary commits, until it is promoted. */
proctype run_standby(byte r)
{
	byte i, from;

	do
	:: atomic { !registry[r].runs ->
			choose(from, 0, r - 1);
			if
			:: registry[from].runs &&
			   (ARCHIVE || registry[from].timeline > registry[r].timeline ||
				standby_of[r] == from + 1 || BUG == FOLLOWER_SWITCHES) ->
				printf("registry %d: replays that of %d\n", r, from);
				if
				:: ARCHIVE
				:: else ->
					forget_follower();
					followers[from] = followers[from] | (1 << r);
					standby_of[r] = from + 1
				fi;
				registry[r].reach = registry[from].reach;
				registry[r].longer = registry[from].longer;
				registry[r].seen_timeline = registry[from].seen_timeline;
				registry[r].timeline = registry[from].timeline;
				do
				:: i < SLICES -> registry[r].lifted[i] = registry[from].lifted[i]; i++
				:: else -> break
				od;
				i = 0;
				do
				:: i < WORKERS ->
					registry[r].from[i] = registry[from].from[i];
					registry[r].until[i] = registry[from].until[i];
					registry[r].token[i] = registry[from].token[i];
					i++
				:: else -> break
				od;
				i = 0
			:: else
			fi;
			from = 0
		}
	:: atomic { !registry[r].runs && faults < FAULTS ->
			faults++;
			registry[r].runs = 1;
			forget_follower();
			standby_of[r] = 0;
			printf("registry %d: promoted\n", r);
			registry[r].timeline++;
			do
			:: archived[registry[r].timeline] -> registry[r].timeline++
			:: else -> break
			od;
			/*
			 * Where there are fewer slices than registries, so that a slice
			 * returns, a former primary has to be gone.
			 */
			do
			:: i < r ->
				registry[i].runs = (REGISTRIES <= SLICES || BUG == OLD_ONE_LIVES) &&
					registry[i].runs;
				i++
			:: else -> break
			od;
			i = 0
		}
	od
}

proctype run_world()
{
	byte s, r, i, all, worker, first, until, clock;

	do
	:: now < LAST -> now++
	:: atomic { late.kind ->
			call.kind = late.kind; call.worker = late.worker;
			call.tokens = late.tokens; call.new_token = late.new_token;
			call.next = late.next; call.until = late.until;
			late.kind = 0; late.worker = 0; late.tokens = 0; late.new_token = 0;
			late.next = 0; late.until = 0;
			choose_registry();
			execute();
			forget_call()
		}
	:: atomic { drops < DROPS ->
			choose_registry();
			drop_registry();
			forget_call()
		}
	:: atomic { dumps < DUMPS ->
			choose_registry();
			dump_registry();
			forget_call()
		}
	od
}

init
{
	byte i;

	atomic {
		do
		:: i < SERVERS ->
			server[i].runs = !(TWINS && i == SERVERS - 1);
			server[i].worker = NOBODY;
			server[i].twin_worker = NOBODY;
			run run_server(i);
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < REGISTRIES ->
			registry[i].runs = (i == 0);
			registry[i].reach = REACH;
			registry[i].timeline = 1;
			registry[i].seen_timeline = 1;
			if
			:: i > 0 -> run run_standby(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		archived[1] = 1;
		run run_world()
	}
}
