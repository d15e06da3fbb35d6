/*-------------------------------------------------------------------------
 *
 * new_tables.h
 *	  Statements that create sequences, and columns for their values.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/new_tables.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NEW_TABLES_H
#define SNOWFLAKE_NEW_TABLES_H

#include "nodes/parsenodes.h"
#include "tcop/utility.h"

/* A statement that is being executed. */
typedef struct SnowflakeDefinition
{
	const Node *statement;		/* or NULL if nothing follows it */
	Oid			relid;			/* of ALTER TABLE */
	List	   *foreign_keys;	/* of that table before */
	Oid			schema;			/* of a new sequence */
	bool		adds_identity;
	ErrorContextCallback context;
} SnowflakeDefinition;

extern void snowflake_begin_definition(SnowflakeDefinition *definition,
									   const Node *statement,
									   ProcessUtilityContext context);
extern void snowflake_end_definition(SnowflakeDefinition *definition);

#endif							/* SNOWFLAKE_NEW_TABLES_H */
