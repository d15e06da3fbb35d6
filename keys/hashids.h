/*-------------------------------------------------------------------------
 *
 * hashids.h
 *	  Hashids: numbers as short texts.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/hashids.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_HASHIDS_H
#define SNOWFLAKE_HASHIDS_H

#define SNOWFLAKE_HASHIDS_ALPHABET \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890"

/* The minimum of different characters, and how many ASCII has. */
#define SNOWFLAKE_HASHIDS_MIN_ALPHABET	16
#define SNOWFLAKE_HASHIDS_MAX_ALPHABET	94

/* Limits of min_length, and of the numbers in one text. */
#define SNOWFLAKE_HASHIDS_MAX_MIN_LENGTH	1000
#define SNOWFLAKE_HASHIDS_MAX_NUMBERS		10000

/* An ordered list of characters. */
typedef struct SnowflakeLetters
{
	int			n;
	char		c[SNOWFLAKE_HASHIDS_MAX_ALPHABET];
} SnowflakeLetters;

/* The state prepared from salt, min_length, and alphabet. */
typedef struct SnowflakeHashids
{
	int			min_length;
	int			nsalt;
	uint32		salt[SNOWFLAKE_HASHIDS_MAX_ALPHABET];	/* code points */
	SnowflakeLetters alphabet;
	SnowflakeLetters separators;	/* between numbers */
	SnowflakeLetters guards;	/* around padding */

	/* The alphabet of the first number, by the text's first letter. */
	SnowflakeLetters first[SNOWFLAKE_HASHIDS_MAX_ALPHABET]; /* n = 0: unknown */
} SnowflakeHashids;

/* Results of reading a text. */
typedef enum SnowflakeHashidsResult
{
	SNOWFLAKE_HASHIDS_GOOD,
	SNOWFLAKE_HASHIDS_CHARACTER,	/* a character is not in the alphabet */
	SNOWFLAKE_HASHIDS_RANGE,	/* a number is greater than a bigint */
	SNOWFLAKE_HASHIDS_BAD		/* no numbers have this text */
} SnowflakeHashidsResult;

/* Room for the sentence that says why an alphabet is invalid. */
#define SNOWFLAKE_HASHIDS_ERROR_SIZE	100

/*
 * Room for the text of n numbers: for each, at most 63 letters, in an alphabet
 * of two, and a separator; or min_length and the excess of a round of padding.
 */
#define SNOWFLAKE_HASHIDS_ROOM(n, min_length) \
	Max(1 + 64 * (n), (min_length) + SNOWFLAKE_HASHIDS_MAX_ALPHABET)

extern bool snowflake_hashids_prepare(SnowflakeHashids *hashids,
									  const uint32 *salt, int nsalt,
									  int min_length, const char *alphabet,
									  char *error);
extern int	snowflake_hashids_encode(SnowflakeHashids *hashids,
									 const int64 *numbers, int n, char *text);
extern int	snowflake_hashids_count(const SnowflakeHashids *hashids,
									const char *text, int length);
extern SnowflakeHashidsResult snowflake_hashids_decode(SnowflakeHashids *hashids,
													   const char *text,
													   int length,
													   int64 *numbers, int *n,
													   char *room);

#endif							/* SNOWFLAKE_HASHIDS_H */
