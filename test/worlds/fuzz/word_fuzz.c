/*-------------------------------------------------------------------------
 *
 * word_fuzz.c
 *	  What must hold for every plan of the generator, whatever the clocks,
 *	  settings and restarts.
 *
 * A program for libFuzzer, without a server; script/tests/fuzz builds and runs it.
 * An input is a scheme, settings, and then what happens to a server, one after
 * the other: time passes, the wall clock is set, IDs are asked for, settings
 * change, the server is started again.  The server is a model that follows the
 * plans as generator.c and reserve.c do.  How far the IDs are ahead of the wall
 * clock at the pace of the steady one, the model's paced_lead(), is what the
 * rules of word.c come to: time alone never changes it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/word_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "must.h"
#include "generator/word.h"

/* What a clock can read: the years 1 to 9999, as an epoch can be in. */
#define MIN_WALL	(INT64CONST(-63082281600) * USECS_PER_SEC)
#define MAX_WALL	(INT64CONST(252455616000) * USECS_PER_SEC)
#define WALL_2026	(INT64CONST(820454400) * USECS_PER_SEC)

/* The longest setting of each kind. */
#define MAX_LEAD	(INT64CONST(1000) * PG_INT32_MAX)
#define MIN_FORWARD	(INT64CONST(60) * USECS_PER_SEC)
#define MAX_FORWARD	(USECS_PER_SEC * PG_INT32_MAX)
#define MAX_RESERVE	(INT64CONST(60) * USECS_PER_SEC)

/* Ticks that one call may go through. */
#define MAX_ROUNDS	20

/* What is left of the input. */
typedef struct Input
{
	const uint8_t *next;
	const uint8_t *end;
} Input;

/* The server, and the time. */
typedef struct Server
{
	SnowflakeLayout layout;
	SnowflakeRules rules;
	SnowflakeSnapshot now;		/* state and clocks */
	int64		reserve_ticks;
	int64		mark;			/* first tick that is not below it, or 0 */
	TimestampTz checkpoint;		/* the last one */
	int64		tick;			/* of the last ID, or -1 */
	uint64		number;
} Server;

static uint8_t
take_byte(Input *input)
{
	return input->next < input->end ? *input->next++ : 0;
}

/*
 * A number of up to so many bits; small ones are as frequent as great ones.
 */
static int64
take_amount(Input *input, int bits)
{
	int			bit = take_byte(input) % bits;
	int64		amount = 256 + take_byte(input);

	return bit < 8 ? amount >> (8 - bit) : amount << (bit - 8);
}

static int64
take_between(Input *input, int64 least, int64 most)
{
	return Min(Max(take_amount(input, 62), least), most);
}

/*
 * A scheme that IDs can be made by.
 */
static bool
take_scheme(Input *input, SnowflakeScheme *scheme)
{
	static const char *const epochs[] = {
		"0001-01-01", "-1", "1970-01-01", "1999-12-31T23:59:59.999",
		"2000-01-01", "2016-11-01", "2026-01-01", "9999-12-31"
	};
	static const char *const ticks[] = {
		"1ms", "10ms", "1s", "1001us", "7777ms", "3600s", "86400s", "86399999ms"
	};
	uint8_t		choice = take_byte(input);
	char		text[SNOWFLAKE_MAX_SCHEME_LENGTH + 1];
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];
	const char *named;

	if (choice < 64)
	{
		if (snowflake_named_scheme(choice % 16, &named) == NULL)
			return false;
		strlcpy(text, named, sizeof(text));
	}
	else
		snprintf(text, sizeof(text),
				 "epoch=%s,tick=%s,timestamp=%d,sequence=%d",
				 epochs[choice % 8], ticks[choice / 8 % 8],
				 take_byte(input) % 63 + 1, take_byte(input) % 32 + 1);
	return snowflake_scheme_read(text, scheme, error) &&
		snowflake_scheme_generates(scheme, error);
}

/*
 * How far IDs at the pace of the steady clock are ahead of the wall clock.
 */
static int64
paced_lead(const Server *server)
{
	const SnowflakeSnapshot *now = &server->now;

	return snowflake_tick_start(&server->layout, snowflake_word_tick(&server->layout, now->word)) +
		(now->steady - now->entered) - now->wall;
}

/* Has the word's tick been entered since the start? */
static bool
entered(const Server *server)
{
	return snowflake_word_tick(&server->layout, server->now.word) >=
		server->now.first_tick;
}

/*
 * Time passes, by both clocks; the end of time ends the run.
 */
static bool
pass(Server *server, int64 us)
{
	if (us > MAX_WALL - server->now.wall)
		return false;
	server->now.wall += us;
	server->now.steady += us;
	return true;
}

/*
 * IDs are handed out: each is greater than all before.
 */
static void
hand_out(Server *server, int64 tick, uint64 number, uint64 count)
{
	const SnowflakeLayout *layout = &server->layout;

	must(count > 0);
	must(tick >= layout->base_tick && tick <= layout->last_tick);
	must(tick <= snowflake_field_max(&layout->scheme, SNOWFLAKE_TIMESTAMP));
	must(number < layout->number_limit);
	must(count <= layout->number_limit - number);
	must(tick > server->tick ||
		 (tick == server->tick && number > server->number));
	must(server->mark > tick);
	server->tick = tick;
	server->number = number + count - 1;
}

/*
 * Read the mark and lift the word to it, as recover_mark() does.
 */
static void
recover(Server *server)
{
	const SnowflakeLayout *layout = &server->layout;
	SnowflakeSnapshot *now = &server->now;
	int64		unused;
	uint64		lifted;

	now->has_mark = server->mark > 0;
	now->first_tick = Max(server->mark, layout->base_tick + 1);
	lifted = snowflake_make_word(layout, now->first_tick - 1, layout->number_limit);
	unused = snowflake_tick_lead(layout, now->first_tick, now->wall) -
		server->rules.max_lead;
	unused = Min(Max(unused, 0), server->reserve_ticks * layout->tick_us);
	now->word = Max(now->word, lifted);
	now->entered = now->steady + unused - layout->tick_us;
}

/*
 * The server is started again.  What was reserved and not used is no lead that
 * stays.
 */
static void
restart(Server *server)
{
	bool		ran = entered(server);
	int64		before = ran ? paced_lead(server) : 0;

	server->now.word = snowflake_empty_word(&server->layout);
	server->now.last_checkpoint = server->checkpoint;
	recover(server);
	if (ran)
		must(paced_lead(server) <= Max(before, server->rules.max_lead));
}

/*
 * The wall clock is taken for right, as snowflake_accept_clock() does.
 */
static void
accept_clock(Server *server)
{
	const SnowflakeLayout *layout = &server->layout;
	TimestampTz wall = server->now.wall;
	int64		tick;

	if (wall < snowflake_tick_start(layout, layout->base_tick))
		return;
	tick = (wall - layout->epoch) / layout->tick_us;
	if (tick > layout->last_tick)
		return;
	server->mark = Max(server->mark, tick);
	recover(server);
}

/*
 * How far the clock was ahead of the first tick when the mark was read.
 */
static int64
start_jump(const Server *server)
{
	const SnowflakeSnapshot *now = &server->now;
	int64		since = now->steady - now->entered - server->layout.tick_us;

	return now->wall - Max(since, 0) - snowflake_tick_start(&server->layout, now->first_tick);
}

/*
 * What must hold before the first ID since the start, when one may be made.
 */
static void
check_start(const Server *server)
{
	const SnowflakeSnapshot *now = &server->now;
	const SnowflakeLayout *layout = &server->layout;
	TimestampTz first = snowflake_tick_start(layout, now->first_tick);

	if (now->has_mark)
	{
		must(start_jump(server) <= server->rules.max_forward);
		must(first - now->wall <= server->rules.max_forward ||
			 first - now->last_checkpoint <= server->rules.max_forward ||
			 now->wall < now->created);
	}
	else
		must(now->wall >= snowflake_tick_start(layout, layout->base_tick));
}

/*
 * A clock that is too far ahead of the steady one, or past what is granted.
 */
static bool
jumped(const Server *server)
{
	const SnowflakeSnapshot *now = &server->now;
	int64		jump = -paced_lead(server);

	return entered(server) &&
		(jump > server->rules.max_forward ||
		 (jump > SNOWFLAKE_CLOCK_STEP_US &&
		  (now->wall - server->layout.epoch) / server->layout.tick_us >= now->until));
}

/*
 * A tick that is not granted.  It is asked for only if by the steady clock, or a
 * wall clock that did not jump, there is no other.
 */
static void
check_not_granted(const Server *server, const SnowflakeStep *step)
{
	const SnowflakeLayout *layout = &server->layout;
	const SnowflakeSnapshot *now = &server->now;

	must(!entered(server) ||
		 -paced_lead(server) <= SNOWFLAKE_CLOCK_STEP_US ||
		 now->wall + paced_lead(server) >= snowflake_tick_start(layout, now->until) ||
		 snowflake_word_tick(layout, now->word) + 1 >= now->until);
	must(step->next >= now->until);
}

/*
 * Claim numbers of the word's tick, and perhaps more than it has.
 */
static uint64
claim(Server *server, const SnowflakeStep *step, uint64 wanted, uint64 late)
{
	const SnowflakeLayout *layout = &server->layout;
	SnowflakeSnapshot *now = &server->now;
	int64		tick = snowflake_word_tick(layout, now->word);
	uint64		number = snowflake_word_number(layout, now->word);
	uint64		count;

	must(step->next == tick);
	must(snowflake_has_numbers(layout, now->word));
	must(entered(server));

	/* An ID is not late, and early only as far as it may be. */
	must(jumped(server) || now->wall < snowflake_tick_start(layout, tick + 1));
	must(!server->rules.wait ||
		 snowflake_tick_lead(layout, tick, now->wall) <= server->rules.max_lead);

	count = Min(wanted, layout->number_limit - number);
	hand_out(server, tick, number, count);
	now->word += count;
	if (!snowflake_has_numbers(layout, now->word))
	{
		now->word += late;
		must(!snowflake_has_numbers(layout, now->word));
	}
	must(snowflake_word_tick(layout, now->word) == tick);
	return count;
}

/*
 * Move the word to a later tick, which is reserved.
 */
static uint64
move(Server *server, const SnowflakeStep *step, uint64 wanted, uint64 start)
{
	const SnowflakeLayout *layout = &server->layout;
	SnowflakeSnapshot *now = &server->now;
	int64		tick = snowflake_word_tick(layout, now->word);
	int64		tick_ahead = snowflake_tick_lead(layout, step->next, now->wall);
	int64		before = paced_lead(server);
	bool		ran = entered(server);
	bool		clock_jumped = jumped(server);
	uint64		count;

	must(step->next > tick);
	must(step->next > server->tick);
	must(step->entered <= now->steady);
	if (!ran)
		check_start(server);
	if (step->next >= server->mark)
		server->mark = Min(Min(step->next + server->reserve_ticks,
							   layout->last_tick + 1), now->until);

	start = snowflake_has_numbers(layout, now->word) ?
		start % Max(layout->number_limit / 2, 1) : 0;
	count = Min(wanted, layout->number_limit - start);
	hand_out(server, step->next, start, count);
	now->word = snowflake_make_word(layout, step->next, start + count);
	now->entered = step->entered;
	must(snowflake_word_tick(layout, now->word) == step->next);
	must(snowflake_word_number(layout, now->word) == start + count);
	must(entered(server));

	/* The tick is that of a clock that is followed, or a later one. */
	must(clock_jumped || now->wall < snowflake_tick_start(layout, step->next + 1));
	/* A lead over the wall clock is allowed, or it was there before. */
	must(tick_ahead <= server->rules.max_lead ||
		 (!server->rules.wait && tick_ahead <= before));
	must(paced_lead(server) <= Max(before, server->rules.max_lead));
	/* It melts if few IDs are needed. */
	must(paced_lead(server) - tick_ahead <= layout->tick_us);
	/* A clock that jumped ahead does not take the IDs along. */
	must(!clock_jumped || paced_lead(server) <= before);
	return count;
}

/*
 * A plan to wait: after that time there is something else to do.
 */
static bool
wait(Server *server, const SnowflakeStep *step)
{
	SnowflakeStep after;

	must(step->wait > 0);
	if (!server->rules.wait)
	{
		must(step->plan == SNOWFLAKE_WAIT_SEQUENCE);
		must(step->wait <= server->layout.tick_us + SNOWFLAKE_READING_ERROR_US ||
			 (!entered(server) && step->wait <=
			  server->reserve_ticks * server->layout.tick_us +
			  SNOWFLAKE_READING_ERROR_US));
	}
	if (!pass(server, step->wait))
		return false;
	snowflake_plan(&server->layout, &server->rules, &server->now, &after);

	/* Unless the wall clock came to where it is not followed any more. */
	must((after.plan != SNOWFLAKE_WAIT_SEQUENCE &&
		  after.plan != SNOWFLAKE_WAIT_CLOCK) ||
		 (step->followed && !after.followed));
	return true;
}

/*
 * A plan to fail.
 */
static void
check_failure(const Server *server, const SnowflakeStep *step)
{
	const SnowflakeLayout *layout = &server->layout;
	const SnowflakeSnapshot *now = &server->now;
	TimestampTz first = snowflake_tick_start(layout, now->first_tick);

	switch (step->plan)
	{
		case SNOWFLAKE_BEFORE_EPOCH:
			must(!entered(server));
			must(!now->has_mark ||
				 first - now->wall > server->rules.max_forward);
			must(now->wall < snowflake_tick_start(layout, layout->base_tick));
			break;
		case SNOWFLAKE_CLOCK_AHEAD:
			must(!entered(server) && now->has_mark);
			must(start_jump(server) > server->rules.max_forward);
			break;
		case SNOWFLAKE_MARK_AHEAD:
			must(!entered(server) && now->has_mark);
			must(first - now->wall > server->rules.max_forward);
			must(first - now->last_checkpoint > server->rules.max_forward);
			must(now->wall >= now->created);
			break;
		default:
			must(step->plan == SNOWFLAKE_EXHAUSTED);
			must(snowflake_word_tick(layout, now->word) >= layout->last_tick ||
				 now->wall >= snowflake_tick_start(layout, layout->last_tick + 1));
			break;
	}
}

/*
 * IDs are asked for, and waited for.  Returns false at the end of time.
 */
static bool
make_ids(Server *server, uint64 wanted, uint64 start, uint64 late)
{
	for (int round = 0; round < MAX_ROUNDS && wanted > 0; round++)
	{
		SnowflakeStep step;

		snowflake_plan(&server->layout, &server->rules, &server->now, &step);
		switch (step.plan)
		{
			case SNOWFLAKE_CLAIM:
				wanted -= claim(server, &step, wanted, late);
				break;
			case SNOWFLAKE_MOVE:
				if (step.next >= server->now.until)
				{
					check_not_granted(server, &step);
					return true;
				}
				wanted -= move(server, &step, wanted, start);
				break;
			case SNOWFLAKE_WAIT_SEQUENCE:
			case SNOWFLAKE_WAIT_CLOCK:
				if (!wait(server, &step))
					return false;
				break;
			default:
				check_failure(server, &step);
				return true;
		}
	}
	return true;
}

/*
 * Ticks are counted from the epoch, or from the one that has the beginning of
 * 2000, up to the end of the field, of 45 bits, or near that of timestamptz.
 */
static void
check_layout(const SnowflakeLayout *layout)
{
	const SnowflakeScheme *scheme = &layout->scheme;
	TimestampTz base = snowflake_tick_start(layout, layout->base_tick);
	int64		field_max = snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP);

	must(layout->base_tick >= 0);
	must(layout->base_tick == 0 || (base <= 0 && base > -layout->tick_us));
	must(layout->base_tick > 0 || base > -layout->tick_us);
	must(layout->last_tick <= field_max);
	must(layout->last_tick == field_max ||
		 layout->last_tick - layout->base_tick >= (INT64CONST(1) << 45) - 1 ||
		 snowflake_tick_start(layout, layout->last_tick) > MAX_WALL);
	must(snowflake_tick_start(layout, layout->last_tick) < END_TIMESTAMP);
	must(layout->number_limit ==
		 UINT64CONST(1) << scheme->width[SNOWFLAKE_SEQUENCE]);
}

static void
take_rules(Input *input, SnowflakeRules *rules)
{
	uint8_t		choice = take_byte(input);

	rules->wait = (choice & 1) != 0;
	rules->max_lead = (choice & 2) != 0 ?
		take_between(input, 0, MAX_LEAD) / 1000 * 1000 : 0;
	rules->max_forward = (choice & 4) != 0 ?
		take_between(input, MIN_FORWARD, MAX_FORWARD) : 365 * USECS_PER_DAY;
}

static void
begin(Server *server, Input *input, const SnowflakeScheme *scheme)
{
	int64		reserve;

	memset(server, 0, sizeof(*server));
	snowflake_layout_init(&server->layout, scheme);
	check_layout(&server->layout);
	take_rules(input, &server->rules);
	reserve = take_between(input, 10000, MAX_RESERVE);
	server->reserve_ticks = (reserve + server->layout.tick_us - 1) /
		server->layout.tick_us;
	server->tick = -1;

	/* Today, or somewhere near the epoch. */
	server->now.steady = take_amount(input, 50);
	server->now.wall = WALL_2026;
	if ((take_byte(input) & 1) != 0)
		server->now.wall = Max(server->layout.epoch - USECS_PER_DAY, MIN_WALL) +
			take_amount(input, 54);
	server->now.wall = Min(server->now.wall, MAX_WALL);
	server->checkpoint = server->now.wall;
	server->now.word = snowflake_empty_word(&server->layout);
	server->now.last_checkpoint = server->checkpoint;
	server->now.created = server->checkpoint;
	server->now.until = PG_INT64_MAX;
	recover(server);
}

/*
 * What happens next.  Returns false at the end of time.
 */
static bool
happen(Server *server, Input *input)
{
	uint64		wanted;
	uint64		start;

	switch (take_byte(input) % 10)
	{
		case 0:					/* time passes */
			return pass(server, take_amount(input, 54));
		case 1:					/* the wall clock is set forward */
			server->now.wall = Min(server->now.wall + take_amount(input, 54),
								   MAX_WALL);
			break;
		case 2:					/* or back */
			server->now.wall = Max(server->now.wall - take_amount(input, 54),
								   MIN_WALL);
			break;
		case 3:
			return make_ids(server, 1, 0, 0);
		case 4:
			wanted = take_amount(input, 40);
			start = take_amount(input, 32);
			return make_ids(server, wanted, start,
							take_amount(input, SNOWFLAKE_LATE_CLAIM_BITS));
		case 5:
			take_rules(input, &server->rules);
			break;
		case 6:
			restart(server);
			break;
		case 7:
			server->checkpoint = server->now.wall;
			break;
		case 8:
			accept_clock(server);
			break;
		case 9:					/* a registry grants ticks, or there is none */
			server->now.until = (take_byte(input) & 1) != 0 ? PG_INT64_MAX :
				snowflake_word_tick(&server->layout, server->now.word) + 1 +
				take_amount(input, 45);
			break;
	}
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};
	SnowflakeScheme scheme;
	Server		server;

	if (!take_scheme(&input, &scheme))
		return -1;
	begin(&server, &input, &scheme);
	while (input.next < input.end && happen(&server, &input))
		;
	return 0;
}
