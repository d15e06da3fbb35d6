/*-------------------------------------------------------------------------
 *
 * hashids_fuzz.c
 *	  What must hold for Hashids of every salt, minimum length and alphabet,
 *	  and for every text that is read as one.
 *
 * A program for libFuzzer, without a server; script/tests/fuzz builds and runs it.
 * An input is a byte for the minimum length and three lines: salt, alphabet
 * (the default if it is empty) and text.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/hashids_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "keys/hashids.h"
#include "must.h"

#define MAX_INPUT	1024
#define MAX_NUMBERS	5

/*
 * Each character of the alphabet is in one of the three lists, once.
 */
static void
check_prepared(const SnowflakeHashids *hashids, const char *alphabet)
{
	const SnowflakeLetters *lists[] =
	{&hashids->alphabet, &hashids->separators, &hashids->guards};
	bool		seen[256] = {false};
	int			n = 0;
	int			nseen = 0;

	for (int i = 0; i < 3; i++)
	{
		n += lists[i]->n;
		for (int j = 0; j < lists[i]->n; j++)
		{
			unsigned char c = lists[i]->c[j];

			must(!seen[c]);
			must(strchr(alphabet, c) != NULL);
			seen[c] = true;
			nseen++;
		}
	}
	must(n == nseen && n >= SNOWFLAKE_HASHIDS_MIN_ALPHABET);
	for (const char *c = alphabet; *c != '\0'; c++)
		must(seen[(unsigned char) *c]);
	must(hashids->alphabet.n >= 2);
	must(hashids->separators.n >= 1);
	must(hashids->guards.n >= 1);
}

/*
 * Read a text, and write it again if it could be read.
 */
static SnowflakeHashidsResult
read_text(SnowflakeHashids *hashids, const char *text, int length,
		  int64 *numbers, int *n)
{
	int			most = snowflake_hashids_count(hashids, text, length);
	int64	   *read = malloc(most * sizeof(int64));
	char	   *room = malloc(SNOWFLAKE_HASHIDS_ROOM(most, hashids->min_length));
	SnowflakeHashidsResult result;

	result = snowflake_hashids_decode(hashids, text, length, read, n, room);
	if (result == SNOWFLAKE_HASHIDS_GOOD)
	{
		must(*n <= most);
		for (int i = 0; i < *n; i++)
			must(read[i] >= 0);
		must(snowflake_hashids_encode(hashids, read, *n, room) == length);
		must(memcmp(room, text, length) == 0);
		if (*n <= MAX_NUMBERS)
			memcpy(numbers, read, *n * sizeof(int64));
	}
	else if (result == SNOWFLAKE_HASHIDS_CHARACTER)
		must(*n >= 1 && *n <= length);
	free(read);
	free(room);
	return result;
}

/*
 * Numbers that are written and read are the same, whatever was prepared for
 * other numbers before.
 */
static void
check_numbers(SnowflakeHashids *hashids, const SnowflakeHashids *fresh,
			  const int64 *numbers, int n)
{
	size_t		size = SNOWFLAKE_HASHIDS_ROOM(n, hashids->min_length);
	char	   *text = malloc(size);
	char	   *same = malloc(size);
	SnowflakeHashids copy = *fresh;
	int64		read[MAX_NUMBERS];
	int			nread;
	int			length = snowflake_hashids_encode(hashids, numbers, n, text);

	must(length > 0 && length >= hashids->min_length);
	must(snowflake_hashids_encode(&copy, numbers, n, same) == length);
	must(memcmp(text, same, length) == 0);
	must(read_text(hashids, text, length, read, &nread) == SNOWFLAKE_HASHIDS_GOOD);
	must(nread == n);
	must(memcmp(read, numbers, n * sizeof(int64)) == 0);
	free(text);
	free(same);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *input = data;
	const uint8_t *end = data + size;
	uint64		hash = UINT64CONST(0xcbf29ce484222325);
	SnowflakeHashids hashids;
	int			min_length;
	char	   *salt;
	char	   *alphabet;
	char	   *text;
	int			length;
	uint32	   *code_points;
	int			nsalt;
	char	   *error = malloc(SNOWFLAKE_HASHIDS_ERROR_SIZE);

	if (size < 1 || size > MAX_INPUT)
	{
		free(error);
		return -1;
	}
	min_length = *data++;
	min_length = min_length < 200 ? min_length :
		SNOWFLAKE_HASHIDS_MAX_MIN_LENGTH;
	salt = next_line(&data, end);
	alphabet = next_line(&data, end);
	text = next_line(&data, end);
	length = (int) strlen(text);

	/* Code points of all sizes */
	nsalt = (int) strlen(salt);
	code_points = malloc((nsalt + 1) * sizeof(uint32));
	for (int i = 0; i < nsalt; i++)
	{
		uint32		c = (unsigned char) salt[i];

		code_points[i] = c < 0x80 ? c : c * c * c % 0x110000;
	}

	if (snowflake_hashids_prepare(&hashids, code_points, nsalt, min_length,
								  alphabet[0] == '\0' ?
								  SNOWFLAKE_HASHIDS_ALPHABET : alphabet,
								  error))
	{
		SnowflakeHashids fresh = hashids;
		int64		numbers[MAX_NUMBERS];
		int			n;

		check_prepared(&hashids, alphabet[0] == '\0' ?
					   SNOWFLAKE_HASHIDS_ALPHABET : alphabet);
		(void) read_text(&hashids, text, length, numbers, &n);

		/* Any numbers will do, as long as they differ. */
		for (n = 1; n <= MAX_NUMBERS; n += MAX_NUMBERS - 1)
		{
			for (int i = 0; i < n; i++)
			{
				hash = (hash ^ input[(i + n) % size]) *
					UINT64CONST(0x100000001b3);
				numbers[i] = (int64) (hash >> (1 + hash % 63));
			}
			check_numbers(&hashids, &fresh, numbers, n);
		}
		numbers[0] = PG_INT64_MAX;
		numbers[1] = 0;
		check_numbers(&hashids, &fresh, numbers, 2);
	}
	else
	{
		length = (int) strlen(error);
		must(length > 0 && length < SNOWFLAKE_HASHIDS_ERROR_SIZE - 1);
		must(error[length - 1] == '.');
	}
	free(salt);
	free(alphabet);
	free(text);
	free(code_points);
	free(error);
	return 0;
}
