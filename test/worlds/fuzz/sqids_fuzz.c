/*-------------------------------------------------------------------------
 *
 * sqids_fuzz.c
 *	  What must hold for Sqids of every minimum length, alphabet and blocklist,
 *	  and for every text that is read as one.
 *
 * A program for libFuzzer, without a server; script/tests/fuzz builds and runs it.
 * An input is a byte for the minimum length and lines: alphabet (the default
 * if it is empty), text, and words of the blocklist.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/sqids_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "must.h"
#include "keys/sqids.h"

#define MAX_INPUT	1024
#define MAX_NUMBERS	5
#define MAX_WORDS	8

/*
 * The prepared alphabet has the characters of the given one, each once.
 */
static void
check_prepared(const SnowflakeSqids *sqids, const char *alphabet)
{
	bool		seen[256] = {false};

	must(sqids->n == (int) strlen(alphabet));
	must(sqids->n >= SNOWFLAKE_SQIDS_MIN_ALPHABET);
	must(sqids->n <= SNOWFLAKE_SQIDS_MAX_ALPHABET);
	for (int i = 0; i < sqids->n; i++)
	{
		unsigned char c = sqids->alphabet[i];

		must(!seen[c]);
		must(strchr(alphabet, c) != NULL);
		seen[c] = true;
	}
}

/*
 * Is a word in a text?  This is another way to see it than that of the source.
 */
static bool
has_word(const char *text, int length, const char *word)
{
	int			n = (int) strlen(word);
	bool		has_digit = strpbrk(word, "0123456789") != NULL;

	if (n < 3)
		return false;
	for (int i = 0; i + n <= length; i++)
	{
		bool		start = i == 0;
		bool		end = i + n == length;

		if (pg_strncasecmp(&text[i], word, n) != 0)
			continue;
		if (n == length || (n > 3 && (!has_digit || start || end)))
			return true;
	}
	return false;
}

/*
 * Read a text.  If it could be read, its numbers have this text, for some
 * blocklist.
 */
static SnowflakeSqidsResult
read_text(const SnowflakeSqids *sqids, const char *text, int length,
		  int64 *numbers, int *n)
{
	int			most = SNOWFLAKE_SQIDS_COUNT(length);
	int64	   *read = malloc(most * sizeof(int64) + 1);
	char	   *room = malloc(length + 1);
	SnowflakeSqidsResult result;

	result = snowflake_sqids_decode(sqids, text, length, read, n, room);
	if (result == SNOWFLAKE_SQIDS_GOOD)
	{
		must(*n <= most);
		must((*n == 0) == (length == 0));
		for (int i = 0; i < *n; i++)
			must(read[i] >= 0);
		if (*n <= MAX_NUMBERS)
			memcpy(numbers, read, *n * sizeof(int64));
	}
	else if (result == SNOWFLAKE_SQIDS_CHARACTER)
		must(*n >= 1 && *n <= length);
	free(read);
	free(room);
	return result;
}

/*
 * Numbers that are written and read are the same, and their text has none of
 * the words.
 */
static void
check_numbers(const SnowflakeSqids *sqids, char **words, int nwords,
			  const int64 *numbers, int n)
{
	size_t		size = SNOWFLAKE_SQIDS_ROOM(n, sqids->min_length);
	char	   *text = malloc(size);
	int64		read[MAX_NUMBERS];
	int			nread;
	int			length = snowflake_sqids_encode(sqids, numbers, n, text);

	if (length < 0)
		must(nwords > 0);
	else
	{
		must(length > 1 && length >= sqids->min_length);
		for (int i = 0; i < nwords; i++)
			must(!has_word(text, length, words[i]));
		must(read_text(sqids, text, length, read, &nread) ==
			 SNOWFLAKE_SQIDS_GOOD);
		must(nread == n);
		must(memcmp(read, numbers, n * sizeof(int64)) == 0);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *input = data;
	const uint8_t *end = data + size;
	uint64		hash = UINT64CONST(0xcbf29ce484222325);
	SnowflakeSqids sqids;
	int			min_length;
	char	   *alphabet;
	char	   *used;
	char	   *text;
	char	   *error = malloc(SNOWFLAKE_SQIDS_ERROR_SIZE);

	if (size < 1 || size > MAX_INPUT)
	{
		free(error);
		return -1;
	}
	min_length = *data++;
	alphabet = next_line(&data, end);
	text = next_line(&data, end);
	used = alphabet[0] == '\0' ? SNOWFLAKE_SQIDS_ALPHABET : alphabet;

	if (snowflake_sqids_prepare(&sqids, min_length, used, error))
	{
		char	   *lines[MAX_WORDS];
		SnowflakeSqidsWord words[MAX_WORDS];
		int			nwords = 0;
		int64		numbers[MAX_NUMBERS];
		int			n;

		check_prepared(&sqids, used);
		if (read_text(&sqids, text, (int) strlen(text), numbers, &n) ==
			SNOWFLAKE_SQIDS_GOOD && n > 0 && n <= MAX_NUMBERS)
			check_numbers(&sqids, NULL, 0, numbers, n);

		for (; nwords < MAX_WORDS && data < end; nwords++)
		{
			lines[nwords] = next_line(&data, end);
			words[nwords].length = (int) strlen(lines[nwords]);

			/* The list changes it. */
			words[nwords].text = malloc(words[nwords].length);
			memcpy(words[nwords].text, lines[nwords], words[nwords].length);
		}
		snowflake_sqids_block(&sqids, words, nwords);

		/* Any numbers will do, as long as they differ. */
		for (n = 1; n <= MAX_NUMBERS; n += MAX_NUMBERS - 1)
		{
			for (int i = 0; i < n; i++)
			{
				hash = (hash ^ input[(i + n) % size]) *
					UINT64CONST(0x100000001b3);
				numbers[i] = (int64) (hash >> (1 + hash % 63));
			}
			check_numbers(&sqids, lines, nwords, numbers, n);
		}
		numbers[0] = PG_INT64_MAX;
		numbers[1] = 0;
		check_numbers(&sqids, lines, nwords, numbers, 2);
		for (int i = 0; i < nwords; i++)
		{
			free(lines[i]);
			free(words[i].text);
		}
	}
	else
	{
		int			length = (int) strlen(error);

		must(length > 0 && length < SNOWFLAKE_SQIDS_ERROR_SIZE - 1);
		must(error[length - 1] == '.');
	}
	free(alphabet);
	free(text);
	free(error);
	return 0;
}
