/*-------------------------------------------------------------------------
 *
 * range_request.c
 *	  Calls of the registry for ranges, and its answers.
 *
 * An answer is not trusted (answer.c).  If it has not exactly one row for each
 * sequence, with values that have the form that they must have, it is no answer.
 * If a row has that form, but grants what cannot be granted, that one sequence
 * has a problem, and the others have their ranges.
 *
 * What can be granted?  Numbers that are positive, at most MAXVALUE, and above all
 * floors that are known; as many as the sequence's INCREMENT needs, and not more
 * than there is room to count.  A range that is refused here is lost, because the
 * answer counts.
 *
 * An answer with ranges is used in this order: its receipt is made durable, the chain
 * of tokens is confirmed, and the ranges are installed.  If this ends in between, the
 * next call gets the same answer again, and nobody has used any of it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_request.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "generator/durable.h"
#include "registry_client/workers/local_call.h"
#include "registry_client/workers/range_request.h"
#include "registry_client/workers/registry_worker.h"
#include "shared/compat.h"

/* The columns of an answer with ranges. */
enum
{
	COLUMN_POSITION, COLUMN_FIRST, COLUMN_LAST, COLUMN_FLOOR, COLUMN_NEXT,
	COLUMN_GRANT_TIME, COLUMN_WAITS_FOR, COLUMN_PROBLEM_KIND, COLUMN_PROBLEM,
	COLUMN_RECEIPT, COLUMN_MUST_REPORT, RANGE_COLUMNS
};

/* Those of one with floors, and of one with names. */
enum
{
	COLUMN_DATABASE, COLUMN_NAME, COLUMN_ITS_FLOOR, FLOOR_COLUMNS,
	COLUMN_ITS_LAST = COLUMN_ITS_FLOOR, COLUMN_LEAST, COLUMN_WISH, NAME_COLUMNS
};

/* More numbers are in no range. */
#define MAX_NUMBERS			(INT64CONST(1) << 32)

/*
 * Names are qualified and parameters have exactly the types of the functions,
 * as in grant_worker.c.  The confirmed token, and the start of the machine, is
 * NULL if its array is empty.
 */
static const char ranges_query[] =
"SELECT position, first_number, last_number, floor, next, grant_time_ms,"
" waits_for, problem_kind, problem, new_receipt, must_report::pg_catalog.int4"
" FROM snowflake_registry.get_ranges($1::pg_catalog.uuid,"
" ($2::pg_catalog.uuid[])[1], $3::pg_catalog.uuid[], $4::pg_catalog.uuid,"
" $5::pg_catalog.int8, $6::pg_catalog.text,"
" $7::pg_catalog.text[], $8::pg_catalog.text[],"
" $9::pg_catalog.int8[], $10::pg_catalog.int8[], $11::pg_catalog.int8[],"
" $12::pg_catalog.int8[], $13::pg_catalog.text[],"
" ($14::pg_catalog.uuid[])[1], $15::pg_catalog.uuid, $16::pg_catalog.int8)";

static const char floors_query[] =
"SELECT database, name, floor"
" FROM snowflake_registry.get_floors($1::pg_catalog.uuid, $2::pg_catalog.int8)"
" LIMIT 100";

/* No client: the names of others. */
static const char names_query[] =
"SELECT database, name, last, least_count, wish"
" FROM snowflake_registry.get_range_names(($1::pg_catalog.uuid[])[1],"
" $2::pg_catalog.text, $3::pg_catalog.uuid, $4::pg_catalog.int4,"
" $5::pg_catalog.int4)";

static const char report_query[] =
"SELECT snowflake_registry.report_ranges($1::pg_catalog.uuid,"
" ($2::pg_catalog.uuid[])[1], $3::pg_catalog.uuid[], $4::pg_catalog.text,"
" $5::pg_catalog.text[], $6::pg_catalog.text[],"
" $7::pg_catalog.int8[], $8::pg_catalog.int8[], $9::pg_catalog.bool[],"
" $10::pg_catalog.bool, $11::pg_catalog.uuid, $12::pg_catalog.int4,"
" $13::pg_catalog.int4)::pg_catalog.int4";

static const char changes_query[] =
"SELECT last_value FROM snowflake_registry.floor_changes";

static const char return_query[] =
"SELECT snowflake_registry.return_ranges($1::pg_catalog.uuid,"
" ($2::pg_catalog.uuid[])[1], $3::pg_catalog.uuid[])::pg_catalog.int4";

/*
 * Fill in what each call begins with: the client, and its tokens.
 */
static void
fill_call(RangeTask *task, const char *query, int nparams)
{
	RegistryCall *call = &task->base.call;
	const RangeChain *chain = &task->chain;

	snowflake_get_chain(&task->chain);
	call->query = query;
	call->nparams = nparams;
	call->max_rows = SNOWFLAKE_MAX_REQUESTS;
	call->params[0] = snowflake_token_text(&chain->client);
	if (nparams < 3)
		return;
	call->params[1] = snowflake_token_array(&chain->confirmed, chain->nconfirmed);
	call->params[2] = snowflake_token_array(chain->unconfirmed,
											chain->nunconfirmed);
}

/*
 * Append an element to an array that is not ended.
 */
static void
append_element(StringInfo array, const char *element)
{
	appendStringInfo(array, "%c%s", array->len == 0 ? '{' : ',', element);
}

static void
append_text(StringInfo array, const char *string)
{
	append_element(array, "\"");
	for (; *string != '\0'; string++)
	{
		if (*string == '"' || *string == '\\')
			appendStringInfoChar(array, '\\');
		appendStringInfoChar(array, *string);
	}
	appendStringInfoChar(array, '"');
}

/*
 * Append a number, or NULL for a negative one.
 */
static void
append_number(StringInfo array, int64 number)
{
	append_element(array, number >= 0 ? psprintf(INT64_FORMAT, number) : "NULL");
}

static void
begin_arrays(StringInfo arrays, size_t n)
{
	for (size_t i = 0; i < n; i++)
		initStringInfo(&arrays[i]);
}

/*
 * End the arrays, and have them as parameters.
 */
static void
end_arrays(StringInfo arrays, size_t n, const char **params)
{
	for (size_t i = 0; i < n; i++)
	{
		appendStringInfoString(&arrays[i], arrays[i].len == 0 ? "{}" : "}");
		params[i] = arrays[i].data;
	}
}

/*
 * The last receipt, as a parameter.
 */
static const char *
receipt_text(void)
{
	return psprintf(INT64_FORMAT, snowflake_receipt_read());
}

/*
 * Fill in a call for ranges, which extends the chain.
 */
static void
ask_for_ranges(RegistryRequest *base)
{
	RangeTask  *task = (RangeTask *) base;
	RegistryCall *call = &base->call;
	const ServerLife *life = snowflake_this_life();
	StringInfoData arrays[7];

	fill_call(task, ranges_query, 6 + lengthof(arrays) + 3);
	snowflake_extend_chain(&task->chain);
	call->params[3] = snowflake_token_text(&task->chain.new_token);
	call->params[4] = receipt_text();
	call->params[5] = snowflake_name_in_registry();
	begin_arrays(arrays, lengthof(arrays));
	for (int i = 0; i < task->n; i++)
	{
		const RangeRequest *request = &task->requests[i];

		append_text(&arrays[0], request->database);
		append_text(&arrays[1], request->name);
		append_number(&arrays[2], request->last);
		append_number(&arrays[3], request->count);
		append_number(&arrays[4], request->least);
		append_number(&arrays[5], request->floor);
		if (request->source[0] != '\0')
			append_text(&arrays[6], request->source);
		else
			append_element(&arrays[6], "NULL");
	}
	end_arrays(arrays, lengthof(arrays), &call->params[6]);
	call->params[13] = snowflake_token_array(&life->boot, life->boot_is_known ? 1 : 0);
	call->params[14] = snowflake_token_text(&life->directory);
	call->params[15] = psprintf(INT64_FORMAT, life->started);
}

/*
 * Fill in a call for floors that this server must know.
 */
static void
ask_for_floors(RegistryRequest *base)
{
	fill_call((RangeTask *) base, floors_query, 2);
	base->call.params[1] = receipt_text();
}

/*
 * Fill in a call for the names that this server was granted numbers of, also
 * before its start, those used last first, or for those of others: a page of them after
 * the first ones.
 */
static void
ask_for_names(RegistryRequest *base)
{
	RangeTask  *task = (RangeTask *) base;
	RegistryCall *call = &base->call;

	fill_call(task, names_query, 5);
	call->params[0] = snowflake_token_array(&task->chain.client, task->elsewhere ? 0 : 1);
	call->params[1] = snowflake_name_in_registry();
	call->params[2] = snowflake_token_text(&snowflake_this_life()->directory);
	call->params[3] = psprintf("%d", task->after);
	call->params[4] = psprintf("%d", SNOWFLAKE_MAX_REQUESTS);
}

/*
 * Fill in a call that reports what this server may have been granted, a page of it.
 */
static void
report_ranges(RegistryRequest *base)
{
	RangeTask  *task = (RangeTask *) base;
	RegistryCall *call = &base->call;
	StringInfoData arrays[5];

	fill_call(task, report_query, 4 + lengthof(arrays) + 4);
	call->params[3] = snowflake_name_in_registry();
	begin_arrays(arrays, lengthof(arrays));
	for (int i = 0; i < task->n; i++)
	{
		append_text(&arrays[0], task->reports[i].database);
		append_text(&arrays[1], task->reports[i].name);
		append_number(&arrays[2], task->reports[i].last);
		append_number(&arrays[3], task->reports[i].granted);
		append_element(&arrays[4], task->reports[i].is_exact ? "true" : "false");
	}
	end_arrays(arrays, lengthof(arrays), &call->params[4]);
	call->params[9] = task->is_complete ? "true" : "false";
	call->params[10] = snowflake_token_text(&snowflake_this_life()->directory);
	call->params[11] = psprintf("%d", task->after);
	call->params[12] = psprintf("%d", task->unread);
}

/*
 * Fill in a call for whether there may be other floors.  Each server makes it every
 * two seconds, so it calls no function.
 */
static void
ask_for_changes(RegistryRequest *base)
{
	base->call.query = changes_query;
	base->call.max_rows = 1;
}

/*
 * Fill in the call that returns all ranges.
 */
static void
return_ranges(RegistryRequest *base)
{
	fill_call((RangeTask *) base, return_query, 3);
}

/*
 * Read an integer, or this if it is NULL.
 */
static bool
read_or_null(const char *from, int64 if_null, int64 *value)
{
	if (from != NULL)
		return snowflake_read_value(from, value);
	*value = if_null;
	return true;
}

/*
 * Read a text as a single line, or an empty one if it is NULL.
 */
static void
read_text(const char *from, char *text)
{
	StringInfoData line;

	initStringInfo(&line);
	snowflake_append_message(&line, from != NULL ? from : "");
	strlcpy(text, line.data, SNOWFLAKE_RANGE_TEXT_SIZE);
	pfree(line.data);
}

/*
 * Read what the problem is: one of the registry's words, or none.
 */
static bool
read_problem(char **values, RangeAnswer *range)
{
	static const char *const words[] = {
		[PROBLEM_STOPPED] = "stopped",
		[PROBLEM_REPORT] = "report",
		[PROBLEM_BUSY] = "busy",
		[PROBLEM_UNKNOWN] = "unknown",
		[PROBLEM_DATABASE] = "database",
		[PROBLEM_FLOOR] = "floor",
		[PROBLEM_MAXIMUM] = "maximum",
		[PROBLEM_LAST] = "last"
	};
	const char *kind = values[COLUMN_PROBLEM_KIND];

	range->problem_kind = PROBLEM_NONE;
	read_text(values[COLUMN_PROBLEM], range->problem);
	if (kind == NULL || values[COLUMN_PROBLEM] == NULL)
		return kind == NULL && values[COLUMN_PROBLEM] == NULL;
	for (size_t i = PROBLEM_NONE + 1; i < lengthof(words); i++)
	{
		if (strcmp(kind, words[i]) == 0)
			range->problem_kind = (RangeProblem) i;
	}
	return range->problem_kind != PROBLEM_NONE;
}

/*
 * Take an answer apart that has so many rows and columns, each row by a function, which
 * returns false if it has not the form of one.
 */
static RegistryOutcome
read_rows(RangeTask *task, int nrows, int ncolumns,
		  bool (*read) (RangeTask *task, int row, char **values), StringInfo error)
{
	const RegistryAnswer *answer = &task->base.call.answer;

	if (!snowflake_has_rows(answer, nrows, ncolumns))
	{
		snowflake_append_answer(error, answer);
		return REGISTRY_FAILED;
	}
	for (int i = 0; i < nrows; i++)
	{
		if (!read(task, i, list_nth(answer->rows, i)))
		{
			appendStringInfo(error, "unexpected answer in row %d", i + 1);
			return REGISTRY_FAILED;
		}
	}
	return REGISTRY_ANSWERED;
}

/*
 * Read what a row says of its sequence.
 */
static bool
read_range(char **values, int expected, RangeAnswer *range)
{
	int64		position;

	if (!snowflake_read_value(values[COLUMN_POSITION], &position) ||
		position != expected ||
		(values[COLUMN_FIRST] == NULL) != (values[COLUMN_LAST] == NULL) ||
		!read_or_null(values[COLUMN_FIRST], 0, &range->first) ||
		!read_or_null(values[COLUMN_LAST], 0, &range->last) ||
		!read_or_null(values[COLUMN_FLOOR], -1, &range->floor) ||
		!read_or_null(values[COLUMN_NEXT], -1, &range->next) ||
		!read_or_null(values[COLUMN_GRANT_TIME], 0, &range->grant_time_ms))
		return false;
	if ((values[COLUMN_FIRST] != NULL && range->first < 1) ||
		(values[COLUMN_FLOOR] != NULL && range->floor < 0) ||
		(values[COLUMN_NEXT] != NULL && range->next < 1) ||
		range->grant_time_ms < 0 || range->grant_time_ms > SNOWFLAKE_MAX_GRANT_TIME_MS)
		return false;
	read_text(values[COLUMN_WAITS_FOR], range->waits_for);
	return read_problem(values, range);
}

/*
 * Can a registry grant this range?
 */
static bool
range_is_valid(const RangeRequest *request, const RangeAnswer *range)
{
	return request->count > 0 && range->problem_kind == PROBLEM_NONE &&
		range->grant_time_ms > 0 &&
		range->first <= range->last && range->last <= request->last &&
		range->first > request->floor && range->first > range->floor &&
		range->last - range->first < MAX_NUMBERS &&
		range->last - range->first >= request->least - 1;
}

/*
 * Check what a row says.  If that cannot be, the sequence has a problem.
 */
static void
check_row(const RangeRequest *request, RangeAnswer *range)
{
	if (range->first != 0 && !range_is_valid(request, range))
		snprintf(range->problem, sizeof(range->problem),
				 "The registry granted an invalid range: from " INT64_FORMAT " to " INT64_FORMAT ".",
				 range->first, range->last);
	else if (range->floor > request->last ||
			 (range->problem_kind == PROBLEM_NONE && range->floor < request->floor))
		snprintf(range->problem, sizeof(range->problem),
				 "The registry answered with an invalid floor: " INT64_FORMAT ".",
				 range->floor);
	else if (range->first == 0 && range->problem_kind == PROBLEM_NONE &&
			 request->count > 0 && range->waits_for[0] == '\0')
		strlcpy(range->problem, "The registry granted no numbers, and gave no reason.",
				sizeof(range->problem));
	else
		return;
	range->problem_kind = PROBLEM_ANSWER;
	range->first = 0;
	range->last = 0;
	range->floor = -1;
}

/*
 * Read a row, which says, as each one of the answer, the same of the server.
 */
static bool
read_row(RangeTask *task, int row, char **values)
{
	int64		must_report;

	if (!read_range(values, row + 1, &task->answers[row]) ||
		!snowflake_read_value(values[COLUMN_RECEIPT], &task->receipt) || task->receipt < 0 ||
		!snowflake_read_value(values[COLUMN_MUST_REPORT], &must_report) ||
		must_report < 0 || must_report > 1)
		return false;
	task->must_report = must_report == 1;
	check_row(&task->requests[row], &task->answers[row]);
	return true;
}

/*
 * Make the receipt durable.  Returns false if that fails: nothing of the answer is used,
 * and the next call gets it again.
 */
static bool
keep_receipt(int64 receipt, StringInfo error)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool kept = true;

	StartTransactionCommand();
	PG_TRY();
	{
		if (receipt != snowflake_receipt_read())
			snowflake_receipt_set(receipt);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		RegistryAnswer failure;

		snowflake_roll_back(context, &failure);
		snowflake_append_error(error, &failure, "");
		kept = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return kept;
}

/*
 * A sequence has another problem than before.
 */
void
snowflake_log_range_problem(const RangeRequest *request, const RangeAnswer *answer)
{
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("the registry grants no numbers for sequence %s in database \"%s\"",
					request->name, request->database),
			 errdetail_internal("%s", answer->problem)));
}

/*
 * Read the answer to a call for ranges, one row for each request, and use it.
 */
static RegistryOutcome
read_ranges(RegistryRequest *base, StringInfo error)
{
	RangeTask  *task = (RangeTask *) base;
	RegistryOutcome outcome;

	if (snowflake_has_rows(&task->base.call.answer, 0, RANGE_COLUMNS))
		return REGISTRY_NOT_HELD;
	outcome = read_rows(task, task->n, RANGE_COLUMNS, read_row, error);
	if (outcome != REGISTRY_ANSWERED)
		return outcome;
	if (task->receipt != 0 && !keep_receipt(task->receipt, error))
		return REGISTRY_FAILED;

	/*
	 * Otherwise, the next process would get and use the same ranges.  Nothing
	 * may end this one in between: the registry takes it that who asks again
	 * has exhausted all ranges before the last one, and a floor would not
	 * wait for one that is in use.
	 */
	HOLD_INTERRUPTS();
	snowflake_confirm_chain(&task->chain);
	for (int i = 0; i < task->n; i++)
		task->answers[i].is_logged =
			snowflake_install_range(&task->requests[i], &task->answers[i]);
	RESUME_INTERRUPTS();
	for (int i = 0; i < task->n; i++)
	{
		if (task->answers[i].is_logged)
			snowflake_log_range_problem(&task->requests[i], &task->answers[i]);
	}
	return outcome;
}

/*
 * Read a floor that this server must know, and give up what is not above it.
 * Nothing but NULL says that this server has to report what it was granted.
 */
static bool
read_floor(RangeTask *task, int row, char **values)
{
	int64		floor;

	if (values[COLUMN_DATABASE] == NULL && values[COLUMN_NAME] == NULL &&
		values[COLUMN_ITS_FLOOR] == NULL)
	{
		task->must_report = true;
		return true;
	}
	if (values[COLUMN_DATABASE] == NULL || values[COLUMN_NAME] == NULL ||
		!snowflake_read_value(values[COLUMN_ITS_FLOOR], &floor) || floor < 0)
		return false;
	snowflake_note_range_floor(values[COLUMN_DATABASE],
							   values[COLUMN_NAME], floor);
	return true;
}

static RegistryOutcome
read_floors(RegistryRequest *base, StringInfo error)
{
	RangeTask  *task = (RangeTask *) base;

	return read_rows(task, list_length(base->call.answer.rows), FLOOR_COLUMNS, read_floor,
					 error);
}

/*
 * Read a name that has room, with values that a request can have.
 */
static bool
read_name(RangeTask *task, int row, char **values)
{
	RangeName  *name = &task->names[row];

	if (values[COLUMN_DATABASE] == NULL || values[COLUMN_NAME] == NULL ||
		!snowflake_read_value(values[COLUMN_ITS_LAST], &name->last) ||
		!snowflake_read_value(values[COLUMN_LEAST], &name->least) ||
		!snowflake_read_value(values[COLUMN_WISH], &name->wish))
		return false;
	return strlcpy(name->database, values[COLUMN_DATABASE],
				   sizeof(name->database)) < sizeof(name->database) &&
		strlcpy(name->name, values[COLUMN_NAME],
				sizeof(name->name)) < sizeof(name->name) &&
		name->last > 0 && name->least > 0 &&
		name->least < INT64CONST(2) * SNOWFLAKE_MAX_RANGE_STEP && name->wish >= 0 &&
		name->wish <= SNOWFLAKE_MAX_RANGE;
}

static RegistryOutcome
read_names(RegistryRequest *base, StringInfo error)
{
	RangeTask  *task = (RangeTask *) base;

	task->n = list_length(task->base.call.answer.rows);
	return read_rows(task, task->n, NAME_COLUMNS, read_name, error);
}

/*
 * Read a number that is another one if there may be other floors.
 */
static RegistryOutcome
read_changes(RegistryRequest *base, StringInfo error)
{
	const RegistryAnswer *answer = &base->call.answer;

	if (snowflake_has_rows(answer, 1, 1) &&
		snowflake_read_integer(answer, 0, &((RangeTask *) base)->changes))
		return REGISTRY_ANSWERED;
	snowflake_append_answer(error, answer);
	return REGISTRY_FAILED;
}

/*
 * The registry has certainly rolled a call back: its token is none.
 */
static void
cancel_ranges(RegistryRequest *base)
{
	snowflake_shorten_chain(&((RangeTask *) base)->chain);
}

/*
 * Any answer that is one is enough: another host might give this server what it gave up.
 */
const RegistryRequest snowflake_ranges_request = {
	.prepare = ask_for_ranges,
	.read = read_ranges,
	.cancel = cancel_ranges,
	.enough = REGISTRY_NOT_HELD,
	.durable = true
};
const RegistryRequest snowflake_floors_request = {
	.prepare = ask_for_floors,
	.read = read_floors,
	.enough = REGISTRY_NOT_HELD
};
const RegistryRequest snowflake_changes_request = {
	.prepare = ask_for_changes,
	.read = read_changes,
	.enough = REGISTRY_NOT_HELD
};
const RegistryRequest snowflake_names_request = {
	.prepare = ask_for_names,
	.read = read_names,
	.enough = REGISTRY_NOT_HELD
};
const RegistryRequest snowflake_report_request = {
	.prepare = report_ranges,
	.read = snowflake_read_taken,
	.enough = REGISTRY_NOT_HELD
};
const RegistryRequest snowflake_return_request = {
	.prepare = return_ranges,
	.read = snowflake_read_taken,
	.enough = REGISTRY_NOT_HELD,
	.is_last = true
};
