/*-------------------------------------------------------------------------
 *
 * scheme.h
 *	  Schemes: the meaning of the bits of a snowflake ID.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/scheme.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SCHEME_H
#define SNOWFLAKE_SCHEME_H

/* The bit fields of an ID. */
typedef enum SnowflakeField
{
	SNOWFLAKE_TIMESTAMP,
	SNOWFLAKE_DATACENTER,
	SNOWFLAKE_WORKER,
	SNOWFLAKE_SEQUENCE
} SnowflakeField;

#define SNOWFLAKE_NFIELDS	4

/*
 * An ID has up to 64 bits, as in some systems; those generated here have up to
 * 63, because they are non-negative bigints, and their ticks are not shorter
 * than a millisecond.
 */
#define SNOWFLAKE_MAX_BITS	64
#define SNOWFLAKE_MAX_OWN_BITS	63
#define SNOWFLAKE_MIN_OWN_TICK_US	1000

/* The longest text of a scheme that is read or written, in bytes. */
#define SNOWFLAKE_MAX_SCHEME_LENGTH 255

#define SNOWFLAKE_DEFAULT_SCHEME \
	"epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12"

/*
 * Epoch, tick, and bit fields.  A field that the scheme does not have has
 * width 0, and only the value 0.  There may be unused bits between the fields,
 * above the first, and below the last.
 */
typedef struct SnowflakeScheme
{
	int64		epoch_ms;		/* time of tick 0, in Unix milliseconds */
	int64		tick_us;		/* length of a tick, in microseconds */
	int			bits;			/* sum of the widths and the unused bits */
	int			nfields;		/* number of fields it has */
	SnowflakeField order[SNOWFLAKE_NFIELDS];	/* its fields, highest first */
	int			width[SNOWFLAKE_NFIELDS];	/* bits of each field */
	int			shift[SNOWFLAKE_NFIELDS];	/* bits below each field */
	int			unused_above;	/* unused bits above the first field */
	int			unused_below[SNOWFLAKE_NFIELDS];	/* and right below each */
} SnowflakeScheme;

/*
 * Room for the sentence that says why a text is not a valid scheme.  A longer
 * one is truncated; script/tests/fuzz tests that with less room.
 */
#ifndef SNOWFLAKE_SCHEME_ERROR_SIZE
#define SNOWFLAKE_SCHEME_ERROR_SIZE 384
#endif

extern bool snowflake_scheme_read(const char *text, SnowflakeScheme *scheme,
								  char *error);
extern void snowflake_scheme_write(const SnowflakeScheme *scheme, char *text);
extern bool snowflake_scheme_generates(const SnowflakeScheme *scheme, char *error);
extern bool snowflake_scheme_sorts(const SnowflakeScheme *scheme);
extern const char *snowflake_named_scheme(int n, const char **text);

/* The largest value that a field can take. */
static inline int64
snowflake_field_max(const SnowflakeScheme *scheme, SnowflakeField field)
{
	return (int64) ((UINT64CONST(1) << scheme->width[field]) - 1);
}

/* The value of one field of an ID that fits the scheme. */
static inline int64
snowflake_field_get(const SnowflakeScheme *scheme, SnowflakeField field,
					int64 id)
{
	return (int64) ((uint64) id >> scheme->shift[field]) &
		snowflake_field_max(scheme, field);
}

/* A value, which must fit its field, at the field's place in an ID. */
static inline int64
snowflake_field_put(const SnowflakeScheme *scheme, SnowflakeField field,
					int64 value)
{
	return (int64) ((uint64) value << scheme->shift[field]);
}

/* Does an ID have no bits above those of the scheme? */
static inline bool
snowflake_scheme_holds(const SnowflakeScheme *scheme, int64 id)
{
	return ((uint64) id >> (scheme->bits - 1)) <= 1;
}

#endif							/* SNOWFLAKE_SCHEME_H */
