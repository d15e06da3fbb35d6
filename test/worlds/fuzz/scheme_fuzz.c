/*-------------------------------------------------------------------------
 *
 * scheme_fuzz.c
 *	  What must hold for every text that is read as a scheme, and every ID.
 *
 * A program for libFuzzer, without a server; script/tests/fuzz builds and runs it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/scheme_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "must.h"
#include "base/scheme.h"

/* Room for a text in which blanks are put around each byte. */
#define MAX_TEXT	1024

/*
 * Read a text that stands, as the error does, in memory of just its size, so
 * that the sanitizer sees each byte too many.  The error has to be a sentence
 * that can be shown.
 */
static bool
read_text(const char *text, SnowflakeScheme *scheme)
{
	size_t		size = strlen(text) + 1;
	char	   *copy = malloc(size);
	char	   *error = malloc(SNOWFLAKE_SCHEME_ERROR_SIZE);
	bool		good;

	memcpy(copy, text, size);
	error[0] = '\0';
	good = snowflake_scheme_read(copy, scheme, error);
	if (good)
	{
		if (!snowflake_scheme_generates(scheme, error))
		{
			must(strlen(error) > 0);
			must(scheme->bits == 64 || !snowflake_scheme_sorts(scheme) ||
				 scheme->width[SNOWFLAKE_SEQUENCE] == 0 ||
				 scheme->tick_us < 1000);
		}
	}
	else
	{
		size_t		length = strlen(error);

		must(length > 0 && length < SNOWFLAKE_SCHEME_ERROR_SIZE);
		must(error[length - 1] == '.' || length == SNOWFLAKE_SCHEME_ERROR_SIZE - 1);
		for (size_t i = 0; i < length; i++)
			must(error[i] >= ' ' && error[i] <= '~');
	}
	free(copy);
	free(error);
	return good;
}

/*
 * The fields and the gaps lie side by side from the highest bit down to bit 0.
 */
static void
check_scheme(const SnowflakeScheme *scheme)
{
	int			above = scheme->bits - scheme->unused_above;
	int			nfields = 0;

	must(scheme->bits >= 1 && scheme->bits <= 64);
	must(scheme->tick_us >= 1 && scheme->tick_us <= INT64CONST(86400000000));
	must(scheme->epoch_ms >= INT64CONST(-62135596800000));
	must(scheme->epoch_ms <= INT64CONST(253402300799999));
	must(scheme->nfields >= 1 && scheme->nfields <= SNOWFLAKE_NFIELDS);
	must(scheme->unused_above >= 0);
	for (int i = 0; i < scheme->nfields; i++)
	{
		SnowflakeField field = scheme->order[i];

		must(scheme->width[field] >= 1 && scheme->width[field] <= 63);
		must(scheme->shift[field] == above - scheme->width[field]);
		must(scheme->unused_below[field] >= 0);
		above = scheme->shift[field] - scheme->unused_below[field];
	}
	must(above == 0);
	for (int field = 0; field < SNOWFLAKE_NFIELDS; field++)
	{
		nfields += scheme->width[field] > 0;
		must(scheme->width[field] > 0 || scheme->unused_below[field] == 0);
	}
	must(nfields == scheme->nfields);
	must(scheme->width[SNOWFLAKE_TIMESTAMP] > 0);
	must(scheme->width[SNOWFLAKE_DATACENTER] <= 31);
	must(scheme->width[SNOWFLAKE_WORKER] <= 31);
	must(scheme->width[SNOWFLAKE_SEQUENCE] <= 32);
	must(!snowflake_scheme_sorts(scheme) ||
		 scheme->shift[SNOWFLAKE_TIMESTAMP] +
		 scheme->width[SNOWFLAKE_TIMESTAMP] == scheme->bits);
}

/*
 * An ID that is taken apart and put together again is the same but for its
 * unused bits, which are 0, and of two of a scheme that sorts, the one with the
 * later tick is greater.
 */
static void
check_id(const SnowflakeScheme *scheme, uint64 bits)
{
	uint64		mask = PG_UINT64_MAX >> (64 - scheme->bits);
	int64		id = (int64) (bits & mask);
	int64		again = 0;
	uint64		used = 0;
	int			unused = scheme->unused_above;

	must(snowflake_scheme_holds(scheme, id));
	must(snowflake_scheme_holds(scheme, (int64) bits) == ((bits & ~mask) == 0));
	for (int field = 0; field < SNOWFLAKE_NFIELDS; field++)
	{
		int64		value = snowflake_field_get(scheme, field, id);

		must(value >= 0 && value <= snowflake_field_max(scheme, field));
		must(snowflake_field_get(scheme, field,
								 snowflake_field_put(scheme, field, value)) == value);
		again |= snowflake_field_put(scheme, field, value);
		used |= (uint64)
			snowflake_field_put(scheme, field,
								snowflake_field_max(scheme, field));
		unused += scheme->unused_below[field];
	}
	must((uint64) again == ((uint64) id & used));
	must((used & ~mask) == 0);
	must(__builtin_popcountll(used) + unused == scheme->bits);

	if (snowflake_scheme_sorts(scheme) && scheme->bits < 64)
	{
		int64		tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id);

		must(id >= snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP, tick));
		if (tick < snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP))
			must(id < snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP, tick + 1));
	}
}

static void
must_be_same(const SnowflakeScheme *a, const SnowflakeScheme *b)
{
	must(a->epoch_ms == b->epoch_ms && a->tick_us == b->tick_us);
	must(a->bits == b->bits && a->nfields == b->nfields);
	must(a->unused_above == b->unused_above);
	for (int i = 0; i < SNOWFLAKE_NFIELDS; i++)
	{
		must(a->order[i] == b->order[i]);
		must(a->width[i] == b->width[i] && a->shift[i] == b->shift[i]);
		must(a->unused_below[i] == b->unused_below[i]);
	}
}

/*
 * Upper or lower case makes no difference, nor do blanks.
 */
static void
check_variant(const SnowflakeScheme *scheme, const char *text)
{
	char		changed[3 * MAX_TEXT + 1];
	size_t		n = 0;
	SnowflakeScheme other;

	for (const char *p = text; *p != '\0'; p++)
	{
		bool		blanks = *p == ',' || *p == '=';

		if (blanks)
			changed[n++] = '\t';
		if (isascii((unsigned char) *p) && isalpha((unsigned char) *p))
			changed[n++] = *p ^ 0x20;
		else
			changed[n++] = *p;
		if (blanks)
			changed[n++] = ' ';
	}
	changed[n] = '\0';
	if (n <= SNOWFLAKE_MAX_SCHEME_LENGTH)
	{
		must(read_text(changed, &other));
		must_be_same(scheme, &other);
	}
}

/*
 * What is written is read as the same scheme, and written in the same way.
 */
static void
check_written(const SnowflakeScheme *scheme)
{
	char	   *text = malloc(SNOWFLAKE_MAX_SCHEME_LENGTH + 1);
	char		again[SNOWFLAKE_MAX_SCHEME_LENGTH + 1];
	SnowflakeScheme other;

	snowflake_scheme_write(scheme, text);
	must(read_text(text, &other));
	must_be_same(scheme, &other);
	snowflake_scheme_write(&other, again);
	must(strcmp(text, again) == 0);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char		text[MAX_TEXT + 1];
	uint64		hash = UINT64CONST(0xcbf29ce484222325);
	SnowflakeScheme scheme;

	if (size > MAX_TEXT)
		return -1;
	memcpy(text, data, size);
	text[size] = '\0';

	if (read_text(text, &scheme))
	{
		check_scheme(&scheme);

		/* Any bits will do for an ID, as long as they differ. */
		for (size_t i = 0; i < size; i++)
		{
			hash = (hash ^ data[i]) * UINT64CONST(0x100000001b3);
			check_id(&scheme, hash);
		}
		check_id(&scheme, 0);
		check_id(&scheme, PG_UINT64_MAX);
		check_id(&scheme, (uint64) PG_INT64_MAX);

		check_variant(&scheme, text);
		check_written(&scheme);
	}
	return 0;
}
