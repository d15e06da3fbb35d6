/*-------------------------------------------------------------------------
 *
 * source.h
 *	  The words of a function's body.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/source.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_SOURCE_H
#define SNOWFLAKE_CONVERT_SOURCE_H

/* A word: a name, a parameter, a constant, an operator, or another character. */
typedef struct SnowflakeWord
{
	int			start;			/* in the source */
	int			length;
	char	   *text;			/* a name as the server knows it */
	bool		is_name;
	bool		is_quoted;
} SnowflakeWord;

/* The words, of which the last one is empty. */
typedef struct SnowflakeSource
{
	const char *text;
	SnowflakeWord *words;
	int			count;
} SnowflakeSource;

extern void snowflake_convert_read_source(SnowflakeSource *source, const char *text);
extern bool snowflake_convert_is_word(const SnowflakeSource *source, int at, const char *text);
extern bool snowflake_convert_is_integer(const SnowflakeSource *source, int at);
extern int	snowflake_convert_find_close(const SnowflakeSource *source, int at);
extern int	snowflake_convert_next_item(const SnowflakeSource *source, int at);

#endif							/* SNOWFLAKE_CONVERT_SOURCE_H */
