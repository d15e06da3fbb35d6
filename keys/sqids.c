/*-------------------------------------------------------------------------
 *
 * sqids.c
 *	  Sqids: numbers as short texts, without words of a list.
 *
 * This is the algorithm published at sqids.org, which has libraries in many
 * languages; each step gives the same result as theirs, so a text written by
 * one can be read by all.
 *
 * The alphabet is shuffled once.  The numbers determine a letter of it, with
 * which the text starts, and from which the alphabet is read on, backwards.
 * Each number is then written with all its letters but the first as digits.
 * The first stands between two numbers, after which the alphabet is shuffled.
 * A text that is shorter than the minimum gets that letter at its end, too,
 * and letters of the alphabet after it, which is shuffled for each round.
 *
 * If the text has a word of the blocklist, it is written again with the next
 * letter as its start.  So the same numbers have as many texts as the alphabet
 * has letters, one for each start.  All of them are read, because another list
 * may have been in force when they were written.
 *
 * Not every text of valid characters is one of them.  To read a text, it is
 * split without checking that each part is where it should be, and then
 * compared with the text that the resulting numbers have with this start and
 * this length.
 *
 * This file is independent of the server: no ereport, no palloc, no settings;
 * but with a long blocklist, a call can be cancelled.  It can be built and tested
 * on its own (with -DFRONTEND).
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/sqids.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#include "miscadmin.h"
#else
#include "postgres_fe.h"
#define CHECK_FOR_INTERRUPTS() ((void) 0)
#endif

#include "keys/sqids.h"

/* Shorter words are not looked for. */
#define MIN_WORD	3

/* An alphabet in the order that part of a text needs. */
typedef struct Letters
{
	int			n;
	char		c[SNOWFLAKE_SQIDS_MAX_ALPHABET];
} Letters;

/*
 * The position of a character in the alphabet, or -1.
 */
static int
find_letter(const char *alphabet, int n, char c)
{
	const char *found = memchr(alphabet, c, n);

	return found == NULL ? -1 : (int) (found - alphabet);
}

/*
 * The lower case of an ASCII letter; words are compared without case.
 */
static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/*
 * Put letters into an order that only the previous order determines.
 */
static void
shuffle(char *c, int n)
{
	for (int i = 0, j = n - 1; j > 0; i++, j--)
	{
		int			k = (i * j + c[i] + c[j]) % n;
		char		moved = c[i];

		c[i] = c[k];
		c[k] = moved;
	}
}

/*
 * Prepare the minimum length of a text (0 to SNOWFLAKE_SQIDS_MAX_MIN_LENGTH)
 * and an alphabet.  Nothing is blocked.  Returns false if the alphabet is
 * invalid, with a sentence in error.
 */
bool
snowflake_sqids_prepare(SnowflakeSqids *sqids, int min_length,
						const char *alphabet, char *error)
{
	int			n = 0;

	for (; alphabet[n] != '\0'; n++)
	{
		if (alphabet[n] <= ' ' || alphabet[n] > '~')
		{
			snprintf(error, SNOWFLAKE_SQIDS_ERROR_SIZE,
					 "Character %d is not a printable ASCII character other than space.",
					 n + 1);
			return false;
		}
		if (find_letter(sqids->alphabet, n, alphabet[n]) >= 0)
		{
			snprintf(error, SNOWFLAKE_SQIDS_ERROR_SIZE,
					 "Character %d is repeated.", n + 1);
			return false;
		}
		sqids->alphabet[n] = alphabet[n];
	}
	if (n < SNOWFLAKE_SQIDS_MIN_ALPHABET)
	{
		snprintf(error, SNOWFLAKE_SQIDS_ERROR_SIZE,
				 "It has %d characters, but at least %d are required.",
				 n, SNOWFLAKE_SQIDS_MIN_ALPHABET);
		return false;
	}

	sqids->n = n;
	sqids->min_length = min_length;
	shuffle(sqids->alphabet, n);
	snowflake_sqids_block(sqids, NULL, 0);
	return true;
}

/*
 * Change a word to lower case.  Returns false if no text has it, because it is
 * too short or has a character that the alphabet, in lower case, does not have.
 */
static bool
prepare_word(SnowflakeSqidsWord *word, const bool *letters)
{
	word->has_digit = false;
	if (word->length < MIN_WORD)
		return false;
	for (int i = 0; i < word->length; i++)
	{
		char		c = lower(word->text[i]);

		if (!letters[(unsigned char) c])
			return false;
		if (c >= '0' && c <= '9')
			word->has_digit = true;
		word->text[i] = c;
	}
	return true;
}

/*
 * Replace the list of words to avoid.  The words must remain where they are,
 * and are changed.
 */
void
snowflake_sqids_block(SnowflakeSqids *sqids, SnowflakeSqidsWord *words,
					  int nwords)
{
	bool		letters[256] = {false};

	for (int i = 0; i < sqids->n; i++)
		letters[(unsigned char) lower(sqids->alphabet[i])] = true;

	sqids->words = words;
	for (int i = 0; i < (int) lengthof(sqids->first_word); i++)
		sqids->first_word[i] = -1;
	for (int i = 0; i < nwords; i++)
	{
		if (prepare_word(&words[i], letters))
		{
			int		   *first = &sqids->first_word[(int) words[i].text[0]];

			words[i].next = *first;
			*first = i;
		}
	}
}

/*
 * Does a text have a word at this place, if that matters there?  A text or a
 * word of three letters counts only as a whole, and a word with a digit, which
 * few would read, only at the start and the end.
 */
static bool
has_word_at(const SnowflakeSqidsWord *word, const char *text, int length,
			int place)
{
	bool		at_start = place == 0;
	bool		at_end = place + word->length == length;

	if (place + word->length > length)
		return false;
	if (length <= MIN_WORD || word->length <= MIN_WORD)
	{
		if (!at_start || !at_end)
			return false;
	}
	else if (word->has_digit && !at_start && !at_end)
		return false;

	for (int i = 1; i < word->length; i++)
	{
		if (lower(text[place + i]) != word->text[i])
			return false;
	}
	return true;
}

/*
 * Does a text have a word of the list?
 */
static bool
is_blocked(const SnowflakeSqids *sqids, const char *text, int length)
{
	for (int i = 0; i <= length - MIN_WORD; i++)
	{
		int			word = sqids->first_word[(int) lower(text[i])];

		CHECK_FOR_INTERRUPTS();
		for (; word >= 0; word = sqids->words[word].next)
		{
			if (has_word_at(&sqids->words[word], text, length, i))
				return true;
		}
	}
	return false;
}

/*
 * The alphabet of a text that starts with a letter: from there on, backwards.
 */
static void
start_letters(const SnowflakeSqids *sqids, int start, Letters *letters)
{
	int			n = sqids->n;

	letters->n = n;
	for (int i = 0; i < n; i++)
		letters->c[n - 1 - i] = sqids->alphabet[(start + i) % n];
}

/*
 * Write a number with the letters but the first; returns how many.
 */
static int
write_number(uint64 number, const Letters *letters, char *text)
{
	char		digits[64];
	int			base = letters->n - 1;
	int			n = 0;

	do
	{
		digits[sizeof(digits) - ++n] = letters->c[1 + number % base];
		number /= base;
	} while (number > 0);
	memcpy(text, &digits[sizeof(digits) - n], n);
	return n;
}

/*
 * Write the text of numbers that starts with a letter; returns its length.
 */
static int
write_text(const SnowflakeSqids *sqids, int start, int min_length,
		   const int64 *numbers, int n, char *text)
{
	Letters		letters;
	int			length = 0;

	start_letters(sqids, start, &letters);
	text[length++] = sqids->alphabet[start];
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
		{
			text[length++] = letters.c[0];
			shuffle(letters.c, letters.n);
		}
		length += write_number(numbers[i], &letters, &text[length]);
	}

	if (length < min_length)
		text[length++] = letters.c[0];
	while (length < min_length)
	{
		int			more = Min(min_length - length, letters.n);

		shuffle(letters.c, letters.n);
		memcpy(&text[length], letters.c, more);
		length += more;
	}
	return length;
}

/*
 * Write the text of numbers, which are not negative; returns its length, or -1
 * if each text that they can have is blocked.  The buffer needs
 * SNOWFLAKE_SQIDS_ROOM bytes.
 */
int
snowflake_sqids_encode(const SnowflakeSqids *sqids, const int64 *numbers,
					   int n, char *text)
{
	uint64		sum = n;

	if (n == 0)
		return 0;
	for (int i = 0; i < n; i++)
		sum += sqids->alphabet[numbers[i] % sqids->n] + i;

	for (int i = 0; i < sqids->n; i++)
	{
		int			length = write_text(sqids, (int) ((sum + i) % sqids->n),
										sqids->min_length, numbers, n, text);

		if (!is_blocked(sqids, text, length))
			return length;
	}
	return -1;
}

/*
 * Read the numbers of a text.  There must be room for as many as
 * SNOWFLAKE_SQIDS_COUNT() says, and for a text of this length.  For
 * SNOWFLAKE_SQIDS_CHARACTER, n is the position of the character, starting with
 * 1.
 */
SnowflakeSqidsResult
snowflake_sqids_decode(const SnowflakeSqids *sqids, const char *text,
					   int length, int64 *numbers, int *n, char *room)
{
	Letters		letters;
	int			start;
	int			place = 1;

	*n = 0;
	if (length == 0)
		return SNOWFLAKE_SQIDS_GOOD;

	/* An alphabet that was prepared has more; static analysis does not know. */
	if (sqids->n < SNOWFLAKE_SQIDS_MIN_ALPHABET)
		return SNOWFLAKE_SQIDS_BAD;
	for (int i = 0; i < length; i++)
	{
		if (find_letter(sqids->alphabet, sqids->n, text[i]) < 0)
		{
			*n = i + 1;
			return SNOWFLAKE_SQIDS_CHARACTER;
		}
	}

	start = find_letter(sqids->alphabet, sqids->n, text[0]);
	start_letters(sqids, start, &letters);

	/* Nothing where a number should be is the end, or the start of padding. */
	while (place < length && text[place] != letters.c[0])
	{
		uint64		base = letters.n - 1;
		uint64		number = 0;

		for (; place < length && text[place] != letters.c[0]; place++)
		{
			uint64		digit = find_letter(&letters.c[1], letters.n - 1,
											text[place]);

			if (number > ((uint64) PG_INT64_MAX - digit) / base)
				return SNOWFLAKE_SQIDS_RANGE;
			number = number * base + digit;
		}
		numbers[(*n)++] = (int64) number;
		place++;
		shuffle(letters.c, letters.n);
	}

	if (*n == 0 ||
		write_text(sqids, start, length, numbers, *n, room) != length ||
		memcmp(room, text, length) != 0)
		return SNOWFLAKE_SQIDS_BAD;
	return SNOWFLAKE_SQIDS_GOOD;
}
