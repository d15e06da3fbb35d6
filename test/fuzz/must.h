/*-------------------------------------------------------------------------
 *
 * must.h
 *	  What the programs for libFuzzer share.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/fuzz/must.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef MUST_H
#define MUST_H

#define must(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif							/* MUST_H */
