/*-------------------------------------------------------------------------
 *
 * source.c
 *	  The words of a function's body, in SQL or PL/pgSQL.
 *
 * Both languages have the server's scanner, so comments and constants are what
 * they are for the server.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/source.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "parser/scanner.h"
#include "parser/scansup.h"

#include "convert/source.h"

/*
 * The name that a word is, without its quotes.
 */
static char *
name_of(const char *word, int length)
{
	char	   *name;
	char	   *end;

	if (word[0] != '"')
		return downcase_truncate_identifier(word, length, false);
	name = end = palloc(length);
	for (int i = 1; i < length - 1; i++)
	{
		*end++ = word[i];
		if (word[i] == '"')
			i++;
	}
	*end = '\0';
	return name;
}

static void
set_word(SnowflakeWord *word, const char *text, int start, int length)
{
	const char *here = text +start;
	char		first = length == 0 ? '\0' : here[0];

	word->start = start;
	word->length = length;
	word->is_quoted = first == '"';
	word->is_name = word->is_quoted || first == '_' || IS_HIGHBIT_SET(first) ||
		((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'));
	/* Such as E'\n', which is no name. */
	if (!word->is_quoted && length > 1 && here[length - 1] == '\'')
		word->is_name = false;
	word->text = word->is_name ? name_of(here, length) : pnstrdup(here, length);
}

/*
 * Read the words.  Fails if the source has an error in its words.
 */
void
snowflake_convert_read_source(SnowflakeSource *source, const char *text)
{
	core_yy_extra_type extra;
	core_YYSTYPE value;
	YYLTYPE		location;
	core_yyscan_t scanner = scanner_init(text, &extra, &ScanKeywords, ScanKeywordTokens);
	int			size = 64;
	bool		at_end;

	source->text = text;

	source->words = palloc_array(SnowflakeWord, size);
	source->count = 0;
	do
	{
		int			length = 0;

		at_end = core_yylex(&value, &location, scanner) == 0;

		/*
		 * The scanner ends each word with a zero, until it reads the next
		 * one.
		 */
		if (!at_end)
			length = strlen(extra.scanbuf + location);
		if (source->count == size)
			source->words = repalloc_array(source->words, SnowflakeWord, size *= 2);
		set_word(&source->words[source->count++], text,
				 at_end ? (int) strlen(text) : location, length);
	} while (!at_end);
	scanner_finish(scanner);
}

bool
snowflake_convert_is_word(const SnowflakeSource *source, int at, const char *text)
{
	return at >= 0 && at < source->count && !source->words[at].is_quoted &&
		strcmp(source->words[at].text, text) == 0;
}

/*
 * Is a word the type integer or smallint, and no array of them?
 */
bool
snowflake_convert_is_integer(const SnowflakeSource *source, int at)
{
	static const char *const names[] = {"int", "integer", "int4", "smallint", "int2"};

	for (size_t i = 0; i < lengthof(names); i++)
	{
		if (snowflake_convert_is_word(source, at, names[i]))
			return !snowflake_convert_is_word(source, at + 1, "[") &&
				!snowflake_convert_is_word(source, at + 1, "array");
	}
	return false;
}

/*
 * Where the parenthesis that opens at a word is closed, or the end.
 */
int
snowflake_convert_find_close(const SnowflakeSource *source, int at)
{
	int			depth = 0;

	for (; at < source->count - 1; at++)
	{
		if (snowflake_convert_is_word(source, at, "("))
			depth++;
		else if (snowflake_convert_is_word(source, at, ")") && --depth <= 0)
			break;
	}
	return at;
}

/*
 * The word behind an item of a list: its comma, or what ends the list.
 */
int
snowflake_convert_next_item(const SnowflakeSource *source, int at)
{
	static const char *const ends[] = {",", ")", ";", "from", "into", "loop", "where",
	"limit", "order", "union", "returning", "on"};

	for (; at < source->count - 1; at++)
	{
		if (snowflake_convert_is_word(source, at, "("))
			at = snowflake_convert_find_close(source, at);
		else
			for (size_t i = 0; i < lengthof(ends); i++)
			{
				if (snowflake_convert_is_word(source, at, ends[i]))
					return at;
			}
	}
	return at;
}
