/*-------------------------------------------------------------------------
 *
 * shown_text.h
 *	  Texts of arguments in messages.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/shown_text.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SHOWN_TEXT_H
#define SNOWFLAKE_SHOWN_TEXT_H

extern char *snowflake_shown_text(const text *string);

#endif							/* SNOWFLAKE_SHOWN_TEXT_H */
