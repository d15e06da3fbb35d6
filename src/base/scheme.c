/*-------------------------------------------------------------------------
 *
 * scheme.c
 *	  Reading a scheme from text, and writing it.
 *
 * A scheme defines the structure of an ID: the epoch, the length of a tick,
 * and the bit fields from high to low.  Its text is a list of key=value items,
 *
 *		epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12
 *
 * or the name of a known scheme, optionally followed by items that change it:
 *
 *		twitter,epoch=2024-01-01
 *
 * Keys and names are case-insensitive, and may have blanks around them and
 * around values.  The order of the fields is that of the items; a change to a
 * named scheme keeps the place of the field.  Between them, unused=N is a gap
 * of N bits, which may occur several times.  The default epoch is that of the
 * default scheme, and the default tick is 1 ms.
 *
 * This file is independent of the server: no ereport, no palloc, no settings.
 * It can be built and tested on its own (with -DFRONTEND).  Errors are
 * returned as sentences that name the position.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/scheme.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include "base/scheme.h"

/* The keys: bit fields, then these. */
#define KEY_UNUSED	SNOWFLAKE_NFIELDS
#define KEY_EPOCH	(SNOWFLAKE_NFIELDS + 1)
#define KEY_TICK	(SNOWFLAKE_NFIELDS + 2)
#define NKEYS		(SNOWFLAKE_NFIELDS + 3)

static const char *const key_names[NKEYS] = {
	[SNOWFLAKE_TIMESTAMP] = "timestamp",
	[SNOWFLAKE_DATACENTER] = "datacenter",
	[SNOWFLAKE_WORKER] = "worker",
	[SNOWFLAKE_SEQUENCE] = "sequence",
	[KEY_UNUSED] = "unused",
	[KEY_EPOCH] = "epoch",
	[KEY_TICK] = "tick"
};

/*
 * A timestamp can have all bits but one, so that it is not negative;
 * datacenter and worker are shown as integer, the sequence as bigint.
 */
static const int max_widths[SNOWFLAKE_NFIELDS + 1] = {
	[SNOWFLAKE_TIMESTAMP] = 63,
	[SNOWFLAKE_DATACENTER] = 31,
	[SNOWFLAKE_WORKER] = 31,
	[SNOWFLAKE_SEQUENCE] = 32,
	[KEY_UNUSED] = 63
};

typedef struct NamedScheme
{
	const char *name;
	const char *text;
} NamedScheme;

/*
 * Named schemes, each as in the source or documentation of the system.
 * Indexes and generated columns depend on these names, so the text of a name
 * never changes, which sql/ids.sql checks.
 *
 * shardingsphere: Apache ShardingSphere.  twitter: Twitter's program, whose
 * epoch is 2010-11-04 01:42:54.657 UTC.  leaf: Meituan's Leaf.  discord: the
 * datacenter is what Discord calls the internal worker ID, the worker its
 * internal process ID.  instagram: the worker is the logical shard.
 * sonyflake: Sony's, the worker is the machine ID; sonyflake2: the second
 * version's default.  pgedge: the snowflake extension of pgEdge, the worker is
 * snowflake.node; pgedge1: before its version 1.2.  baidu: uid-generator's
 * default, whose epoch is midnight of 2016-05-20 in China.  mastodon: the low
 * bits are not counted, but hashed.
 * hazelcast: FlakeIdGenerator, the worker is the node ID.  cosid: CosId's
 * MillisecondSnowflakeId, whose epoch is midnight of 2019-12-25 in China.
 * tsid: tsid-creator, the worker is the node.  yitter: IdGenerator, whose
 * epoch is 2020-02-19 18:20:02 UTC.  snowflaked: the crate of that name.
 * seata: Apache Seata from 1.4.2 on, whose epoch is midnight of 2020-05-03 in
 * China.
 * pgactive: and BDR before it, whose epoch is 2016-10-06 23:22:19.634 UTC.
 * pgdog: the "standard" one, whose epoch is 2025-11-26 19:13:15 UTC.
 * javascript: of this extension, whose IDs are exact as a Number there.
 */
static const NamedScheme named_schemes[] = {
	{"shardingsphere", SNOWFLAKE_DEFAULT_SCHEME},
	{"twitter", "epoch=1288834974657,tick=1ms,"
	"timestamp=41,datacenter=5,worker=5,sequence=12"},
	{"leaf", "epoch=1288834974657,tick=1ms,"
	"timestamp=41,worker=10,sequence=12"},
	{"discord", "epoch=2015-01-01,tick=1ms,"
	"timestamp=42,datacenter=5,worker=5,sequence=12"},
	{"instagram", "epoch=1314220021721,tick=1ms,"
	"timestamp=41,worker=13,sequence=10"},
	{"sonyflake", "epoch=2014-09-01,tick=10ms,"
	"timestamp=39,sequence=8,worker=16"},
	{"pgedge", "epoch=2023-01-01,tick=1ms,"
	"timestamp=41,worker=10,sequence=12"},
	{"baidu", "epoch=1463673600000,tick=1s,"
	"timestamp=28,worker=22,sequence=13"},
	{"mastodon", "epoch=1970-01-01,tick=1ms,"
	"timestamp=48,sequence=16"},
	{"hazelcast", "epoch=2018-01-01,tick=1ms,"
	"timestamp=41,sequence=6,worker=16"},
	{"sonyflake2", "epoch=2025-01-01,tick=10ms,"
	"timestamp=39,sequence=8,worker=16"},
	{"cosid", "epoch=1577203200000,tick=1ms,"
	"timestamp=41,worker=10,sequence=12"},
	{"tsid", "epoch=2020-01-01,tick=1ms,"
	"timestamp=42,worker=10,sequence=12"},
	{"yitter", "epoch=1582136402000,tick=1ms,"
	"timestamp=51,worker=6,sequence=6"},
	{"snowflaked", "epoch=1970-01-01,tick=1ms,"
	"timestamp=41,worker=10,sequence=12"},
	{"seata", "epoch=1588435200000,tick=1ms,"
	"worker=10,timestamp=41,sequence=12"},
	{"pgedge1", "epoch=2023-01-01,tick=1ms,"
	"timestamp=41,sequence=12,worker=10"},
	{"pgactive", "epoch=1475796139634,tick=1ms,"
	"timestamp=40,worker=10,sequence=14"},
	{"pgdog", "epoch=1764184395000,tick=1ms,"
	"timestamp=41,worker=10,sequence=12"},
	{"javascript", "epoch=2026-01-01,tick=10ms,"
	"timestamp=37,worker=6,sequence=10"},
};

/* The range of an epoch, in Unix milliseconds. */
#define MIN_EPOCH_MS	INT64CONST(-62135596800000) /* 0001-01-01 */
#define MAX_EPOCH_MS	INT64CONST(253402300799999) /* end of 9999-12-31 */

/*
 * A positive number below this is considered a mistake: as Unix milliseconds,
 * it is before March 1973, but it could be a year, a date without hyphens, or
 * Unix seconds.
 */
#define MIN_UNIX_MS		INT64CONST(100000000000)

#define MAX_TICK_US		INT64CONST(86400000000) /* a day */

/* Defaults, as in SNOWFLAKE_DEFAULT_SCHEME. */
#define DEFAULT_EPOCH_MS	INT64CONST(1477958400000)	/* 2016-11-01 */
#define DEFAULT_TICK_US		1000

/* A part of the text; error messages name its position. */
typedef struct Piece
{
	const char *start;
	const char *end;
} Piece;

/* Context for reading an item. */
typedef struct Reader
{
	const char *text;			/* the whole text, for positions */
	char	   *error;			/* where the sentence goes */
} Reader;

static bool read_items(Reader *reader, const char *text,
					   SnowflakeScheme *scheme);

/*
 * Remove a character from the start of a piece if it is there.
 */
static bool
take_char(Piece *piece, char c)
{
	if (piece->start == piece->end || *piece->start != c)
		return false;
	piece->start++;
	return true;
}

/*
 * Remove a number of least to most digits from the start of a piece.  It
 * cannot overflow if most is not greater than 18.
 */
static bool
take_digits(Piece *piece, int least, int most, int64 *value)
{
	int			n = 0;

	*value = 0;
	while (n < most && piece->start < piece->end &&
		   *piece->start >= '0' && *piece->start <= '9')
	{
		*value = *value * 10 + (*piece->start++ - '0');
		n++;
	}
	return n >= least;
}

static bool
is_empty(const Piece *piece)
{
	return piece->start == piece->end;
}

static bool
is_word(const Piece *piece, const char *word)
{
	size_t		length = strlen(word);

	return (size_t) (piece->end - piece->start) == length &&
		pg_strncasecmp(piece->start, word, length) == 0;
}

static Piece
trim(const char *start, const char *end)
{
	Piece		piece;

	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	piece.start = start;
	piece.end = end;
	return piece;
}

/*
 * Write the sentence for an error in a piece, with its text (truncated, and
 * without bytes that may be part of a character) and its position.
 */
static bool
fail_at(Reader *reader, Piece piece, const char *what)
{
	char		shown[33];
	int			n = 0;
	const char *p;

	for (p = piece.start; p < piece.end && n < (int) sizeof(shown) - 1; p++)
		shown[n++] = (*p >= ' ' && *p <= '~') ? *p : '?';
	shown[n] = '\0';

	snprintf(reader->error, SNOWFLAKE_SCHEME_ERROR_SIZE,
			 "\"%s%s\" at character %d %s.",
			 shown, p < piece.end ? "..." : "",
			 1 + (int) (piece.start - reader->text), what);
	return false;
}

/*
 * Days from 1970-01-01 to a date of the Gregorian calendar.
 */
static int64
days_since_1970(int64 year, int64 month, int64 day)
{
	int64		y = month > 2 ? year : year - 1;	/* a year begins in March */
	int64		m = month > 2 ? month - 3 : month + 9;

	return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 -
		719468;
}

/*
 * Read the part of an ISO 8601 timestamp after the date: the time of day to
 * minutes, seconds, or up to milliseconds, and the time zone, which defaults
 * to UTC.  The result is in milliseconds.
 */
static bool
read_time_of_day(Piece *piece, int64 *ms)
{
	int64		hour;
	int64		minute;
	int64		second = 0;
	int64		fraction = 0;
	int64		zone_hour = 0;
	int64		zone_minute = 0;
	int			zone_sign = 0;

	if (!take_digits(piece, 2, 2, &hour) || hour > 23 ||
		!take_char(piece, ':') ||
		!take_digits(piece, 2, 2, &minute) || minute > 59)
		return false;
	if (take_char(piece, ':'))
	{
		if (!take_digits(piece, 2, 2, &second) || second > 59)
			return false;
		if (take_char(piece, '.'))
		{
			const char *start = piece->start;

			if (!take_digits(piece, 1, 3, &fraction))
				return false;
			for (int n = piece->start - start; n < 3; n++)
				fraction *= 10;
		}
	}

	if (take_char(piece, '+'))
		zone_sign = 1;
	else if (take_char(piece, '-'))
		zone_sign = -1;
	else if (!take_char(piece, 'Z'))
		(void) take_char(piece, 'z');
	if (zone_sign != 0)
	{
		if (!take_digits(piece, 2, 2, &zone_hour) || zone_hour > 15)
			return false;
		if ((take_char(piece, ':') || !is_empty(piece)) &&
			(!take_digits(piece, 2, 2, &zone_minute) || zone_minute > 59))
			return false;
	}

	*ms = ((hour * 60 + minute) * 60 + second) * 1000 + fraction -
		zone_sign * (zone_hour * 60 + zone_minute) * 60000;
	return true;
}

static bool
is_date(int64 year, int64 month, int64 day)
{
	static const int month_days[] =
	{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	if (year < 1 || month < 1 || month > 12 ||
		day < 1 || day > month_days[month - 1])
		return false;
	return month != 2 || day != 29 ||
		(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/*
 * Read a calendar date, optionally with a time of day.
 */
static bool
read_date(Piece piece, int64 *epoch_ms)
{
	int64		year;
	int64		month;
	int64		day;
	int64		ms = 0;

	if (!take_digits(&piece, 4, 4, &year) ||
		!take_char(&piece, '-') ||
		!take_digits(&piece, 2, 2, &month) ||
		!take_char(&piece, '-') ||
		!take_digits(&piece, 2, 2, &day) ||
		!is_date(year, month, day))
		return false;
	if ((take_char(&piece, 'T') || take_char(&piece, 't') ||
		 take_char(&piece, ' ')) &&
		!read_time_of_day(&piece, &ms))
		return false;

	*epoch_ms = days_since_1970(year, month, day) * 86400000 + ms;
	return is_empty(&piece);
}

/*
 * Read Unix milliseconds.
 */
static bool
read_unix_ms(Piece piece, int64 *epoch_ms)
{
	bool		negative = take_char(&piece, '-');

	if (!take_digits(&piece, 1, 15, epoch_ms))
		return false;
	if (negative)
		*epoch_ms = -*epoch_ms;
	return is_empty(&piece);
}

/*
 * Fail at a number that is probably not meant as Unix milliseconds, and
 * suggest what is meant.
 */
static bool
fail_at_number(Reader *reader, Piece value, int64 number)
{
	char		meant[32] = "a date like 2016-11-01";
	char		what[100];

	if (number >= MIN_UNIX_MS / 1000)	/* seconds */
		snprintf(meant, sizeof(meant), INT64_FORMAT "000", number);
	else if (is_date(number / 10000, number / 100 % 100, number % 100))
		snprintf(meant, sizeof(meant), "%04d-%02d-%02d", (int) number / 10000,
				 (int) number / 100 % 100, (int) number % 100);
	else if (is_date(number, 1, 1) && number >= 1000 && number <= 9999)
		snprintf(meant, sizeof(meant), "%d-01-01", (int) number);

	snprintf(what, sizeof(what),
			 "would be read as Unix milliseconds, a time between 1970 and 1973; use %s",
			 meant);
	return fail_at(reader, value, what);
}

static bool
read_epoch(Reader *reader, Piece value, SnowflakeScheme *scheme)
{
	if (read_unix_ms(value, &scheme->epoch_ms))
	{
		if (scheme->epoch_ms > 0 && scheme->epoch_ms < MIN_UNIX_MS)
			return fail_at_number(reader, value, scheme->epoch_ms);
	}
	else if (!read_date(value, &scheme->epoch_ms))
		return fail_at(reader, value,
					   "is not an epoch; use a UTC date like 2016-11-01, an ISO 8601 timestamp, or Unix milliseconds");
	if (scheme->epoch_ms < MIN_EPOCH_MS || scheme->epoch_ms > MAX_EPOCH_MS)
		return fail_at(reader, value,
					   "is not an epoch between the years 1 and 9999");
	return true;
}

static bool
read_tick(Reader *reader, Piece value, SnowflakeScheme *scheme)
{
	Piece		rest = value;
	Piece		unit;
	int64		number;

	if (take_digits(&rest, 1, 11, &number) && number > 0)
	{
		unit = trim(rest.start, rest.end);
		if (is_word(&unit, "s"))
			number *= 1000000;
		else if (is_word(&unit, "ms"))
			number *= 1000;
		else if (!is_word(&unit, "us"))
			number = 0;
		if (number > 0 && number <= MAX_TICK_US)
		{
			scheme->tick_us = number;
			return true;
		}
	}
	return fail_at(reader, value,
				   "is not a tick; use a whole number with us, ms, or s, up to one day");
}

static bool
read_width(Reader *reader, Piece value, int key, int *width)
{
	Piece		rest = value;
	int64		number;

	if (!take_digits(&rest, 1, 9, &number) || !is_empty(&rest) ||
		number < 1 || number > max_widths[key])
	{
		char		what[80];

		snprintf(what, sizeof(what),
				 "is not a width for %s; use a number of bits from 1 to %d",
				 key_names[key], max_widths[key]);
		return fail_at(reader, value, what);
	}
	*width = (int) number;
	return true;
}

/*
 * Read the width of a gap, which is below the fields read so far.
 */
static bool
read_unused(Reader *reader, Piece value, SnowflakeScheme *scheme)
{
	int			width = 0;

	if (!read_width(reader, value, KEY_UNUSED, &width))
		return false;
	if (scheme->nfields == 0)
		scheme->unused_above += width;
	else
		scheme->unused_below[scheme->order[scheme->nfields - 1]] += width;
	return true;
}

/*
 * Read one key=value item.  seen has the keys that were read before.  A field
 * is placed below those before it, unless the item changes a named scheme:
 * then it keeps its place.
 */
static bool
read_item(Reader *reader, Piece key, Piece value, bool changes,
		  bool *seen, SnowflakeScheme *scheme)
{
	int			k;

	for (k = 0; k < NKEYS; k++)
	{
		if (is_word(&key, key_names[k]))
			break;
	}
	if (k == NKEYS)
		return fail_at(reader, key,
					   "is not a key; valid keys are epoch, tick, timestamp, datacenter, worker, sequence, and unused");
	if (seen[k] && k != KEY_UNUSED)
		return fail_at(reader, key, "is given twice");
	seen[k] = true;

	if (k == KEY_EPOCH)
		return read_epoch(reader, value, scheme);
	if (k == KEY_TICK)
		return read_tick(reader, value, scheme);

	if (changes && (k == KEY_UNUSED || scheme->width[k] == 0))
		return fail_at(reader, key,
					   "is not a field of the named scheme; to add a field, specify all fields instead of the name");
	if (k == KEY_UNUSED)
		return read_unused(reader, value, scheme);
	if (!changes)
		scheme->order[scheme->nfields++] = (SnowflakeField) k;
	return read_width(reader, value, k, &scheme->width[k]);
}

/*
 * Read a scheme by its name.
 */
static bool
read_name(Reader *reader, Piece name, SnowflakeScheme *scheme)
{
	char		what[SNOWFLAKE_SCHEME_ERROR_SIZE] = "is neither key=value nor the name of a scheme; names are";

	for (int i = 0; i < (int) lengthof(named_schemes); i++)
	{
		size_t		length = strlen(what);

		if (is_word(&name, named_schemes[i].name))
			return read_items(reader, named_schemes[i].text, scheme);
		snprintf(what + length, sizeof(what) - length, "%s %s",
				 i > 0 ? "," : "", named_schemes[i].name);
	}
	return fail_at(reader, name, what);
}

/*
 * Read all items of a text into an empty scheme.
 */
static bool
read_items(Reader *reader, const char *text, SnowflakeScheme *scheme)
{
	bool		seen[NKEYS] = {false};
	bool		changes = false;
	const char *start = text;
	const char *end;

	do
	{
		const char *equals;

		end = start + strcspn(start, ",");
		equals = memchr(start, '=', end - start);
		if (equals != NULL)
		{
			if (!read_item(reader, trim(start, equals), trim(equals + 1, end),
						   changes, seen, scheme))
				return false;
		}
		else if (start == text)
		{
			if (!read_name(reader, trim(start, end), scheme))
				return false;
			changes = true;
		}
		else
			return fail_at(reader, trim(start, end), "is not key=value");
		start = end + 1;
	} while (*end != '\0');

	return true;
}

/*
 * Read a scheme from text.  If the text is not valid, return false, with a
 * sentence in error, which has room for SNOWFLAKE_SCHEME_ERROR_SIZE bytes.
 */
bool
snowflake_scheme_read(const char *text, SnowflakeScheme *scheme, char *error)
{
	Reader		reader = {text, error};
	size_t		length = strlen(text);
	int			shift;

	if (length > SNOWFLAKE_MAX_SCHEME_LENGTH)
	{
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The text has %zu bytes, but a scheme can have at most %d.",
				 length, SNOWFLAKE_MAX_SCHEME_LENGTH);
		return false;
	}
	if (text[strspn(text, " \t")] == '\0')
	{
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE, "The text is empty.");
		return false;
	}

	memset(scheme, 0, sizeof(*scheme));
	scheme->epoch_ms = DEFAULT_EPOCH_MS;
	scheme->tick_us = DEFAULT_TICK_US;
	if (!read_items(&reader, text, scheme))
		return false;

	if (scheme->width[SNOWFLAKE_TIMESTAMP] == 0)
	{
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The scheme has no timestamp field.");
		return false;
	}

	scheme->bits = scheme->unused_above;
	for (int i = 0; i < scheme->nfields; i++)
		scheme->bits += scheme->width[scheme->order[i]] +
			scheme->unused_below[scheme->order[i]];
	if (scheme->bits > SNOWFLAKE_MAX_BITS)
	{
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The fields have %d bits in total, but an ID has %d.",
				 scheme->bits, SNOWFLAKE_MAX_BITS);
		return false;
	}

	shift = scheme->bits - scheme->unused_above;
	for (int i = 0; i < scheme->nfields; i++)
	{
		shift -= scheme->width[scheme->order[i]];
		scheme->shift[scheme->order[i]] = shift;
		shift -= scheme->unused_below[scheme->order[i]];
	}
	return true;
}

/*
 * The date of the Gregorian calendar that is a number of days after
 * 1970-01-01, the inverse of days_since_1970() from the year 1 on.
 */
static void
date_of_day(int64 days, int *year, int *month, int *day)
{
	/* This is never after the year: it assumes the longest, or shortest. */
	*year = 1969 + (int) (days / (days < 0 ? 365 : 366));
	while (days_since_1970(*year + 1, 1, 1) <= days)
		(*year)++;
	*month = 12;
	while (days_since_1970(*year, *month, 1) > days)
		(*month)--;
	*day = (int) (days - days_since_1970(*year, *month, 1)) + 1;
}

/*
 * Write the epoch: a date, with the time of day unless that is midnight.
 */
static int
write_epoch(int64 epoch_ms, char *text, size_t size)
{
	int64		day_ms = 86400000;
	int64		ms = ((epoch_ms % day_ms) + day_ms) % day_ms;
	int			year;
	int			month;
	int			day;
	int			n;

	date_of_day((epoch_ms - ms) / day_ms, &year, &month, &day);
	n = snprintf(text, size, "epoch=%04d-%02d-%02d", year, month, day);
	if (ms > 0)
		n += snprintf(text + n, size - n, "T%02d:%02d:%02d",
					  (int) (ms / 3600000), (int) (ms / 60000 % 60),
					  (int) (ms / 1000 % 60));
	if (ms % 1000 > 0)
		n += snprintf(text + n, size - n, ".%03d", (int) (ms % 1000));
	return n;
}

/*
 * Write the canonical text of a scheme, which is the same for all equivalent
 * texts.  It has at most SNOWFLAKE_MAX_SCHEME_LENGTH bytes.
 */
void
snowflake_scheme_write(const SnowflakeScheme *scheme, char *text)
{
	size_t		size = SNOWFLAKE_MAX_SCHEME_LENGTH + 1;
	int64		tick = scheme->tick_us;
	int			n = write_epoch(scheme->epoch_ms, text, size);

	n += snprintf(text + n, size - n, ",tick=" INT64_FORMAT "%s",
				  tick % 1000000 == 0 ? tick / 1000000 :
				  tick % 1000 == 0 ? tick / 1000 : tick,
				  tick % 1000000 == 0 ? "s" : tick % 1000 == 0 ? "ms" : "us");
	if (scheme->unused_above > 0)
		n += snprintf(text + n, size - n, ",%s=%d", key_names[KEY_UNUSED],
					  scheme->unused_above);
	for (int i = 0; i < scheme->nfields; i++)
	{
		SnowflakeField field = scheme->order[i];

		n += snprintf(text + n, size - n, ",%s=%d", key_names[field],
					  scheme->width[field]);
		if (scheme->unused_below[field] > 0)
			n += snprintf(text + n, size - n, ",%s=%d", key_names[KEY_UNUSED],
						  scheme->unused_below[field]);
	}
}

/*
 * Do IDs of this scheme sort by time?  Unused bits above the timestamp can
 * have any value.
 */
bool
snowflake_scheme_sorts(const SnowflakeScheme *scheme)
{
	return scheme->order[0] == SNOWFLAKE_TIMESTAMP &&
		scheme->unused_above == 0;
}

/*
 * Can IDs be generated with this scheme?  Other schemes can only be parsed: IDs
 * that are generated must increase with time across servers, whatever their worker
 * IDs, and must not be negative.
 */
bool
snowflake_scheme_generates(const SnowflakeScheme *scheme, char *error)
{
	if (scheme->bits > SNOWFLAKE_MAX_OWN_BITS)
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The fields have %d bits in total, but IDs can be generated with at most %d.",
				 scheme->bits, SNOWFLAKE_MAX_OWN_BITS);
	else if (!snowflake_scheme_sorts(scheme))
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The timestamp is not the first field, so IDs would not sort by time.");
	else if (scheme->width[SNOWFLAKE_SEQUENCE] == 0)
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The scheme has no sequence field, so IDs of the same tick would be equal.");
	else if (scheme->tick_us < SNOWFLAKE_MIN_OWN_TICK_US)
		snprintf(error, SNOWFLAKE_SCHEME_ERROR_SIZE,
				 "The tick is shorter than 1 ms, the minimum for generating IDs.");
	else
		return true;
	return false;
}

/*
 * The name and text of the nth named scheme, starting with 0; NULL after the
 * last.
 */
const char *
snowflake_named_scheme(int n, const char **text)
{
	if (n >= (int) lengthof(named_schemes))
		return NULL;
	*text = named_schemes[n].text;
	return named_schemes[n].name;
}
