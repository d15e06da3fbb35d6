/*-------------------------------------------------------------------------
 *
 * text.h
 *	  Snowflake IDs as short texts.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/keys/text.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_TEXT_H
#define SNOWFLAKE_TEXT_H

typedef enum SnowflakeTextFormat
{
	SNOWFLAKE_BASE32,			/* Crockford's */
	SNOWFLAKE_BASE62,			/* 0-9A-Za-z */
	SNOWFLAKE_HEX
} SnowflakeTextFormat;

#define SNOWFLAKE_NFORMATS	3

/* Results of reading a text. */
typedef enum SnowflakeTextResult
{
	SNOWFLAKE_TEXT_GOOD,
	SNOWFLAKE_TEXT_WRONG_CHARACTER,
	SNOWFLAKE_TEXT_WRONG_LENGTH,
	SNOWFLAKE_TEXT_TOO_GREAT
} SnowflakeTextResult;

extern bool snowflake_text_format(const char *name, size_t length,
								  SnowflakeTextFormat *format);
extern const char *snowflake_text_format_name(SnowflakeTextFormat format);
extern int	snowflake_text_length(SnowflakeTextFormat format);
extern void snowflake_text_write(SnowflakeTextFormat format, int64 id,
								 char *string);
extern SnowflakeTextResult snowflake_text_read(SnowflakeTextFormat format,
											   const char *string,
											   size_t length, int64 *id,
											   size_t *place);

#endif							/* SNOWFLAKE_TEXT_H */
