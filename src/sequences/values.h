/*-------------------------------------------------------------------------
 *
 * values.h
 *	  nextval() and its like for sequences of every kind.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/values.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_VALUES_H
#define SNOWFLAKE_VALUES_H

extern void snowflake_watch_sequences(void);
extern void snowflake_forget_sequence_values(void);

#endif							/* SNOWFLAKE_VALUES_H */
