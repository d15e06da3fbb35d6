/*-------------------------------------------------------------------------
 *
 * sqids.h
 *	  Sqids: numbers as short texts, without words of a list.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/sqids.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SQIDS_H
#define SNOWFLAKE_SQIDS_H

#define SNOWFLAKE_SQIDS_ALPHABET \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* The minimum of characters, and how many ASCII has. */
#define SNOWFLAKE_SQIDS_MIN_ALPHABET	3
#define SNOWFLAKE_SQIDS_MAX_ALPHABET	94

/* Limits of min_length, and of the numbers in one text. */
#define SNOWFLAKE_SQIDS_MAX_MIN_LENGTH	255
#define SNOWFLAKE_SQIDS_MAX_NUMBERS		10000

/* A word that no text may have. */
typedef struct SnowflakeSqidsWord
{
	char	   *text;			/* in lower case once it is on the list */
	int			length;
	bool		has_digit;
	int			next;			/* a word with the same first letter, or -1 */
} SnowflakeSqidsWord;

/* The state prepared from min_length, alphabet, and blocklist. */
typedef struct SnowflakeSqids
{
	int			min_length;
	int			n;				/* of the alphabet */
	char		alphabet[SNOWFLAKE_SQIDS_MAX_ALPHABET];

	/* Words to avoid, which belong to the caller, by their first letter. */
	SnowflakeSqidsWord *words;
	int			first_word[128];	/* -1: none */
} SnowflakeSqids;

/* Results of reading a text. */
typedef enum SnowflakeSqidsResult
{
	SNOWFLAKE_SQIDS_GOOD,
	SNOWFLAKE_SQIDS_CHARACTER,	/* a character is not in the alphabet */
	SNOWFLAKE_SQIDS_RANGE,		/* a number is greater than a bigint */
	SNOWFLAKE_SQIDS_BAD			/* no numbers have this text */
} SnowflakeSqidsResult;

/* Room for the sentence that says why an alphabet is invalid. */
#define SNOWFLAKE_SQIDS_ERROR_SIZE	100

/*
 * Room for the text of n numbers: for each, at most 63 letters, in an alphabet
 * of two, and a separator, after a letter that starts the text.
 */
#define SNOWFLAKE_SQIDS_ROOM(n, min_length) Max(1 + 64 * (n), (min_length))

/* The most numbers in a text: each has a digit at least, and a letter before it. */
#define SNOWFLAKE_SQIDS_COUNT(length) ((length) / 2)

extern bool snowflake_sqids_prepare(SnowflakeSqids *sqids, int min_length,
									const char *alphabet, char *error);
extern void snowflake_sqids_block(SnowflakeSqids *sqids,
								  SnowflakeSqidsWord *words, int nwords);
extern int	snowflake_sqids_encode(const SnowflakeSqids *sqids,
								   const int64 *numbers, int n, char *text);
extern SnowflakeSqidsResult snowflake_sqids_decode(const SnowflakeSqids *sqids,
												   const char *text,
												   int length,
												   int64 *numbers, int *n,
												   char *room);

#endif							/* SNOWFLAKE_SQIDS_H */
