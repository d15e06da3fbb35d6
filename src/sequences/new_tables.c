/*-------------------------------------------------------------------------
 *
 * new_tables.c
 *	  Serial and identity columns of new tables.
 *
 * With snowflake.default_sequence_kind, CREATE TABLE and ALTER TABLE are
 * rewritten, on a copy of the parse tree, before the server executes them: ADD
 * COLUMN gives values to the rows that exist, so it would be too late after it.
 * Serial and identity columns become what the server itself makes of bigserial:
 * bigint NOT NULL, a default, and a sequence that belongs to the column.  If the
 * sequence becomes a range sequence, the type stays: what the server makes of
 * serial or smallserial.
 *
 * Before the statement: CREATE SEQUENCE, with the name, options and owner that
 * the server would choose, and the label; or, for DEFAULT nextval('s'), the label
 * of s.  ALTER COLUMN ... TYPE bigint, if the column exists, and for what
 * references it.  In the statement: the type and the default.  After it: ALTER
 * SEQUENCE ... OWNED BY; and for LIKE ... INCLUDING IDENTITY, whose columns are
 * not in the statement, ADD GENERATED ... AS IDENTITY, which is rewritten like
 * any other.  So a sequence has its kind before any row gets a value of it, and
 * a column is bigint before the label is set, which checks the others.  A range
 * sequence that a column gets which exists is settled again after the statement,
 * because only then the keys of the column count.
 *
 * The server executes the commands of an ALTER TABLE in passes, whatever their
 * order, so some would not find here what they will find there: a column may be
 * dropped and added again.  What drops is executed before, as a statement of its
 * own, and what sets a default or an identity after the others.
 *
 * A column becomes bigint, too, if it is narrower and gets a foreign key to a
 * bigint column (references.c), unless all sequences become range sequences.
 *
 * Who is asked.  The caller executes each of these statements by
 * ProcessUtility(), so the server checks the privileges that it checks for
 * serial, and event triggers and other modules see the statements.  First, the
 * caller must own the table and the sequence.  Where it does not, the statement
 * is left to the server, which refuses it, or the sequence stays local with a
 * WARNING.
 *
 * Interleavings.  What is looked up before the statement is looked up without a
 * lock that is kept, because a stronger one later could deadlock.  If another
 * session changes the table in between, a column may stay integer; IDs are then
 * out of its range, which is an error.  If it renames or drops the table, the
 * statement or OWNED BY fails.  The label is set under the lock of kinds
 * (README.md), and keeps the position if another session has taken a number.
 *
 * What is left alone: temporary tables; scripts of extensions, whose C code knows
 * its types; what restores a dump, because what a dump says is right (dumps set
 * both an empty search_path and check_function_bodies); CREATE SEQUENCE by
 * itself, because nobody knows yet what will use it; and sequences that were
 * used, because their tables are not new.
 *
 * What is refused: smallint with a snowflake sequence, whose owner wanted small
 * numbers; a range sequence for which the registry does not answer; and everything
 * in a database that is not attached.  With any setting: ALTER COLUMN ... TYPE to
 * less than bigint if the default is a snowflake sequence.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/new_tables.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "generator/settings.h"
#include "sequences/columns.h"
#include "sequences/default_kind.h"
#include "sequences/defaults.h"
#include "sequences/kind.h"
#include "sequences/new_tables.h"
#include "sequences/position.h"
#include "sequences/references.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

typedef bool (*CommandFunction) (const AlterTableCmd *);

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static Constraint *
make_constraint(ConstrType type)
{
	Constraint *constraint = makeNode(Constraint);

	constraint->contype = type;
	constraint->initially_valid = true;
	constraint->location = -1;
	return constraint;
}

/*
 * The name of a sequence of an identity column, if the statement has one; it is
 * removed from the options.
 */
static RangeVar *
take_name(List **options)
{
	ListCell   *cell;

	foreach(cell, *options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "sequence_name") == 0)
		{
			*options = foreach_delete_current(*options, cell);
			return makeRangeVarFromNameList(castNode(List, option->arg));
		}
	}
	return NULL;
}

/*
 * The name that the server would choose.
 */
static char *
pick_name(const SnowflakeNewTable *table, const char *column)
{
	return ChooseRelationName(table->name, column, "seq", table->schema, false);
}

/*
 * Create a sequence as the server creates that of a serial or identity column of
 * a type, and note to whom it will belong.
 */
static RangeVar *
create_sequence(SnowflakeNewTable *table, const char *column, Oid type,
				List *options)
{
	CreateSeqStmt *statement = makeNode(CreateSeqStmt);
	SnowflakeOwnedSequence *owned = palloc(sizeof(SnowflakeOwnedSequence));
	RangeVar   *sequence = take_name(&options);

	if (sequence == NULL)
		sequence = makeRangeVar(NULL, pick_name(table, column), -1);
	if (sequence->schemaname == NULL)
		sequence->schemaname = get_namespace_name(table->schema);
	sequence->relpersistence = table->persistence;
	statement->sequence = copyObject(sequence);
	statement->options = lcons(makeDefElem("as", (Node *) makeTypeNameFromOid(type, -1), -1),
							   options);
	statement->ownerId = table->owner;
	snowflake_run_statement((Node *) statement, table->query);
	snowflake_make_nonlocal(RangeVarGetRelid(sequence, NoLock, false), type, table->query);

	owned->sequence = sequence;
	owned->column = pstrdup(column);
	table->sequences = lappend(table->sequences, owned);
	return sequence;
}

/*
 * Have a column of the statement be what the server makes of bigserial, or of a
 * serial of its own type.
 */
static void
give_sequence(SnowflakeNewTable *table, ColumnDef * column, List *options)
{
	Constraint *initial = make_constraint(CONSTR_DEFAULT);
	Oid			type = snowflake_column_type(table, column);
	RangeVar   *sequence;

	type = snowflake_type_with(snowflake_kind_for(type), column->colname, type);
	(void) snowflake_set_type(column, type);
	sequence = create_sequence(table, column->colname, type, options);
	initial->raw_expr = snowflake_make_raw_default(sequence);
	column->constraints = lappend(column->constraints, initial);
	if (snowflake_find_constraint(column->constraints, CONSTR_NOTNULL) == NULL)
		column->constraints = lappend(column->constraints,
									  make_constraint(CONSTR_NOTNULL));
}

/*
 * Is a sequence that a default uses a snowflake sequence, or may it become
 * another one than a local one?  If not, say why.  A range sequence stays as it is.
 */
static bool
may_change(Oid sequence)
{
	SnowflakeSequenceKind kind = snowflake_sequence_kind(sequence);

	if (kind != SNOWFLAKE_KIND_LOCAL)
		return kind == SNOWFLAKE_KIND_SNOWFLAKE;
	if (!has_privs_of_role(GetUserId(), snowflake_table_owner(sequence)))
	{
		snowflake_warn_local(sequence, "The current role does not own it.");
		return false;
	}
	LockRelationOid(sequence, AccessShareLock);
	if (!snowflake_is_unused(sequence))
		snowflake_warn_local(sequence, "It was used before.");
	return snowflake_is_unused(sequence);
}

/*
 * The sequence that nextval() in the default of an integer column has, if it may
 * be another one than a local one, or InvalidOid.
 */
static Oid
find_usable(Oid type, Node *expression)
{
	Oid			sequence = snowflake_sequence_in_raw_default(expression);

	if (!OidIsValid(sequence) || !is_integer(getBaseType(type)) ||
		get_rel_persistence(sequence) == RELPERSISTENCE_TEMP ||
		!may_change(sequence))
		return InvalidOid;
	return sequence;
}

/*
 * A column of the statement has a default.
 */
static void
prepare_default(const SnowflakeNewTable *table, ColumnDef * column,
				Node **expression)
{
	Oid			type = snowflake_column_type(table, column);
	Oid			sequence = OidIsValid(type) ? find_usable(type, *expression) : InvalidOid;
	Oid			other;

	if (!OidIsValid(sequence))
		return;
	other = snowflake_type_with(snowflake_kind_of(sequence, type), column->colname, type);
	if (snowflake_fits_kind(snowflake_kind_of(sequence, type), other) &&
		(other == type || snowflake_set_type(column, other)))
	{
		*expression = snowflake_strip_casts(*expression);
		snowflake_make_nonlocal(sequence, other, table->query);
	}
	else
		snowflake_warn_local(sequence, psprintf("Column \"%s\" is not bigint.", column->colname));
}

/*
 * A column that the statement creates.
 */
static void
prepare_column(SnowflakeNewTable *table, ColumnDef * column)
{
	Constraint *identity = snowflake_find_constraint(column->constraints, CONSTR_IDENTITY);
	Constraint *initial = snowflake_find_constraint(column->constraints, CONSTR_DEFAULT);

	if (OidIsValid(snowflake_serial_type(column->typeName)))
		give_sequence(table, column, NIL);
	else if (identity != NULL && column->typeName != NULL &&
			 is_integer(snowflake_column_type(table, column)))
	{
		column->constraints = list_delete_ptr(column->constraints, identity);
		give_sequence(table, column, identity->options);
	}
	else if (initial != NULL)
		prepare_default(table, column, &initial->raw_expr);
}

/*
 * ALTER COLUMN ... SET DEFAULT
 */
static void
prepare_set_default(SnowflakeNewTable *table, AlterTableCmd *command)
{
	Oid			type = snowflake_existing_type(table->relid, command->name);
	Oid			sequence = OidIsValid(type) ? find_usable(type, command->def) : InvalidOid;
	SnowflakeSequenceKind kind;
	Oid			other;

	if (!OidIsValid(sequence))
		return;
	kind = snowflake_kind_of(sequence, type);
	other = snowflake_type_with(kind, command->name, type);
	if (!snowflake_fits_kind(kind, other) ||
		(other != type && !snowflake_has_own_type(table->relid, command->name)))
	{
		snowflake_warn_local(sequence, psprintf("Column \"%s\" is not bigint.", command->name));
		return;
	}
	if (other != type)
		snowflake_widen_column(table->relid, command->name, table->query);
	if (kind == SNOWFLAKE_KIND_RANGE)
		table->ranges = lappend_oid(table->ranges, sequence);
	command->def = snowflake_strip_casts(command->def);
	snowflake_make_nonlocal(sequence, other, table->query);
}

/*
 * May a column become an identity column?  If not, the server says why.
 */
static bool
may_be_identity(Oid relid, const char *column)
{
	HeapTuple	tuple = SearchSysCacheAttName(relid, column);
	Form_pg_attribute form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_attribute) GETSTRUCT(tuple);
	result = form->attnum > 0 && is_integer(form->atttypid) &&
		form->attnotnull && !form->atthasdef && form->attidentity == '\0';
	ReleaseSysCache(tuple);
	return result;
}

/*
 * ALTER COLUMN ... ADD GENERATED ... AS IDENTITY
 */
static void
prepare_add_identity(SnowflakeNewTable *table, AlterTableCmd *command)
{
	Oid			type = snowflake_existing_type(table->relid, command->name);
	Oid			other;
	RangeVar   *sequence;

	if (!may_be_identity(table->relid, command->name))
		return;
	other = snowflake_type_with(snowflake_kind_for(type), command->name, type);
	if (other != type)
		snowflake_widen_column(table->relid, command->name, table->query);
	sequence = create_sequence(table, command->name, other,
							   castNode(Constraint, command->def)->options);
	if (snowflake_kind_for(other) == SNOWFLAKE_KIND_RANGE)
		table->ranges = lappend_oid(table->ranges,
									RangeVarGetRelid(sequence, NoLock, false));
	command->subtype = AT_ColumnDefault;
	command->def = snowflake_make_raw_default(sequence);
}

/*
 * LIKE ... INCLUDING IDENTITY: add the identities after the statement, because
 * that can be rewritten.
 */
static void
prepare_like(SnowflakeNewTable *table, TableLikeClause * like)
{
	Oid			relid = RangeVarGetRelid(like->relation, NoLock, true);
	Relation	relation;

	if ((like->options & CREATE_TABLE_LIKE_IDENTITY) == 0 || !OidIsValid(relid))
		return;
	like->options &= ~CREATE_TABLE_LIKE_IDENTITY;
	relation = relation_open(relid, AccessShareLock);
	for (int i = 0; i < RelationGetNumberOfAttributes(relation); i++)
	{
		Form_pg_attribute form = TupleDescAttr(RelationGetDescr(relation), i);
		SnowflakeCopiedIdentity *identity;

		if (form->attisdropped || form->attidentity == '\0')
			continue;
		identity = palloc(sizeof(SnowflakeCopiedIdentity));
		identity->column = pstrdup(NameStr(form->attname));
		identity->options =
			sequence_options(snowflake_identity_sequence(relation, form->attnum));
		table->identities = lappend(table->identities, identity);
	}
	relation_close(relation, AccessShareLock);
}

/*
 * Where columns without a type get it from, or InvalidOid.
 */
static Oid
find_template(const CreateStmt * statement)
{
	Oid			type;

	if (statement->ofTypename != NULL)
	{
		type = LookupTypeNameOid(NULL, statement->ofTypename, true);
		return OidIsValid(type) ? typeidTypeRelid(type) : InvalidOid;
	}
	if (statement->partbound != NULL)
		return RangeVarGetRelid(linitial(statement->inhRelations), NoLock, true);
	return InvalidOid;
}

static void
prepare_columns(SnowflakeNewTable *table)
{
	ListCell   *cell;

	foreach(cell, table->columns)
		prepare_column(table, lfirst_node(ColumnDef, cell));
	if (snowflake_default_sequence_kind != SNOWFLAKE_DEFAULT_RANGE)
		snowflake_widen_references_of(table);
}

static void
prepare_create(SnowflakeNewTable *table, CreateStmt * statement)
{
	ListCell   *cell;

	table->name = statement->relation->relname;
	table->schema = RangeVarGetCreationNamespace(statement->relation);
	table->persistence = statement->relation->relpersistence;
	if (isAnyTempNamespace(table->schema) ||
		(statement->if_not_exists &&
		 OidIsValid(get_relname_relid(table->name, table->schema))))
		return;
	table->template = find_template(statement);
	foreach(cell, statement->tableElts)
	{
		Node	   *element = lfirst(cell);

		if (IsA(element, ColumnDef))
			table->columns = lappend(table->columns, element);
		else if (IsA(element, Constraint))
			table->constraints = lappend(table->constraints, element);
		else if (IsA(element, TableLikeClause))
			prepare_like(table, (TableLikeClause *) element);
	}
	prepare_columns(table);
}

/*
 * Is a command one of those that the server executes first?
 */
static bool
is_drop(const AlterTableCmd *command)
{
	switch (command->subtype)
	{
		case AT_DropColumn:
		case AT_DropConstraint:
		case AT_DropExpression:
		case AT_DropIdentity:
		case AT_DropNotNull:
			return true;
		default:
			return command->subtype == AT_ColumnDefault && command->def == NULL;
	}
}

/*
 * Does a command have a column that exists use a sequence?
 */
static bool
is_use(const AlterTableCmd *command)
{
	return command->subtype == AT_AddIdentity ||
		(command->subtype == AT_ColumnDefault &&
		 OidIsValid(snowflake_sequence_in_raw_default(command->def)));
}

static bool
is_addition(const AlterTableCmd *command)
{
	return command->subtype == AT_AddColumn || is_use(command);
}

static bool
has_command(const AlterTableStmt *statement, CommandFunction matches, bool wanted)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		if (matches(lfirst_node(AlterTableCmd, cell)) == wanted)
			return true;
	}
	return false;
}

/*
 * Move some commands of a statement to one of their own.
 */
static AlterTableStmt *
take_commands(AlterTableStmt *statement, CommandFunction matches)
{
	AlterTableStmt *taken = makeNode(AlterTableStmt);
	ListCell   *cell;

	taken->relation = copyObject(statement->relation);
	taken->objtype = statement->objtype;
	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (!matches(command))
			continue;
		taken->cmds = lappend(taken->cmds, command);
		statement->cmds = foreach_delete_current(statement->cmds, cell);
	}
	return taken;
}

/*
 * Have what depends on the other commands of the statement find what they leave.
 */
static void
split_alter(SnowflakeNewTable *table, AlterTableStmt *statement)
{
	if (has_command(statement, is_drop, true) &&
		has_command(statement, is_addition, true))
		snowflake_run_statement((Node *) take_commands(statement, is_drop),
								table->query);
	if (has_command(statement, is_use, true) &&
		has_command(statement, is_use, false))
		table->uses = take_commands(statement, is_use);
}

/*
 * ALTER COLUMN ... TYPE.  A foreign key of the statement may reference a wider
 * column.  The server refuses serial here.
 */
static void
add_altered_column(SnowflakeNewTable *table, const AlterTableCmd *command)
{
	ColumnDef  *column = castNode(ColumnDef, command->def);

	if (OidIsValid(snowflake_serial_type(column->typeName)))
		return;
	column->colname = command->name;
	table->columns = lappend(table->columns, column);
}

static void
prepare_alter(SnowflakeNewTable *table, AlterTableStmt *statement)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);
	ListCell   *cell;

	if (!snowflake_is_own_table(relid))
		return;
	split_alter(table, statement);
	table->name = get_rel_name(relid);
	table->relid = relid;
	table->schema = get_rel_namespace(relid);
	table->owner = snowflake_table_owner(relid);
	table->persistence = get_rel_persistence(relid);
	foreach(cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_AddColumn &&
			get_attnum(relid, castNode(ColumnDef, command->def)->colname) == InvalidAttrNumber)
			table->columns = lappend(table->columns, command->def);
		else if (command->subtype == AT_AlterColumnType)
			add_altered_column(table, command);
		else if (command->subtype == AT_AddConstraint)
			table->constraints = lappend(table->constraints, command->def);
		else if (command->subtype == AT_ColumnDefault)
			prepare_set_default(table, command);
		else if (command->subtype == AT_AddIdentity)
			prepare_add_identity(table, command);
	}
	prepare_columns(table);
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
 * Do the tables that are created here and now stay as they are?
 */
static bool
is_left_alone(void)
{
	return snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_LOCAL ||
		creating_extension || IsBinaryUpgrade || XactReadOnly || is_restoring();
}

/*
 * Before a utility statement, which is replaced if it is to be another one.
 * Returns what snowflake_finish_table() needs after it, or NULL.
 */
SnowflakeNewTable *
snowflake_prepare_table(PlannedStmt **planned, const char *query)
{
	Node	   *statement = (*planned)->utilityStmt;
	SnowflakeNewTable *table;

	if (IsA(statement, AlterTableStmt) && !IsBinaryUpgrade)
		snowflake_check_narrowing((AlterTableStmt *) statement);
	if (is_left_alone() ||
		(!IsA(statement, CreateStmt) && !IsA(statement, CreateForeignTableStmt) &&
		 !IsA(statement, AlterTableStmt)))
		return NULL;

	*planned = copyObject(*planned);
	statement = (*planned)->utilityStmt;
	table = palloc0(sizeof(SnowflakeNewTable));
	table->query = query;

	/*
	 * The first field of what creates a foreign table is what creates a
	 * table.
	 */
	if (IsA(statement, AlterTableStmt))
		prepare_alter(table, (AlterTableStmt *) statement);
	else
		prepare_create(table, (CreateStmt *) statement);
	return table;
}

/*
 * ALTER SEQUENCE ... OWNED BY
 */
static void
set_owner(const SnowflakeNewTable *table, const SnowflakeOwnedSequence *owned)
{
	AlterSeqStmt *statement = makeNode(AlterSeqStmt);
	List	   *column = list_make3(makeString(get_namespace_name(table->schema)),
									makeString(table->name),
									makeString(owned->column));

	statement->sequence = owned->sequence;
	statement->options = list_make1(makeDefElem("owned_by", (Node *) column, -1));
	snowflake_run_statement((Node *) statement, table->query);
}

/*
 * ALTER TABLE ... ADD GENERATED BY DEFAULT AS IDENTITY
 */
static void
add_identity(const SnowflakeNewTable *table, const SnowflakeCopiedIdentity *identity)
{
	AlterTableStmt *statement = makeNode(AlterTableStmt);
	AlterTableCmd *command = makeNode(AlterTableCmd);
	Constraint *constraint = make_constraint(CONSTR_IDENTITY);

	constraint->generated_when = ATTRIBUTE_IDENTITY_BY_DEFAULT;
	constraint->options = identity->options;
	command->subtype = AT_AddIdentity;
	command->name = identity->column;
	command->def = (Node *) constraint;
	statement->relation = makeRangeVar(get_namespace_name(table->schema),
									   table->name, -1);
	statement->cmds = list_make1(command);
	statement->objtype = OBJECT_TABLE;
	snowflake_run_statement((Node *) statement, table->query);
}

/*
 * After the statement.
 */
void
snowflake_finish_table(SnowflakeNewTable *table)
{
	ListCell   *cell;

	if (table == NULL || (table->sequences == NIL && table->identities == NIL &&
						  table->ranges == NIL && table->uses == NULL))
		return;
	CommandCounterIncrement();
	foreach(cell, table->sequences)
		set_owner(table, lfirst(cell));
	foreach(cell, table->ranges)
		snowflake_set_kind(lfirst_oid(cell), SNOWFLAKE_KIND_RANGE, NULL);
	foreach(cell, table->identities)
		add_identity(table, lfirst(cell));
	if (table->uses != NULL)
		snowflake_run_statement((Node *) table->uses, table->query);
}
