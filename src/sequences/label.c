/*-------------------------------------------------------------------------
 *
 * label.c
 *	  The labels of sequences: which have one, and its text.
 *
 *		snowflake [last_value=N | next_value=N] [default]
 *		range [last_value=N | next_value=N] [default] [database=DATABASE]
 *			name=SCHEMA.SEQUENCE
 *
 * The position is the one from before; without it the sequence was at its
 * start, unused.  The word "default" is there if a new table got it because of
 * a setting.  The database is the one in which the sequence got its label: in a copy
 * of it, or under another name, the sequence has numbers of that database.
 *
 * The name is the rest of the text, because a quoted name may have blanks.  Servers
 * agree on it, so it depends neither on settings nor on the server's version, as
 * quote_identifier() does: key words are not quoted.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/label.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_seclabel.h"
#include "commands/seclabel.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "sequences/label.h"

#define LETTERS			"abcdefghijklmnopqrstuvwxyz_"
#define DIGITS			"0123456789"

static const char *const kinds[] = {
	[SNOWFLAKE_KIND_LOCAL] = "local",
	[SNOWFLAKE_KIND_SNOWFLAKE] = "snowflake",
	[SNOWFLAKE_KIND_RANGE] = "range",
};

const char *
snowflake_kind_name(SnowflakeSequenceKind kind)
{
	return kinds[kind];
}

/*
 * Find a kind by its name.  Returns false if there is none.
 */
bool
snowflake_find_kind(const char *name, SnowflakeSequenceKind *kind)
{
	for (size_t i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(name, kinds[i]) == 0)
		{
			*kind = (SnowflakeSequenceKind) i;
			return true;
		}
	}
	return false;
}

/*
 * Take the next word, which ends at a blank that is not quoted.
 */
static char *
take_word(char **string)
{
	char	   *word = *string;
	char	   *end = word;

	for (bool quoted = false; *end != '\0' && (quoted || *end != ' '); end++)
		quoted ^= *end == '"';
	*string = end + strspn(end, " ");
	*end = '\0';
	return word;
}

/*
 * Read the name of a database, which may be quoted.
 */
static bool
read_database(const char *string, SequenceLabel *label)
{
	size_t		length = strlen(string);
	size_t		n = 0;

	if (length >= 2 && string[0] == '"' && string[length - 1] == '"')
	{
		string++;
		length -= 2;
	}
	for (size_t i = 0; i < length && n < NAMEDATALEN - 1; i++)
	{
		label->database[n++] = string[i];
		if (string[i] == '"')
			i++;
	}
	return n > 0;
}

/*
 * Read one word of a label after the first.
 */
static bool
read_word(const char *word, SequenceLabel *label)
{
	const char *number = strchr(word, '=');
	char	   *end;

	if (strcmp(word, "default") == 0)
		return label->by_default = true;
	if (strncmp(word, "database=", 9) == 0)
		return label->kind == SNOWFLAKE_KIND_RANGE && read_database(word + 9, label);
	label->position.is_called = strncmp(word, "last_value=", 11) == 0;
	if (!label->position.is_called && strncmp(word, "next_value=", 11) != 0)
		return false;
	errno = 0;
	label->position.last_value = strtoll(number + 1, &end, 10);
	label->has_position = true;
	return errno == 0 && end != number + 1 && *end == '\0';
}

/*
 * Read the name, which a range sequence has, and no other.
 */
static bool
read_name(const char *string, SequenceLabel *label)
{
	if (label->kind != SNOWFLAKE_KIND_RANGE)
		return *string == '\0';
	if (strncmp(string, "name=", 5) != 0 || string[5] == '\0')
		return false;
	return strlcpy(label->name, string + 5, sizeof(label->name)) < sizeof(label->name);
}

/*
 * Read a label.  Returns false if it is invalid, as that of a range sequence is without
 * the database: a copy of it could not be told from it.
 */
bool
snowflake_read_label(const char *string, SequenceLabel *label)
{
	char	   *copy = pstrdup(string);
	char	   *rest = copy;
	bool		valid;

	memset(label, 0, sizeof(SequenceLabel));
	valid = snowflake_find_kind(take_word(&rest), &label->kind) &&
		label->kind != SNOWFLAKE_KIND_LOCAL;
	while (valid && *rest != '\0' && strncmp(rest, "name=", 5) != 0)
		valid = read_word(take_word(&rest), label);
	valid = valid && read_name(rest, label) &&
		(label->kind != SNOWFLAKE_KIND_RANGE || label->database[0] != '\0');
	pfree(copy);
	return valid;
}

/*
 * Append a part of a name, quoted unless it is a plain one.
 */
static void
append_part(StringInfo name, const char *part)
{
	if (strspn(part, LETTERS) > 0 && strspn(part, LETTERS DIGITS) == strlen(part))
	{
		appendStringInfoString(name, part);
		return;
	}
	appendStringInfoChar(name, '"');
	for (; *part != '\0'; part++)
	{
		if (*part == '"')
			appendStringInfoChar(name, '"');
		appendStringInfoChar(name, *part);
	}
	appendStringInfoChar(name, '"');
}

char *
snowflake_write_label(const SequenceLabel *label)
{
	StringInfoData string;

	initStringInfo(&string);
	appendStringInfoString(&string, snowflake_kind_name(label->kind));
	if (label->has_position)
		appendStringInfo(&string, " %s=" INT64_FORMAT,
						 label->position.is_called ? "last_value" : "next_value",
						 label->position.last_value);
	if (label->by_default)
		appendStringInfoString(&string, " default");
	if (label->database[0] != '\0')
	{
		appendStringInfoString(&string, " database=");
		append_part(&string, label->database);
	}
	if (label->kind == SNOWFLAKE_KIND_RANGE)
		appendStringInfo(&string, " name=%s", label->name);
	return string.data;
}

/*
 * The name of a range sequence that has no other one: its own.  It is empty if somebody has
 * dropped a sequence that is not locked.
 */
char *
snowflake_range_name(Oid relid)
{
	char	   *schema = get_namespace_name(get_rel_namespace(relid));
	char	   *sequence = get_rel_name(relid);
	StringInfoData name;

	initStringInfo(&name);
	if (schema == NULL || sequence == NULL)
		return name.data;
	append_part(&name, schema);
	appendStringInfoChar(&name, '.');
	append_part(&name, sequence);
	return name.data;
}

/*
 * The text of a sequence's label, or NULL if it is local.
 */
char *
snowflake_get_label(Oid relid)
{
	ObjectAddress object;
	char	   *label;

	ObjectAddressSet(object, RelationRelationId, relid);
	label = GetSecurityLabel(&object, SNOWFLAKE_LABEL_PROVIDER);
	return label != NULL && strcmp(label, SNOWFLAKE_LABEL_LOCAL) != 0 ? label : NULL;
}

/*
 * Does a row of pg_seclabel say that a sequence is not local?
 *
 * heap_getattr() is inline, and calls functions that a minor version has added:
 * a library that was built with its headers could not be loaded by the one before.
 */
static bool
is_nonlocal(HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;
	Datum		provider = fastgetattr(tuple, Anum_pg_seclabel_provider, desc, &isnull);
	Datum		label = fastgetattr(tuple, Anum_pg_seclabel_label, desc, &isnull);

	return ((FormData_pg_seclabel *) GETSTRUCT(tuple))->classoid == RelationRelationId &&
		strcmp(TextDatumGetCString(provider), SNOWFLAKE_LABEL_PROVIDER) == 0 &&
		strcmp(TextDatumGetCString(label), SNOWFLAKE_LABEL_LOCAL) != 0;
}

/*
 * Call a function for each sequence that is not local, until it returns true.
 * Returns that sequence, or InvalidOid.
 */
Oid
snowflake_find_labelled(bool (*matches) (Oid relid, void *arg), void *arg)
{
	Relation	labels = table_open(SecLabelRelationId, AccessShareLock);
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	scan = systable_beginscan(labels, InvalidOid, false, NULL, 0, NULL);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			relid = ((FormData_pg_seclabel *) GETSTRUCT(tuple))->objoid;

		if (is_nonlocal(tuple, RelationGetDescr(labels)) && matches(relid, arg))
			found = relid;
	}
	systable_endscan(scan);
	table_close(labels, AccessShareLock);
	return found;
}

static bool
is_any(Oid relid, void *arg)
{
	return true;
}

/*
 * A sequence that is not local, or InvalidOid.
 */
Oid
snowflake_find_nonlocal_sequence(void)
{
	return snowflake_find_labelled(is_any, NULL);
}
