/*-------------------------------------------------------------------------
 *
 * new_tables.c
 *	  Statements that create sequences, and columns for their values.
 *
 * With snowflake.default_sequence_kind, a new sequence gets its kind
 * (new_sequences.c) right after CREATE SEQUENCE.  The server executes one, as a
 * subcommand that passes here, for each serial and identity column, before there is
 * the table, the column, or a row: for CREATE TABLE, LIKE ... INCLUDING ALL, elements of
 * CREATE SCHEMA, ADD COLUMN and ADD GENERATED.  Nothing is rewritten, and no type
 * changes, so event triggers and other modules see what they see without us.
 *
 * A sequence is new if its name was not there before, and its lock is that of who has
 * created it.  Who may create it gets it with its kind, whoever owns it afterwards: an
 * event trigger may have changed that.  Temporary ones stay local.
 *
 * Before a default is stored, or evaluated for rows that exist, the sequences in it fit
 * the column.  They are looked up without a lock; the kind is looked up again under that
 * of a change (README.md).
 *
 * Afterwards, new integer columns are named that reference snowflake keys.
 *
 * What is left alone: scripts of extensions, whose C code knows its types; pg_upgrade;
 * and what restores a dump, because what a dump says is right.  Dumps set both
 * an empty search_path and check_function_bodies.  They have no serial columns and no
 * CREATE SCHEMA with elements, so these are of the session that read the dump.
 *
 * ADD COLUMN ... AS IDENTITY has the server itself evaluate the identity for rows that
 * exist, where nothing of ours is called.  The sequence is exhausted for it, and
 * the error has a hint.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/new_tables.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "parser/parse_type.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "generator/settings.h"
#include "new_tables/defaults.h"
#include "new_tables/new_sequences.h"
#include "new_tables/new_tables.h"
#include "sequences/kind.h"
#include "sequences/suitable.h"
#include "shared/table_owner.h"

static Constraint *
find_constraint(const List *constraints, ConstrType type)
{
	ListCell   *cell;

	foreach(cell, constraints)
	{
		Constraint *constraint = lfirst_node(Constraint, cell);

		if (constraint->contype == type)
			return constraint;
	}
	return NULL;
}

/*
 * Fit the sequences of a default to the type of the column.
 */
static void
fit_default(const char *column, Oid type, Node *expression)
{
	ListCell   *cell;

	if (!OidIsValid(type) || getBaseType(type) == INT8OID)
		return;
	foreach(cell, snowflake_sequences_in_raw_default(expression))
		snowflake_fit_default_kind(lfirst_oid(cell), type, column);
}

/*
 * Fit those of a column of the statement.  One without a type gets it from another
 * table, or a type.
 */
static void
fit_column(const ColumnDef * column, Oid template)
{
	const Constraint *initial = find_constraint(column->constraints, CONSTR_DEFAULT);
	Oid			type = InvalidOid;

	if (initial == NULL)
		return;
	if (column->typeName != NULL)
		type = LookupTypeNameOid(NULL, column->typeName, true);
	else if (OidIsValid(template) &&
			 get_attnum(template, column->colname) != InvalidAttrNumber)
		type = get_atttype(template, get_attnum(template, column->colname));
	fit_default(column->colname, type, initial->raw_expr);
}

/*
 * Where columns without a type get it from, or InvalidOid.
 */
static Oid
find_template(const CreateStmt * statement)
{
	Oid			type;

	if (statement->partbound != NULL)
		return RangeVarGetRelid(linitial(statement->inhRelations), NoLock, true);
	if (statement->ofTypename == NULL)
		return InvalidOid;
	type = LookupTypeNameOid(NULL, statement->ofTypename, true);
	return OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;
}

static void
begin_create(const CreateStmt * statement)
{
	Oid			template = find_template(statement);
	ListCell   *cell;

	foreach(cell, statement->tableElts)
	{
		if (IsA(lfirst(cell), ColumnDef))
			fit_column(lfirst(cell), template);
	}
}

/*
 * Fit those of the default of a domain.
 */
static void
fit_domain(const CreateDomainStmt * statement)
{
	const Constraint *initial = find_constraint(statement->constraints, CONSTR_DEFAULT);

	if (initial != NULL)
		fit_default(strVal(llast(statement->domainname)),
					LookupTypeNameOid(NULL, statement->typeName, true), initial->raw_expr);
}

static void
give_hint(void *arg)
{
	if (geterrcode() != ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED)
		return;
	errdetail("The values of an identity for rows that exist cannot come from a snowflake or range sequence.");
	errhint("If the table has rows, add a serial column instead of an identity (bigserial for bigint).");
}

static void
begin_add_column(SnowflakeDefinition *definition, const ColumnDef * column)
{
	definition->adds_identity |=
		find_constraint(column->constraints, CONSTR_IDENTITY) != NULL;
	fit_column(column, InvalidOid);
}

/*
 * The foreign keys of a relation, if it is still there.
 */
static List *
foreign_keys(Oid relid)
{
	Relation	relation = try_relation_open(relid, AccessShareLock);
	List	   *keys;

	if (relation == NULL)
		return NIL;
	keys = copyObject(RelationGetFKeyList(relation));

	/* The statement takes its own lock, at once. */
	relation_close(relation, AccessShareLock);
	return keys;
}

static void
begin_alter(SnowflakeDefinition *definition, const AlterTableStmt *statement)
{
	ListCell   *cell;

	definition->foreign_keys = foreign_keys(definition->relid);
	foreach(cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		AttrNumber	attnum;

		if (command->subtype == AT_AddColumn)
			begin_add_column(definition, (ColumnDef *) command->def);
		if (command->subtype != AT_ColumnDefault || command->def == NULL)
			continue;
		attnum = get_attnum(definition->relid, command->name);
		if (attnum != InvalidAttrNumber)
			fit_default(command->name, get_atttype(definition->relid, attnum), command->def);
	}
}

/*
 * Does the session restore a dump?  Each dump sets both.
 */
static bool
is_restoring(void)
{
	return !check_function_bodies && namespace_search_path[0] == '\0';
}

/*
 * A sequence that is there already is none that the statement creates.  A serial column,
 * or an element of CREATE SCHEMA, is not from a dump.
 */
static void
begin_sequence(SnowflakeDefinition *definition, const CreateSeqStmt * statement,
			   ProcessUtilityContext context)
{
	bool		is_element = context == PROCESS_UTILITY_SUBCOMMAND && !statement->for_identity;

	definition->schema = RangeVarGetCreationNamespace(statement->sequence);
	if (OidIsValid(get_relname_relid(statement->sequence->relname, definition->schema)) ||
		(is_restoring() && !is_element))
		definition->statement = NULL;
}

/*
 * The table of a statement of its owner, or InvalidOid: the server refuses any other.
 */
static Oid
find_own_table(const AlterTableStmt *statement)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);

	return OidIsValid(relid) &&
		has_privs_of_role(GetUserId(), snowflake_table_owner(relid)) ? relid : InvalidOid;
}

/*
 * Before a statement that may create a sequence, with the setting.
 */
static void
begin_with_setting(SnowflakeDefinition *definition, ProcessUtilityContext context)
{
	const Node *statement = definition->statement;

	if (IsA(statement, CreateSeqStmt))
		begin_sequence(definition, (const CreateSeqStmt *) statement, context);
	else if (is_restoring())
		definition->statement = NULL;
	else if (IsA(statement, AlterTableStmt))
		begin_alter(definition, (const AlterTableStmt *) statement);
	else if (IsA(statement, CreateDomainStmt))
		fit_domain((const CreateDomainStmt *) statement);
	else
		/* The first field of what creates a foreign table is this. */
		begin_create((const CreateStmt *) statement);
}

/*
 * Before a utility statement.
 */
void
snowflake_begin_definition(SnowflakeDefinition *definition, const Node *statement,
						   ProcessUtilityContext context)
{
	memset(definition, 0, sizeof(SnowflakeDefinition));
	if (IsBinaryUpgrade || XactReadOnly || creating_extension ||
		snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_LOCAL ||
		(!IsA(statement, CreateSeqStmt) && !IsA(statement, CreateStmt) &&
		 !IsA(statement, CreateForeignTableStmt) && !IsA(statement, AlterTableStmt) &&
		 !IsA(statement, CreateDomainStmt)))
		return;
	if (IsA(statement, AlterTableStmt))
	{
		definition->relid = find_own_table((const AlterTableStmt *) statement);
		if (!OidIsValid(definition->relid))
			return;
	}
	definition->statement = statement;
	begin_with_setting(definition, context);
	if (definition->adds_identity)
	{
		definition->context.callback = give_hint;
		definition->context.previous = error_context_stack;
		error_context_stack = &definition->context;
	}
}

static void
end_sequence(const SnowflakeDefinition *definition)
{
	const		CreateSeqStmt *statement = (const CreateSeqStmt *) definition->statement;
	Oid			relid = get_relname_relid(statement->sequence->relname, definition->schema);

	if (OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_SEQUENCE &&
		get_rel_persistence(relid) != RELPERSISTENCE_TEMP &&
		snowflake_is_locked(relid, AccessExclusiveLock))
		snowflake_give_default_kind(relid);
}

static bool
is_narrow(Oid type)
{
	type = getBaseType(type);
	return type == INT2OID || type == INT4OID;
}

/*
 * Has a column a snowflake sequence of its own?
 */
static bool
has_snowflake_ids(Oid relid, AttrNumber attnum)
{
	ListCell   *cell;

	foreach(cell, getOwnedSequences(relid))
	{
		Oid			sequence = lfirst_oid(cell);
		Oid			table;
		int32		column;

		if (snowflake_sequence_kind(sequence) == SNOWFLAKE_KIND_SNOWFLAKE &&
			(sequenceIsOwned(sequence, DEPENDENCY_AUTO, &table, &column) ||
			 sequenceIsOwned(sequence, DEPENDENCY_INTERNAL, &table, &column)) &&
			column == attnum)
			return true;
	}
	return false;
}

/*
 * Name the columns that are too narrow for the keys that they reference.
 */
static void
warn_of_reference(const ForeignKeyCacheInfo * key)
{
	for (int i = 0; i < key->nkeys; i++)
	{
		if (is_narrow(get_atttype(key->conrelid, key->conkey[i])) &&
			has_snowflake_ids(key->confrelid, key->confkey[i]))
			ereport(WARNING,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of table \"%s\" is too narrow for snowflake IDs",
							get_attname(key->conrelid, key->conkey[i], false),
							get_rel_name(key->conrelid)),
					 errdetail("It references column \"%s\" of table \"%s\".",
							   get_attname(key->confrelid, key->confkey[i], false),
							   get_rel_name(key->confrelid)),
					 errhint("Use ALTER TABLE ... ALTER COLUMN ... TYPE bigint.")));
	}
}

/*
 * Do so for the foreign keys that the statement has added.
 */
static void
end_alter(const SnowflakeDefinition *definition)
{
	ListCell   *cell;

	foreach(cell, foreign_keys(definition->relid))
	{
		ListCell   *before;
		bool		is_new = true;

		foreach(before, definition->foreign_keys)
			is_new &= ((ForeignKeyCacheInfo *) lfirst(before))->conoid !=
			((ForeignKeyCacheInfo *) lfirst(cell))->conoid;
		if (is_new)
			warn_of_reference(lfirst(cell));
	}
}

/*
 * After the statement.
 */
void
snowflake_end_definition(SnowflakeDefinition *definition)
{
	if (definition->adds_identity)
		error_context_stack = definition->context.previous;
	if (definition->statement == NULL)
		return;
	CommandCounterIncrement();
	if (IsA(definition->statement, CreateSeqStmt))
		end_sequence(definition);
	else if (IsA(definition->statement, AlterTableStmt))
		end_alter(definition);
}
