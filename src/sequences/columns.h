/*-------------------------------------------------------------------------
 *
 * columns.h
 *	  Columns of a statement.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/columns.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COLUMNS_H
#define SNOWFLAKE_COLUMNS_H

#include "nodes/parsenodes.h"

/* A sequence that will belong to a column. */
typedef struct SnowflakeOwnedSequence
{
	RangeVar   *sequence;
	char	   *column;
} SnowflakeOwnedSequence;

/* A column whose identity was not copied. */
typedef struct SnowflakeCopiedIdentity
{
	char	   *column;
	List	   *options;
} SnowflakeCopiedIdentity;

/* A table that a statement creates or alters, and its part of the statement. */
typedef struct SnowflakeNewTable
{
	const char *query;
	char	   *name;
	Oid			relid;			/* InvalidOid if it is not created yet */
	Oid			schema;
	Oid			owner;			/* of its sequences; InvalidOid: the caller */
	char		persistence;
	Oid			template;		/* type or partitioned table that has columns
								 * without a type */
	List	   *columns;		/* ColumnDef: those of the statement */
	List	   *constraints;	/* Constraint: likewise, but of the table */
	List	   *sequences;		/* SnowflakeOwnedSequence */
	List	   *ranges;			/* OIDs of range sequences that columns get
								 * which exist, and may have keys */
	List	   *identities;		/* SnowflakeCopiedIdentity */
	AlterTableStmt *uses;		/* what is executed after the statement */
} SnowflakeNewTable;

extern Oid	snowflake_serial_type(const TypeName * type);
extern Oid	snowflake_existing_type(Oid relid, const char *column);
extern Oid	snowflake_column_type(const SnowflakeNewTable *table,
								  const ColumnDef * column);
extern ColumnDef * snowflake_find_column(const SnowflakeNewTable *table,
										 const char *name);
extern Constraint *snowflake_find_constraint(const List *constraints,
											 ConstrType type);
extern bool snowflake_set_type(ColumnDef * column, Oid type);

#endif							/* SNOWFLAKE_COLUMNS_H */
