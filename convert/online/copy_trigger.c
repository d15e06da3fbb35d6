/*-------------------------------------------------------------------------
 *
 * copy_trigger.c
 *	  The trigger that fills the new columns of a table that is converted
 *	  while it is in use.
 *
 * It copies columns of its own row, and does nothing else, so everybody may
 * use it.  Its arguments are names of columns: one to copy, where to copy it,
 * and so on.  It is fired last of the BEFORE triggers, because of its name,
 * and on subscribers, too (ENABLE ALWAYS).
 *
 * If a column was dropped, there is nothing to copy, and clients should notice
 * nothing.  The CHECK constraint was dropped with it, so the table cannot be
 * swapped before the conversion began again.  As long as there is a constraint,
 * a column that is missing was renamed.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/copy_trigger.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/rel.h"

#include "convert/online/names.h"
#include "shared/compat.h"

PG_FUNCTION_INFO_V1(snowflake_convert_copy);

/*
 * Is there the CHECK constraint of the copies?
 */
static bool
has_check(const TriggerData *data)
{
	TupleConstr *constr = RelationGetDescr(data->tg_relation)->constr;

	for (int i = 0; constr != NULL && i < constr->num_check; i++)
	{
		if (strcmp(constr->check[i].ccname, SNOWFLAKE_ONLINE_COPY_CHECK) == 0)
			return true;
	}
	return false;
}

/*
 * The number of a column that an argument names, or 0 if it was dropped.
 */
static int
find_column(const TriggerData *data, const char *name)
{
	int			attnum = SPI_fnumber(RelationGetDescr(data->tg_relation), name);

	if (attnum > 0)
		return attnum;
	if (has_check(data))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table %s, which is being converted, does not exist",
						name, RelationGetRelationName(data->tg_relation)),
				 errhint("If it was renamed, give it its old name until the conversion is complete or undone.")));
	return 0;
}

/*
 * A column of an integer type.  Returns false for a null.  For heap_getattr(), see
 * labelled.c.
 */
static bool
get_integer(HeapTuple tuple, TupleDesc desc, int attnum, int64 *value)
{
	bool		isnull;
	Datum		datum = SPI_getbinval(tuple, desc, attnum, &isnull);

	*value = 0;
	if (isnull)
		return false;
	switch (TupleDescAttr(desc, attnum - 1)->atttypid)
	{
		case INT2OID:
			*value = DatumGetInt16(datum);
			break;
		case INT4OID:
			*value = DatumGetInt32(datum);
			break;
		case INT8OID:
			*value = DatumGetInt64(datum);
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" is not of an integer type",
							NameStr(TupleDescAttr(desc, attnum - 1)->attname))));
	}
	return true;
}

/*
 * _snowflake_convert_copy() returns trigger
 */
Datum
snowflake_convert_copy(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	HeapTuple	tuple;
	TupleDesc	desc;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(data->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger that copies columns must be fired BEFORE INSERT OR UPDATE FOR EACH ROW")));

	desc = RelationGetDescr(data->tg_relation);
	tuple = TRIGGER_FIRED_BY_UPDATE(data->tg_event) ? data->tg_newtuple : data->tg_trigtuple;
	for (int i = 0; i + 1 < data->tg_trigger->tgnargs; i += 2)
	{
		int			from = find_column(data, data->tg_trigger->tgargs[i]);
		int			to = find_column(data, data->tg_trigger->tgargs[i + 1]);
		int64		value;
		int64		present;
		bool		has_value;
		bool		has_present;
		Datum		datum;
		bool		isnull;

		if (from == 0 || to == 0)
			continue;
		has_value = get_integer(tuple, desc, from, &value);
		has_present = get_integer(tuple, desc, to, &present);
		datum = Int64GetDatum(value);
		isnull = !has_value;
		if (TupleDescAttr(desc, to - 1)->atttypid != INT8OID)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" is not of type bigint",
							data->tg_trigger->tgargs[i + 1])));
		if (has_value == has_present && value == present)
			continue;
		tuple = heap_modify_tuple_by_cols(tuple, desc, 1, &to, &datum, &isnull);
	}
	return PointerGetDatum(tuple);
}
