/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  The statements that convert a column, and the notices beside them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/direct/statements.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/catalog/findings.h"
#include "convert/columns/keys.h"
#include "convert/direct/sequences.h"
#include "convert/direct/statements.h"

/*
 * What is to be said of a conversion that the statements do not show.
 */
List *
snowflake_convert_list_notices(const SnowflakeConversion *conversion)
{
	List	   *findings = NIL;

	if (!OidIsValid(conversion->schema))
		snowflake_convert_find_kept_default(linitial(conversion->keys), &findings);
	findings = list_concat(findings, snowflake_convert_ask_notices(conversion, sql_notices));
	snowflake_convert_find_doubles(conversion, &findings);
	return findings;
}

List *
snowflake_convert_statements(const SnowflakeConversion *conversion)
{
	List	   *statements = snowflake_convert_texts(snowflake_convert_ask(conversion,
																		   sql_statements));

	if (conversion->sequences == NIL)
		return statements;
	return list_concat(statements, snowflake_convert_kind_statements(conversion));
}
