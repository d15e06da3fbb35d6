/*-------------------------------------------------------------------------
 *
 * functions.h
 *	  What the SQL functions keep for a session.
 *
 * src/functions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_FUNCTIONS_H
#define SNOWFLAKE_FUNCTIONS_H

extern void snowflake_forget_currval(void);

#endif							/* SNOWFLAKE_FUNCTIONS_H */
