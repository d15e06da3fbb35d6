/*-------------------------------------------------------------------------
 *
 * daily.c
 *	  Daily numbers: they begin with the date, and start at 1 each day.
 *
 * daily_nextval() uses an ordinary sequence, so the numbers have the
 * properties of sequences: they survive a crash, are replicated and dumped,
 * are not rolled back, and no transaction waits for another.  The value of the
 * sequence contains the date:
 *
 *		value = day * 10^10 + n		day as 20261121
 *
 * and the result is day * 10^digits + n, so a greater value is a greater
 * number for any number of digits.  (Numbers with more digits are greater than
 * all those with fewer.)  There are at most 9 digits, so a day has ten times
 * as many values as numbers can be returned.  Values that are refused because
 * they have too many digits do not reach the next day: 9 * 10^9 calls would
 * have to fail in one day.
 *
 * A call does this:
 *
 *	1. It determines today's date, and calls nextval().
 *	2. If the day of the value is today or later, that is the number.
 *	3. Otherwise it takes the lock of the sequence, and calls nextval() again.
 *	   If the day of the value is still before today, it sets the sequence to
 *	   today's first value, and takes that.  It releases the lock.
 *
 * The sequence never decreases, and therefore numbers do not:
 *
 *	* Only step 3 sets it, under the lock, so one session at a time.  A session
 *	  that waited for the lock sees, by its second nextval(), that another one
 *	  has set the sequence, and takes the value it got.
 *	* Meanwhile, other sessions call nextval() without the lock.  Between the
 *	  second nextval() and the setting, they get values of the same day as the
 *	  second one, which are below what the sequence is set to.  Callers for
 *	  which it still is that day use them, others discard them and wait for the
 *	  lock.
 *	* The sequence is only set to a value above all that it returned.  A clock
 *	  that is set back over midnight sets nothing: the day of the value is
 *	  later than today, and numbers continue with that day until the clock
 *	  reaches it.  The same applies to a session in a time zone where it is
 *	  still yesterday.
 *	* Both nextval() and the setting change the sequence under the lock of its
 *	  page, and write WAL, which is not rolled back.  A transaction that stores
 *	  a number commits after that WAL.
 *
 * The lock is an object lock, not a relation lock, which would be held until
 * the end of the transaction and conflict with other commands.  Nothing else
 * locks a sequence in this way.  It is released at once, so that the first
 * transaction of a day does not block others; if the setting fails, the abort
 * of the (sub)transaction releases it.  While holding it, the session waits
 * for nothing: it has had the relation lock of the sequence since step 1.
 *
 * Setting a sequence requires UPDATE, nextval() only USAGE.  The latter is
 * checked in step 1, and the setting, for which the caller can choose nothing
 * but the time zone, and with it a day before or after that of UTC, is done as
 * the owner of the sequence.  Only a sequence of daily numbers, or a new one, is
 * set like that.  For any other, such as that of a serial column, the caller needs
 * UPDATE.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/daily.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "commands/seclabel.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "shared/compat.h"
#include "shared/table_owner.h"

/* Values of the sequence for each day. */
#define VALUES_OF_DAY	INT64CONST(10000000000)

#define MAX_DIGITS		9

/* Days of eight digits. */
#define FIRST_DAY		10000101
#define LAST_DAY		99991231

SNOWFLAKE_MODULE_MAGIC("snowflake_keys");

PG_FUNCTION_INFO_V1(daily_nextval);

/*
 * The days from 2000-01-01 to a timestamp.
 */
static int
date_of(Timestamp timestamp)
{
	return (int) (timestamp / USECS_PER_DAY - (timestamp % USECS_PER_DAY < 0));
}

/*
 * Today's date in a time zone, or in that of the session if it is NULL.
 *
 * Numbers never decrease, so a date that is far ahead would be that of
 * everybody's numbers for as long.  A real time zone is at most one day from
 * UTC, but the name of a POSIX time zone can have an offset of a week.
 */
static int
get_today(text *zone)
{
	TimestampTz now = GetCurrentTimestamp();
	Datum		local;
	struct pg_tm tm;
	fsec_t		fsec;

	if (zone == NULL)
		local = DirectFunctionCall1(timestamptz_timestamp,
									TimestampTzGetDatum(now));
	else
		local = DirectFunctionCall2(timestamptz_zone, PointerGetDatum(zone),
									TimestampTzGetDatum(now));
	if (timestamp2tm(DatumGetTimestamp(local), NULL, &tm, &fsec, NULL,
					 NULL) != 0 ||
		tm.tm_year < FIRST_DAY / 10000 || tm.tm_year > LAST_DAY / 10000)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("current date is out of range for daily numbers"),
				 errdetail("The year must have four digits.")));
	if (abs(date_of(DatumGetTimestamp(local)) - date_of(now)) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone is too far from UTC for daily numbers"),
				 errdetail("The date in the time zone is more than one day from the date in UTC, and would be used for the numbers of all sessions.")));

	return tm.tm_year * 10000 + tm.tm_mon * 100 + tm.tm_mday;
}

/*
 * Can a number be a day?
 */
static bool
looks_like_day(int64 number)
{
	int64		month = number / 100 % 100;
	int64		day = number % 100;

	return number >= FIRST_DAY && number <= LAST_DAY && month >= 1 && month <= 12 &&
		day >= 1 && day <= 31;
}

/*
 * Has a sequence numbers of its own?  Otherwise its label is another kind, and
 * the sequence is exhausted, so that only nextval() of SQL returns numbers.
 */
static bool
is_local(Oid relid)
{
	ObjectAddress sequence;
	const char *label;

	ObjectAddressSet(sequence, RelationRelationId, relid);
	label = GetSecurityLabel(&sequence, "snowflake");
	return label == NULL || strcmp(label, "local") == 0;
}

/*
 * Fail if the options of a sequence do not allow daily numbers.
 */
static void
check_sequence(Oid relid)
{
	const char *reason = NULL;
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	Form_pg_sequence form;

	if (!HeapTupleIsValid(tuple))
	{
		/* This fails with the right error. */
		(void) nextval_internal(relid, true);
		elog(ERROR, "cache lookup failed for sequence %u", relid);
	}
	form = (Form_pg_sequence) GETSTRUCT(tuple);
	if (form->seqincrement != 1)
		reason = "Its increment is not 1.";
	else if (form->seqcache != 1)
		reason = "Its cache size is not 1, so numbers would not increase across sessions.";
	else if (form->seqcycle)
		reason = "It cycles, so numbers could be repeated.";
	else if (form->seqmax < (LAST_DAY + 1) * VALUES_OF_DAY)
		reason = "Its maximum value is too small.";
	ReleaseSysCache(tuple);
	if (reason == NULL &&
		get_rel_persistence(relid) == RELPERSISTENCE_UNLOGGED)
		reason = "It is unlogged, so numbers could be repeated after a crash.";
	if (reason == NULL && !is_local(relid))
		reason = "Its kind is not local.";

	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot be used for daily numbers",
						get_rel_name(relid)),
				 errdetail("%s", reason),
				 errhint("Use a local sequence that was created with default options.")));
}

/*
 * Is it a new sequence, which has returned nothing but this value, and those of
 * the other sessions that draw the first number now?  Each does so twice at most.
 * That of a column of numbers, such as serial and identity columns, is not.
 */
static bool
is_new_sequence(Oid relid, int64 value)
{
	HeapTuple	tuple;
	int64		start;
	Oid			table;
	int32		column;

	if (sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column) ||
		(sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column) &&
		 TypeCategory(get_atttype(table, (AttrNumber) column)) == TYPCATEGORY_NUMERIC))
		return false;
	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", relid);
	start = ((Form_pg_sequence) GETSTRUCT(tuple))->seqstart;
	ReleaseSysCache(tuple);
	return value >= start &&
		((uint64) value - (uint64) start) / 2 <= (uint64) MaxBackends;
}

/*
 * Fail if a sequence is that of other numbers, and the caller may not set it.
 */
static void
check_may_set(Oid relid, int64 value)
{
	if (looks_like_day(value / VALUES_OF_DAY) || is_new_sequence(relid, value) ||
		pg_class_aclcheck(relid, GetUserId(), ACL_UPDATE) == ACLCHECK_OK)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to use sequence \"%s\" for daily numbers",
					get_rel_name(relid)),
			 errdetail("Its value " INT64_FORMAT " is not a daily number. To set it to one requires the privilege UPDATE.",
					   value),
			 errhint("Use a new sequence, for daily numbers only.")));
}

/*
 * Set a sequence as its owner.
 */
static void
set_sequence(Oid relid, int64 value)
{
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(snowflake_table_owner(relid), context | SECURITY_LOCAL_USERID_CHANGE);
	DirectFunctionCall3(setval3_oid, ObjectIdGetDatum(relid),
						Int64GetDatum(value), BoolGetDatum(true));
	SetUserIdAndSecContext(user, context);
}

/*
 * Get a value of a day, or of a later one; set the sequence to that day if it
 * is still at an earlier one.
 */
static int64
next_value_under_lock(Oid relid, int day)
{
	int64		value;

	LockDatabaseObject(RelationRelationId, relid, 0, ExclusiveLock);
	value = nextval_internal(relid, true);
	if (value / VALUES_OF_DAY < day)
	{
		check_may_set(relid, value);
		value = day * VALUES_OF_DAY + 1;
		set_sequence(relid, value);
	}
	UnlockDatabaseObject(RelationRelationId, relid, 0, ExclusiveLock);
	return value;
}

/*
 * daily_nextval(sequence regclass, digits integer, time_zone text)
 * returns bigint
 */
Datum
daily_nextval(PG_FUNCTION_ARGS)
{
	Oid			relid;
	int32		digits;
	int			day;
	int64		numbers = 1;
	int64		value;
	int64		value_day;
	int64		n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	relid = PG_GETARG_OID(0);
	digits = PG_GETARG_INT32(1);
	if (digits < 1 || digits > MAX_DIGITS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("digits must be between 1 and %d", MAX_DIGITS)));
	for (int i = 0; i < digits; i++)
		numbers *= 10;

	check_sequence(relid);
	day = get_today(PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2));
	value = nextval_internal(relid, true);
	if (value / VALUES_OF_DAY < day)
		value = next_value_under_lock(relid, day);

	value_day = value / VALUES_OF_DAY;
	n = value % VALUES_OF_DAY;
	if (value_day != day && !looks_like_day(value_day))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("value " INT64_FORMAT " of sequence \"%s\" is not a daily number",
						value, get_rel_name(relid)),
				 errhint("Set the sequence to a value that consists of the date as YYYYMMDD and a number of ten digits.")));
	if (n >= numbers)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("sequence \"%s\" has no %d-digit number left for this day",
						get_rel_name(relid), digits),
				 errhint("Use more digits. Numbers remain unique and increasing.")));
	PG_RETURN_INT64(value_day * numbers + n);
}
