/*-------------------------------------------------------------------------
 *
 * names.h
 *	  Names of what a conversion of tables in use creates.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/names.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_NAMES_H
#define SNOWFLAKE_ONLINE_NAMES_H

/* What the queries of this folder call so, too. */
#define SNOWFLAKE_ONLINE_COPY_CHECK	"snowflake_new_check"
#define SNOWFLAKE_ONLINE_SWAP_TRIGGER	"~snowflake_swapped"

#endif							/* SNOWFLAKE_ONLINE_NAMES_H */
