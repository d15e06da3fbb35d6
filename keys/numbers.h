/*-------------------------------------------------------------------------
 *
 * numbers.h
 *	  Numbers that one text is written for: arguments in, array out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/numbers.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NUMBERS_H
#define SNOWFLAKE_NUMBERS_H

#include "fmgr.h"
#include "utils/array.h"

extern const int64 *snowflake_numbers_of_array(ArrayType *array, int *n,
											   int max, const char *kind);
extern void snowflake_check_numbers(const int64 *numbers, int n);
extern ArrayType *snowflake_array_of_numbers(const int64 *numbers, int n);

/* Prepares a state from a number and two values, which can be NULL. */
typedef void (*SnowflakePrepare) (void *state, int number, struct varlena *a,
								  struct varlena *b);

extern void *snowflake_prepared_state(FunctionCallInfo fcinfo, Size size, int number,
									  const void *a, const void *b,
									  SnowflakePrepare prepare);

#endif							/* SNOWFLAKE_NUMBERS_H */
