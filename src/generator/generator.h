/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  Generating snowflake IDs.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/generator.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

extern int64 snowflake_generate(void);
extern int	snowflake_generate_block(int wanted, int least, int64 *first,
									 int64 *step);

#endif							/* SNOWFLAKE_GENERATOR_H */
