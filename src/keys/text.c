/*-------------------------------------------------------------------------
 *
 * text.c
 *	  Snowflake IDs as short texts.
 *
 * The formats:
 *
 *		base32	13 characters of Crockford's alphabet, as TSID libraries write
 *				them; read in any case, with I and L for 1 and O for 0
 *		base62	11 characters, 0-9A-Za-z
 *		hex		16 characters, read in any case
 *
 * Each format writes the 64 bits as an unsigned number of fixed length, whose
 * digits are in the order of their ASCII codes.  So texts sort, byte by byte,
 * like non-negative IDs, and negative IDs of 64-bit schemes, which are later
 * ones, sort last.
 *
 * This file is independent of the server, and can be built and tested on its
 * own (with -DFRONTEND).  text_functions.c has the SQL functions.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/keys/text.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include "common/int.h"

#include "keys/text.h"

typedef struct TextFormat
{
	const char *name;
	const char *digits;
	int			base;			/* number of digits */
	int			length;			/* of 2^64 - 1 */
} TextFormat;

static const TextFormat formats[SNOWFLAKE_NFORMATS] = {
	[SNOWFLAKE_BASE32] = {
		"base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 32, 13
	},
	[SNOWFLAKE_BASE62] = {
		"base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		62, 11
	},
	[SNOWFLAKE_HEX] = {
		"hex", "0123456789ABCDEF", 16, 16
	}
};

/* The values of A to Z in base32: U is invalid, I and L are 1, O is 0. */
static const int8 base32_letters[26] = {
	10, 11, 12, 13, 14, 15, 16, 17, 1, 18, 19, 1, 20, 21, 0,
	22, 23, 24, 25, 26, -1, 27, 28, 29, 30, 31
};

/*
 * Find a format by its name, which need not be null-terminated.
 */
bool
snowflake_text_format(const char *name, size_t length,
					  SnowflakeTextFormat *format)
{
	for (int i = 0; i < SNOWFLAKE_NFORMATS; i++)
	{
		if (strlen(formats[i].name) == length &&
			pg_strncasecmp(formats[i].name, name, length) == 0)
		{
			*format = (SnowflakeTextFormat) i;
			return true;
		}
	}
	return false;
}

const char *
snowflake_text_format_name(SnowflakeTextFormat format)
{
	return formats[format].name;
}

/*
 * The length of texts of a format, in bytes and characters.
 */
int
snowflake_text_length(SnowflakeTextFormat format)
{
	return formats[format].length;
}

/*
 * Write the digits of a number from the last to the first.  In each call, the
 * base is a constant, so that the compiler avoids divisions.
 */
static inline void
write_digits(const TextFormat *format, uint64 base, uint64 number,
			 char *string)
{
	for (char *p = string + format->length; p > string; number /= base)
		*--p = format->digits[number % base];
}

/*
 * Write an ID, not null-terminated.
 */
void
snowflake_text_write(SnowflakeTextFormat format, int64 id, char *string)
{
	switch (format)
	{
		case SNOWFLAKE_BASE32:
			write_digits(&formats[format], 32, (uint64) id, string);
			break;
		case SNOWFLAKE_BASE62:
			write_digits(&formats[format], 62, (uint64) id, string);
			break;
		case SNOWFLAKE_HEX:
			write_digits(&formats[format], 16, (uint64) id, string);
			break;
	}
}

/*
 * The value of a character as a digit, or -1.
 */
static inline int
digit_value(SnowflakeTextFormat format, char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
	{
		if (format == SNOWFLAKE_BASE62)
			return c - 'a' + 36;
		c -= 'a' - 'A';
	}
	if (c < 'A' || c > (format == SNOWFLAKE_HEX ? 'F' : 'Z'))
		return -1;
	return format == SNOWFLAKE_BASE32 ? base32_letters[c - 'A'] : c - 'A' + 10;
}

/*
 * Read an ID.  If a character is invalid, place is the number of bytes before
 * it, which are digits.
 */
SnowflakeTextResult
snowflake_text_read(SnowflakeTextFormat format, const char *string,
					size_t length, int64 *id, size_t *place)
{
	size_t		right_length = (size_t) formats[format].length;
	uint64		number = 0;
	bool		too_great = false;

	for (size_t i = 0; i < length; i++)
	{
		int			value = digit_value(format, string[i]);

		if (value < 0)
		{
			*place = i;
			return SNOWFLAKE_TEXT_WRONG_CHARACTER;
		}
		if (i == right_length)
			return SNOWFLAKE_TEXT_WRONG_LENGTH;
		too_great |= pg_mul_u64_overflow(number, formats[format].base, &number);
		too_great |= pg_add_u64_overflow(number, value, &number);
	}
	if (length < right_length)
		return SNOWFLAKE_TEXT_WRONG_LENGTH;
	if (too_great)
		return SNOWFLAKE_TEXT_TOO_GREAT;

	*id = (int64) number;
	return SNOWFLAKE_TEXT_GOOD;
}
