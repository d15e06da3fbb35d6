/*-------------------------------------------------------------------------
 *
 * hashids.c
 *	  Hashids: numbers as short texts.
 *
 * This is the algorithm published at hashids.org, which has libraries in many
 * languages; each step gives the same result as theirs, so a text written by
 * one can be read by all.
 *
 * The salt shuffles the alphabet, some letters of which are reserved as
 * separators and guards.  A text begins with a letter that all its numbers
 * determine.  Each number is then written with the alphabet as its digits,
 * after the alphabet was shuffled by that first letter, the salt, and the
 * alphabet itself; separators stand between numbers.  A text that is shorter
 * than the minimum gets a guard on either side, and letters of the alphabet
 * outside them.
 *
 * A shuffle uses no more characters of its salt than the alphabet has letters.
 * So no more of the salt is kept, and the prepared state has a fixed size.
 * The shuffle before the first number depends only on the first letter, so its
 * result is cached.
 *
 * Not every text of valid characters is a Hashid.  To read a text, it is split
 * without checking that each part is where it should be, and then compared
 * with the text that the resulting numbers have.
 *
 * This file is independent of the server: no ereport, no palloc, no settings.
 * It can be built and tested on its own (with -DFRONTEND).
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/hashids.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include "keys/hashids.h"

/* The letters that are separators if the alphabet has them. */
#define SEPARATORS		"cfhistuCFHISTU"

#define MODULO_PART		100

/*
 * The position of a character, or -1.
 */
static int
find_letter(const SnowflakeLetters *letters, char c)
{
	const char *found = memchr(letters->c, c, letters->n);

	return found == NULL ? -1 : (int) (found - letters->c);
}

/*
 * Move the first letters to the end of another list.
 */
static void
move_letters(SnowflakeLetters *from, SnowflakeLetters *to, int n)
{
	memcpy(&to->c[to->n], from->c, n);
	to->n += n;
	from->n -= n;
	memmove(from->c, &from->c[n], from->n);
}

/*
 * Put letters into an order determined by the salt.
 */
static void
shuffle(SnowflakeLetters *letters, const uint32 *salt, int nsalt)
{
	uint32		sum = 0;
	int			s = 0;

	if (nsalt <= 0)
		return;
	for (int i = letters->n - 1; i > 0; i--)
	{
		char		c = letters->c[i];
		int			j;

		sum += salt[s];
		j = (int) ((salt[s] + s + sum) % i);
		letters->c[i] = letters->c[j];
		letters->c[j] = c;
		if (++s == nsalt)
			s = 0;
	}
}

/*
 * Put the alphabet into the order of the next number, determined by the text's
 * first letter, the salt, and the current order.
 */
static void
shuffle_for_number(const SnowflakeHashids *hashids, SnowflakeLetters *alphabet,
				   char first)
{
	uint32		salt[SNOWFLAKE_HASHIDS_MAX_ALPHABET];
	int			n = 0;

	salt[n++] = (unsigned char) first;
	for (int i = 0; i < hashids->nsalt && n < alphabet->n; i++)
		salt[n++] = hashids->salt[i];
	for (int i = 0; n < alphabet->n; i++)
		salt[n++] = (unsigned char) alphabet->c[i];
	shuffle(alphabet, salt, n);
}

/*
 * The alphabet in the order of the first number, of a text that begins with a
 * letter.
 */
static const SnowflakeLetters *
first_alphabet(SnowflakeHashids *hashids, int first)
{
	SnowflakeLetters *alphabet = &hashids->first[first];

	if (alphabet->n == 0)
	{
		*alphabet = hashids->alphabet;
		shuffle_for_number(hashids, alphabet, hashids->alphabet.c[first]);
	}
	return alphabet;
}

/*
 * The different characters of a text.  Returns the position of an invalid
 * character, starting with 1, or 0.
 */
static int
read_alphabet(const char *text, SnowflakeLetters *letters)
{
	letters->n = 0;
	for (int i = 0; text[i] != '\0'; i++)
	{
		if (text[i] <= ' ' || text[i] > '~')
			return i + 1;
		if (find_letter(letters, text[i]) < 0)
			letters->c[letters->n++] = text[i];
	}
	return 0;
}

/*
 * Prepare a salt (code points), the minimum length of a text (0 to
 * SNOWFLAKE_HASHIDS_MAX_MIN_LENGTH), and an alphabet.  Returns false if the
 * alphabet is invalid, with a sentence in error.
 */
bool
snowflake_hashids_prepare(SnowflakeHashids *hashids, const uint32 *salt,
						  int nsalt, int min_length, const char *alphabet,
						  char *error)
{
	SnowflakeLetters given;
	int			place = read_alphabet(alphabet, &given);
	int			wanted;

	if (place > 0)
	{
		snprintf(error, SNOWFLAKE_HASHIDS_ERROR_SIZE,
				 "Character %d is not a printable ASCII character other than space.",
				 place);
		return false;
	}
	if (given.n < SNOWFLAKE_HASHIDS_MIN_ALPHABET)
	{
		snprintf(error, SNOWFLAKE_HASHIDS_ERROR_SIZE,
				 "It has %d different characters, but at least %d are required.",
				 given.n, SNOWFLAKE_HASHIDS_MIN_ALPHABET);
		return false;
	}

	memset(hashids, 0, sizeof(*hashids));
	hashids->min_length = min_length;
	hashids->nsalt = Min(nsalt, SNOWFLAKE_HASHIDS_MAX_ALPHABET);
	for (int i = 0; i < hashids->nsalt; i++)
		hashids->salt[i] = salt[i];

	/* Separators have their own order, the rest that of the alphabet. */
	for (const char *c = SEPARATORS; *c != '\0'; c++)
	{
		if (find_letter(&given, *c) >= 0)
			hashids->separators.c[hashids->separators.n++] = *c;
	}
	for (int i = 0; i < given.n; i++)
	{
		if (strchr(SEPARATORS, given.c[i]) == NULL)
			hashids->alphabet.c[hashids->alphabet.n++] = given.c[i];
	}
	shuffle(&hashids->separators, hashids->salt, hashids->nsalt);

	/* One separator at least for each 3.5 letters, one guard for each 12. */
	wanted = (2 * hashids->alphabet.n + 6) / 7;
	if (wanted > hashids->separators.n)
		move_letters(&hashids->alphabet, &hashids->separators,
					 wanted - hashids->separators.n);
	shuffle(&hashids->alphabet, hashids->salt, hashids->nsalt);
	wanted = (hashids->alphabet.n + 11) / 12;
	move_letters(hashids->alphabet.n < 3 ? &hashids->separators :
				 &hashids->alphabet, &hashids->guards, wanted);
	return true;
}

/*
 * Write a number with the letters of an alphabet; returns how many.
 */
static int
write_number(uint64 number, const SnowflakeLetters *alphabet, char *text)
{
	char		digits[64];
	int			n = 0;

	do
	{
		digits[sizeof(digits) - ++n] = alphabet->c[number % alphabet->n];
		number /= alphabet->n;
	} while (number > 0);
	memcpy(text, &digits[sizeof(digits) - n], n);
	return n;
}

/*
 * Pad a text to the minimum length.
 */
static int
pad(const SnowflakeHashids *hashids, const SnowflakeLetters *last,
	uint64 drawn, char *text, int length)
{
	const SnowflakeLetters *guards = &hashids->guards;
	SnowflakeLetters alphabet = *last;
	int			half = alphabet.n / 2;
	uint64		place;

	if (length < hashids->min_length)
	{
		place = (drawn + (unsigned char) text[0]) % guards->n;
		memmove(&text[1], text, length++);
		text[0] = guards->c[place];
	}
	if (length < hashids->min_length)
	{
		place = (drawn + (unsigned char) text[2]) % guards->n;
		text[length++] = guards->c[place];
	}
	while (length < hashids->min_length)
	{
		uint32		salt[SNOWFLAKE_HASHIDS_MAX_ALPHABET];
		int			excess;

		for (int i = 0; i < alphabet.n; i++)
			salt[i] = (unsigned char) alphabet.c[i];
		shuffle(&alphabet, salt, alphabet.n);

		/* The second half goes before the text, the first half after it. */
		memmove(&text[alphabet.n - half], text, length);
		memcpy(text, &alphabet.c[half], alphabet.n - half);
		length += alphabet.n - half;
		memcpy(&text[length], alphabet.c, half);
		length += half;

		excess = length - hashids->min_length;
		if (excess > 0)
		{
			length = hashids->min_length;
			memmove(text, &text[excess / 2], length);
		}
	}
	return length;
}

/*
 * Write the text of numbers, which are not negative; returns its length.  The
 * buffer needs SNOWFLAKE_HASHIDS_ROOM bytes.
 */
int
snowflake_hashids_encode(SnowflakeHashids *hashids, const int64 *numbers,
						 int n, char *text)
{
	SnowflakeLetters alphabet;
	uint64		drawn = 0;
	int			first;
	int			length = 0;

	if (n == 0)
		return 0;
	for (int i = 0; i < n; i++)
		drawn += (uint64) numbers[i] % (i + MODULO_PART);
	first = (int) (drawn % hashids->alphabet.n);
	text[length++] = hashids->alphabet.c[first];

	alphabet = *first_alphabet(hashids, first);
	for (int i = 0; i < n; i++)
	{
		int			begin = length;

		if (i > 0)
			shuffle_for_number(hashids, &alphabet, text[0]);
		length += write_number(numbers[i], &alphabet, &text[length]);
		if (i + 1 < n)
		{
			uint64		extra = (uint64) numbers[i] %
				((unsigned char) text[begin] + i);

			text[length++] =
				hashids->separators.c[extra % hashids->separators.n];
		}
	}
	if (length < hashids->min_length)
		length = pad(hashids, &alphabet, drawn, text, length);
	return length;
}

/*
 * The maximum number of numbers in a text.
 */
int
snowflake_hashids_count(const SnowflakeHashids *hashids, const char *text,
						int length)
{
	int			n = 1;

	for (int i = 0; i < length; i++)
		n += find_letter(&hashids->separators, text[i]) >= 0;
	return n;
}

/*
 * Read the numbers of a text.  There must be room for as many as
 * snowflake_hashids_count() returns, and for their text.  For
 * SNOWFLAKE_HASHIDS_CHARACTER, n is the position of the character, starting
 * with 1.
 */
SnowflakeHashidsResult
snowflake_hashids_decode(SnowflakeHashids *hashids, const char *text,
						 int length, int64 *numbers, int *n, char *room)
{
	SnowflakeLetters alphabet;
	int			nguards = 0;
	int			begin = 0;
	int			end = length;
	int			first;
	int			i;

	*n = 0;
	if (length == 0)
		return SNOWFLAKE_HASHIDS_GOOD;

	/* The numbers are behind the first guard and before the second. */
	for (i = 0; i < length; i++)
	{
		if (find_letter(&hashids->guards, text[i]) >= 0)
		{
			if (++nguards == 1)
				begin = i + 1;
			else
				end = Min(end, i);
		}
		else if (find_letter(&hashids->alphabet, text[i]) < 0 &&
				 find_letter(&hashids->separators, text[i]) < 0)
		{
			*n = i + 1;
			return SNOWFLAKE_HASHIDS_CHARACTER;
		}
	}
	if (begin == end)
		return SNOWFLAKE_HASHIDS_BAD;
	first = find_letter(&hashids->alphabet, text[begin]);
	if (first < 0)
		return SNOWFLAKE_HASHIDS_BAD;

	alphabet = *first_alphabet(hashids, first);
	for (i = begin + 1;; i++)
	{
		uint64		number = 0;
		int			digit;

		for (; i < end && (digit = find_letter(&alphabet, text[i])) >= 0; i++)
		{
			if (number > ((uint64) PG_INT64_MAX - digit) / alphabet.n)
				return SNOWFLAKE_HASHIDS_RANGE;
			number = number * alphabet.n + digit;
		}
		numbers[(*n)++] = (int64) number;
		if (i >= end)
			break;

		/* A separator */
		shuffle_for_number(hashids, &alphabet, text[begin]);
	}

	if (snowflake_hashids_encode(hashids, numbers, *n, room) != length ||
		memcmp(room, text, length) != 0)
		return SNOWFLAKE_HASHIDS_BAD;
	return SNOWFLAKE_HASHIDS_GOOD;
}
