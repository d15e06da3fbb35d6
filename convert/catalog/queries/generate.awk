# Turns a file of queries into a header with a constant for each, sql_NAME.
#
#	awk -f generate.awk shared.sql... file.sql >file.sql.h
#	awk -v prepare=1 -f generate.awk shared.sql *.sql
#
# The first writes those of the last file, which can use what the others define; the
# second prepares each query of all files under its name, so that EXPLAIN EXECUTE shows
# its plan.  In a file:
#
#	-- name: NAME		A query, up to the next of these lines.
#	-- cte: NAME(COLUMNS)	A query that others use: WITH is put before them.
#	-- with: NAME, ...	The CTEs that a query or CTE uses, beside those that it has.
#	-- list: NAME SNIPPET	Queries whose rows are put together by a snippet, of which
#				each begins with "-- entry:", "-- hint: VALUE", or
#				"-- notice: VALUE | VALUE".  Its number and the values are
#				put before its columns.
#	-- snippet: NAME(A, B)	SQL that {NAME(x, y)} stands for, with x in place of {A}.
#	-- parameters: TYPES	Those of the queries that follow, to prepare them; those of the
#				first file are for all.
#
# "--   " continues such a line.  Others that begin with "--" are comments.  It is for any awk that knows POSIX.

function fail(message)
{
	print (at_end == "" ? FILENAME ":" FNR : at_end) ": " message | "cat 1>&2"
	failed = 1
	exit 1
}

function trim(text)
{
	gsub(/^[ \t\n]+|[ \t\n]+$/, "", text)
	return text
}

function quote(text)
{
	gsub(/'/, "''", text)
	return "'" text "'"
}

# Replace a text wherever it is; gsub() would give & and \ another meaning.
function replace(text, old, new,    at, done)
{
	while ((at = index(text, old)) > 0)
	{
		done = done substr(text, 1, at - 1) new
		text = substr(text, at + length(old))
	}
	return done text
}

# Split a list at its commas, but not in quotes or parentheses.  Returns how many
# values it has; end is where the parenthesis that closes it is, or 0.
function split_list(text, values,    i, n, c, depth, quoted)
{
	n = 1
	values[n] = ""
	end = 0
	for (i = 1; i <= length(text); i++)
	{
		c = substr(text, i, 1)
		if (c == "'")
			quoted = !quoted
		else if (!quoted && c == "(")
			depth++
		else if (!quoted && c == ")" && depth-- == 0)
		{
			end = i
			break
		}
		else if (!quoted && c == "," && depth == 0)
		{
			values[++n] = ""
			continue
		}
		values[n] = values[n] c
	}
	for (i = 1; i <= n; i++)
		values[i] = trim(values[i])
	return n
}

# Put in the snippets.
function expand(text,    at, rest, name, n, values, names, i, sql, done)
{
	while (match(text, /[{][a-z_]+[(}]/) > 0)
	{
		at = RSTART
		name = substr(text, at + 1, RLENGTH - 2)
		rest = substr(text, at + RLENGTH)
		if (!(name in snippet))
			fail("no snippet " name)
		sql = snippet[name]
		if (substr(text, at + RLENGTH - 1, 1) == "(")
		{
			n = split_list(rest, values)
			if (end == 0 || substr(rest, end + 1, 1) != "}")
				fail("snippet " name " has no end")
			rest = substr(rest, end + 2)
			if (split_list(parameters_of[name], names) != n)
				fail("snippet " name " has other parameters")
			for (i = 1; i <= n; i++)
				sql = replace(sql, "{" names[i] "}", values[i])
		}
		done = done substr(text, 1, at - 1)
		text = sql rest
	}
	return done text
}

# The CTEs that are needed, each after those that it uses.
function ctes_of(list,    n, names, i, text)
{
	n = split(list, names, /, */)
	for (i = 1; i <= n; i++)
	{
		if (names[i] in used)
			continue
		if (!(names[i] in cte))
			fail("no CTE " names[i])
		used[names[i]] = 1
		text = text ctes_of(cte_uses[names[i]])
		text = text head[names[i]] " (\n" cte[names[i]] "),\n"
	}
	return text
}

# The whole text of a query: its own CTEs follow the others.
function query_of(body, list,    text)
{
	split("", used)
	text = ctes_of(list)
	if (text != "")
	{
		if (!sub(/^WITH (RECURSIVE )?/, "", body))
			sub(/,\n$/, "\n", text)
		text = "WITH RECURSIVE " text
	}
	return expand(text body)
}

function write(name, text,    types, lines, n, i)
{
	if (prepare)
	{
		types = types_of[name]
		printf "PREPARE %s%s AS\n%s;\n", name, types == "" ? "" : "(" types ")", text
		return
	}
	text = replace(text, "\\", "\\\\")
	text = replace(text, "\"", "\\\"")
	n = split(text, lines, "\n")
	printf "\nstatic const char sql_%s[] =", name
	for (i = 1; i <= n; i++)
		printf "\n\"%s%s\"", lines[i], i < n ? "\\n" : ""
	print ";"
}

# A query of a list is complete.
function end_entry(    n, values, i)
{
	if (!in_entry)
		return
	n = split(entry, values, / *[|] */)
	list = list (nentries++ > 0 ? "\nUNION ALL\n" : "") "SELECT " nentries
	for (i = 1; i <= n; i++)
		list = list ", " quote(values[i])
	list = list ", o.* FROM (\n" trim_query(body) ") o"
	entry = body = ""
	in_entry = 0
}

function trim_query(text)
{
	text = trim(text)
	sub(/;$/, "", text)
	return text
}

# A query, CTE, or snippet is complete.
function end_block()
{
	if (kind == "list")
	{
		end_entry()
		body = replace(snippet[around], "{entries}", list)
	}
	body = trim_query(body)
	if (kind == "cte")
	{
		cte[name] = body
		cte_uses[name] = uses
	}
	else if (kind == "snippet")
		snippet[name] = body
	else if (kind != "" && (is_last || prepare))
	{
		queries[++nqueries] = name
		query[name] = body
		query_uses[name] = uses
		types_of[name] = types
	}
	kind = body = list = ""
	nentries = 0
}

function begin_block(what, title)
{
	end_block()
	kind = what
	name = title
	sub(/[ (].*/, "", name)
	uses = ""
	if (kind == "cte")
	{
		head[name] = title
		if (!sub(/ materialized$/, " AS MATERIALIZED", head[name]))
			head[name] = head[name] " AS"
	}
	else if (kind == "snippet" && match(title, /[(].*[)]/))
		parameters_of[name] = substr(title, RSTART + 1, RLENGTH - 2)
	else if (kind == "list")
	{
		around = title
		sub(/.* /, "", around)
		if (!(around in snippet))
			fail("no snippet " around)
	}
}

FNR == 1 {
	end_block()
	if (++nfiles == 2)
		default_types = types
	types = default_types
	is_last = nfiles == ARGC - 1
}

is_last && FNR == 1 && !prepare {
	n = split(FILENAME, path, "/")
	print "/* Made from " path[n] " by generate.awk. */"
}

/^--   / && continued == "types" {
	types = types " " trim(substr($0, 3))
	next
}

/^--   / && continued == "uses" {
	uses = uses " " trim(substr($0, 3))
	next
}

/^--   / && continued == "entry" {
	entry = entry " " trim(substr($0, 3))
	next
}

{
	continued = ""
}

/^-- (name|cte|list|snippet): / {
	begin_block(substr($2, 1, length($2) - 1), substr($0, index($0, ": ") + 2))
	next
}

/^-- with: / {
	uses = substr($0, 10)
	continued = "uses"
	next
}

/^-- parameters:/ {
	end_block()
	types = trim(substr($0, 15))
	continued = "types"
	next
}

/^-- (entry|hint|notice):/ && kind == "list" {
	end_entry()
	entry = trim(substr($0, index($0, ":") + 1))
	in_entry = 1
	continued = "entry"
	next
}

/^ *--/ || /^ *$/ {
	next
}

kind != "" {
	body = body $0 "\n"
	next
}

{
	fail("no name for " $0)
}

END {
	if (failed)
		exit 1
	end_block()
	for (i = 1; i <= nqueries; i++)
	{
		at_end = FILENAME ", " queries[i]
		write(queries[i], query_of(query[queries[i]], query_uses[queries[i]]))
	}
}
