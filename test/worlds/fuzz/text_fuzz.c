/*-------------------------------------------------------------------------
 *
 * text_fuzz.c
 *	  What must hold for every ID that is written as text, and every text that
 *	  is read as an ID.
 *
 * A program for libFuzzer, without a server; script/tests/fuzz builds and runs it.
 * The first 8 bytes of an input are an ID, all of it is a text.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/text_fuzz.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "must.h"
#include "keys/text.h"

/* A text in memory of just its size. */
static char *
write_id(SnowflakeTextFormat format, int64 id)
{
	char	   *text = malloc(snowflake_text_length(format));

	snowflake_text_write(format, id, text);
	return text;
}

/*
 * An ID is read as it was written, and texts sort as unsigned numbers do.
 */
static void
check_id(SnowflakeTextFormat format, int64 id, int64 other)
{
	int			length = snowflake_text_length(format);
	char	   *text = write_id(format, id);
	char	   *other_text = write_id(format, other);
	int			order = memcmp(text, other_text, length);
	int64		again;
	size_t		place;

	must(length <= 16);
	must(snowflake_text_read(format, text, length, &again, &place) ==
		 SNOWFLAKE_TEXT_GOOD);
	must(again == id);
	must(((uint64) id < (uint64) other) == (order < 0));
	must((id == other) == (order == 0));
	free(text);
	free(other_text);
}

/*
 * A text that is read is the one that is written, but for what may be written
 * in several ways.  One that is not has the fault that is told.
 */
static void
check_text(SnowflakeTextFormat format, const char *text, size_t length)
{
	int64		id;
	size_t		place = length;

	switch (snowflake_text_read(format, text, length, &id, &place))
	{
		case SNOWFLAKE_TEXT_GOOD:
			{
				char	   *written = write_id(format, id);

				must(length == (size_t) snowflake_text_length(format));
				for (size_t i = 0; i < length; i++)
				{
					char		c = text[i];

					if (format != SNOWFLAKE_BASE62)
						c = pg_ascii_toupper((unsigned char) c);
					if (format == SNOWFLAKE_BASE32 && (c == 'I' || c == 'L'))
						c = '1';
					if (format == SNOWFLAKE_BASE32 && c == 'O')
						c = '0';
					must(written[i] == c);
				}
				free(written);
				break;
			}
		case SNOWFLAKE_TEXT_WRONG_CHARACTER:
			must(place < length);
			must(format == SNOWFLAKE_HEX ?
				 !isxdigit((unsigned char) text[place]) :
				 !isalnum((unsigned char) text[place]) ||
				 text[place] == 'u' || text[place] == 'U');
			break;
		case SNOWFLAKE_TEXT_WRONG_LENGTH:
			must(length != (size_t) snowflake_text_length(format));
			break;
		case SNOWFLAKE_TEXT_TOO_GREAT:
			must(length == (size_t) snowflake_text_length(format));
			must(format != SNOWFLAKE_HEX);
			must(format == SNOWFLAKE_BASE32 ?
				 pg_ascii_toupper((unsigned char) text[0]) > 'F' :
				 memcmp(text, "LygHa16AHYF", length) > 0);
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *text = malloc(size);
	uint64		id = 0;
	SnowflakeTextFormat format;

	if (size > 0)
		memcpy(text, data, size);
	for (size_t i = 0; i < Min(size, 8); i++)
		id = id << 8 | data[i];
	for (int f = 0; f < SNOWFLAKE_NFORMATS; f++)
	{
		const char *name = snowflake_text_format_name((SnowflakeTextFormat) f);

		must(snowflake_text_format(name, strlen(name), &format));
		must(format == (SnowflakeTextFormat) f);
		check_id(format, (int64) id, (int64) (id * UINT64CONST(0x9e3779b97f4a7c15)));
		check_id(format, (int64) id, (int64) (id + 1));
		check_text(format, text, size);
	}
	(void) snowflake_text_format(text, size, &format);
	free(text);
	return 0;
}
