/*-------------------------------------------------------------------------
 *
 * must.h
 *	  What the programs for libFuzzer share.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/worlds/fuzz/must.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef MUST_H
#define MUST_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define must(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

/*
 * The next line, in memory of just its size, so that the sanitizer sees each
 * byte too many.
 */
static inline char *
next_line(const uint8_t **data, const uint8_t *end)
{
	const uint8_t *newline = memchr(*data, '\n', end - *data);
	size_t		length = (newline != NULL ? newline : end) - *data;
	char	   *line = malloc(length + 1);

	memcpy(line, *data, length);
	line[length] = '\0';
	*data = newline != NULL ? newline + 1 : end;
	return line;
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif							/* MUST_H */
