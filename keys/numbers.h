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

#include "utils/array.h"

extern const int64 *snowflake_numbers_of_array(ArrayType *array, int *n,
											   int max, const char *kind);
extern void snowflake_check_numbers(const int64 *numbers, int n);
extern ArrayType *snowflake_array_of_numbers(const int64 *numbers, int n);
extern bool snowflake_same_value(const struct varlena *a,
								 const struct varlena *b);

#endif							/* SNOWFLAKE_NUMBERS_H */
