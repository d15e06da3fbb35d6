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

/*
 * Names of what a conversion creates, beside those of the triggers and
 * SNOWFLAKE_NEW_NAME().
 */
#define SNOWFLAKE_COPY_CHECK	"snowflake_new_check"
#define SNOWFLAKE_NULL_CHECK	"snowflake_new_null_check"
#define SNOWFLAKE_COPY_CHECKS	"'" SNOWFLAKE_COPY_CHECK "', '" SNOWFLAKE_NULL_CHECK "'"
#define SNOWFLAKE_COPY_TABLE	"snowflake_new_definitions"

/*
 * The name of a new column, index, constraint, or statistics object in SQL,
 * from that of the old one.
 */
#define SNOWFLAKE_NEW_NAME(name) \
	"CASE WHEN octet_length(" name "::text) <= 49 THEN 'snowflake_new_' || " name \
	" ELSE 'snowflake_new_' || md5(" name "::text) END"

/* What a row of pg_stat_activity is called, in a query that is a format. */
#define SNOWFLAKE_PROCESS(word) \
	"format('" word " %%s (%%s, %%s)', pid, usename," \
	" coalesce(nullif(application_name, ''), backend_type))"

#endif							/* SNOWFLAKE_ONLINE_NAMES_H */
