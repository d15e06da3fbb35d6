# Turns files of queries into C.
#
#	awk -f generate.awk FILE... >texts.sql.h
#	awk -v names=1 -f generate.awk FILE... >names.sql.h
#	awk -v prepare=1 -f generate.awk FILE...
#
# The first has the texts of which queries.c, which says how they are marked, puts a query
# together: snippets and CTEs, and each query after those that it uses.  The second has the names of
# parameters and queries, sql_NAME.  The third prepares each query under its name, so that EXPLAIN
# EXECUTE shows its plan: "make -s -C convert prepare" writes that of all files, for psql after SET
# search_path = pg_catalog.  In a file:
#
#	-- name: NAME		A query, up to the next of these lines.
#	-- cte: NAME(COLUMNS)	A query that others use by its name, after FROM or JOIN: "union" or
#				"materialized" after the columns says that it is the UNION ALL of
#				queries that begin with SELECT at the beginning of a line, or
#				AS MATERIALIZED.
#	-- list: NAME SNIPPET	Queries that a snippet puts together, of which each begins with
#				"-- hint: VALUE" or "-- notice: VALUE | VALUE".  It is an
#				argument of the snippet hint or notice, after its number and
#				the values.  It may be such a union.
#	-- snippet: NAME(A, B)	SQL that {NAME(x, y)} stands for, with x in place of {A}.  The
#				last argument may have commas.
#	-- parameters: NAME TYPE, ...
#				Those that queries.c knows, and queries have as $NAME.
#	-- texts: NAME, ...	Those that callers of the queries that follow in the file give,
#				in this order.
#
# "--   " continues such a line.  Others that begin with "--" are comments.  For files after
# "set=NAME", a CTE of theirs goes before one of that name in others.  This is for any awk that knows
# POSIX.

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

# Split a list at its commas, but not in quotes or parentheses, nor behind the most values that it
# can have.  Returns how many it has; end is where the parenthesis that closes it is, or 0.
function split_list(text, values, most,    i, n, c, depth, quoted)
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
		else if (!quoted && c == "," && depth == 0 && n != most)
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

# Put in the snippets, or their numbers with the arguments.
function expand(text, whole,    at, rest, name, n, values, names, i, sql, done)
{
	while (match(text, /[{][a-z_]+[(}]/) > 0)
	{
		at = RSTART
		name = substr(text, at + 1, RLENGTH - 2)
		rest = substr(text, at + RLENGTH)
		if (!(name in snippet))
			fail("no snippet " name)
		sql = whole ? raw_of[snippet[name]] : sprintf("\\002\\%03o", piece_of[snippet[name]])
		if (substr(text, at + RLENGTH - 1, 1) == "(")
		{
			n = split_list(arguments_of[name], names)
			i = split_list(rest, values, n)
			if (end == 0 || substr(rest, end + 1, 1) != "}")
				fail("snippet " name " has no end")
			rest = substr(rest, end + 2)
			if (i != n)
				fail("snippet " name " has other arguments")
			for (i = 1; i <= n; i++)
				sql = whole ? replace(sql, "{" names[i] "}", values[i]) : sql values[i] "\\003"
		}
		done = done substr(text, 1, at - 1)
		text = sql (whole ? "" : "\\004") rest
	}
	return done text
}

# Note the CTEs that a text uses, each after those that it uses.
function note_uses(text, set,    name, id)
{
	while (match(text, /(FROM|JOIN)[ \n]+[a-z_]+/) > 0)
	{
		name = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		sub(/.*[ \n]/, "", name)
		id = (set, name) in cte ? cte[set, name] : cte["", name]
		if (id == "" || (name in own) || (id in used))
			continue
		used[id] = 1
		note_uses(body_of[id], set)
		uses[++nuses] = id
	}
}

# Note those of a query, but none with the name of one that it has itself.
function note_all_uses(id,    text, name)
{
	split("", own)
	split("", used)
	nuses = 0
	text = body_of[id]
	while (match(text, /[a-z_]+([(][a-z_, ]*[)])? AS (MATERIALIZED )?[(]/) > 0)
	{
		name = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		sub(/[( ].*/, "", name)
		own[name] = 1
	}
	note_uses(body_of[id], set_of[id])
}

# What follows the CTEs: its own ones, or only the query.
function after_ctes(text)
{
	if (nuses > 0)
		text = (sub(/^WITH (RECURSIVE )?/, "", text) ? "," : "") "\n" text
	return text
}

# Put in the numbers of the parameters that callers give, and of all to prepare a query.  Those that
# queries.c numbers are marked.
function number(text, given,    name, n, done)
{
	while (match(text, /[ (\[\n][$][a-z_]+/) > 0)
	{
		name = substr(text, RSTART + 2, RLENGTH - 2)
		if (given > 0 && (given, name) in parameter)
			n = "$" parameter[given, name]
		else if ((0, name) in parameter)
			n = sprintf(prepare ? "$%d" : "\\001\\%03o", parameter[0, name])
		else
			fail("no parameter " name)
		done = done substr(text, 1, RSTART) n
		text = substr(text, RSTART + RLENGTH)
	}
	return done text
}

# A text as a constant, a query's with the numbers of its CTEs before it.
function print_text(text, id,    lines, n, i, marks)
{
	text = replace(text, "\\", "\\\\")
	text = number(replace(text, "\"", "\\\""), given_of[id])
	if (kind_of[id] == "snippet")
	{
		n = split_list(arguments_of[name_of[id]], lines)
		for (i = 1; i <= n; i++)
			text = replace(text, "{" lines[i] "}", sprintf("\\005\\%03o", i))
	}
	else if (is_query(id))
	{
		for (i = 1; i <= nuses; i++)
			marks = marks sprintf("\\%03o", piece_of[uses[i]])
		marks = marks "\\004"
	}
	n = split(marks expand(text, 0), lines, "\n")
	for (i = 1; i <= n; i++)
	{
		sub(/^ +/, "", lines[i])
		printf "\n\"%s%s\"", lines[i], (i < n ? "\\n" : "\\0")
	}
}

function is_query(id)
{
	return kind_of[id] != "snippet" && kind_of[id] != "cte"
}

function print_prepared(    id, text, i)
{
	for (id = 1; id <= nblocks; id++)
	{
		if (!is_query(id))
			continue
		at_end = file_of[id] ", " name_of[id]
		note_all_uses(id)
		text = nuses > 0 ? "WITH RECURSIVE " : ""
		for (i = 1; i <= nuses; i++)
			text = text (i > 1 ? ",\n" : "") body_of[uses[i]]
		text = number(text after_ctes(body_of[id]), given_of[id])
		printf "PREPARE %s%s AS\n%s;\n", name_of[id], "(" types_of[given_of[id]] ")", text
	}
}

function print_names(    id)
{
	print "/* Made by generate.awk. */\n\ntypedef enum SnowflakeParameter\n{\n\tno_parameter" parameters ","
	print "\tSNOWFLAKE_PARAMETERS\n}\tSnowflakeParameter;\n\ntypedef enum SnowflakeQuery\n{"
	for (id = 1; id <= nblocks; id++)
		if (is_query(id))
			print "\tsql_" name_of[id] ","
	print "\tSNOWFLAKE_QUERIES\n}\tSnowflakeQuery;"
}

function print_texts(    id, queries)
{
	print "/* Made by generate.awk. */"
	print "\nstatic const Oid parameter_types[] = {\n\tInvalidOid" oids "\n};"
	print "\nenum\n{\n\tfirst_piece = " first_piece ",\n\tnpieces = " npieces "\n};"
	printf "\nstatic const char all_texts[] ="
	for (queries = 0; queries <= 1; queries++)
		for (id = 1; id <= nblocks; id++)
			if (is_query(id) == queries)
			{
				at_end = file_of[id] ", " name_of[id]
				note_all_uses(id)
				printf "\n/* %s */", name_of[id]
				print_text(queries ? after_ctes(raw_of[id]) : raw_of[id], id)
			}
	print ";"
}

function trim_query(text)
{
	text = trim(text)
	sub(/;$/, "", text)
	return text
}

# A query of a list is complete.
function end_entry(    n, values, i)
{
	if (!in_entry)
		return
	n = split(entry, values, / *[|] */)
	list = list (nentries++ > 0 ? "\nUNION ALL\n" : "") "{" entry_kind "(" nentries
	for (i = 1; i <= n; i++)
		list = list ", " quote(values[i])
	list = list ", " trim_query(body) ")}"
	entry = body = ""
	in_entry = 0
}

# Note parameters: those of queries.c, which have a type, or texts of callers, in a list of their own.
function end_parameters(    n, i, values, word)
{
	n = split_list(body, values)
	if (kind == "texts")
		given = ++nlists
	for (i = 1; i <= n && body != ""; i++)
	{
		split(values[i], word, " ")
		parameter[given, word[1]] = ++nparameters[given]
		types_of[given] = types_of[given] (nparameters[given] > 1 ? ", " : "") \
			(given == 0 ? word[2] : "text")
		if (given > 0)
			continue
		parameters = parameters ",\n\tparameter_" word[1]
		sub(/\[\]/, "array", word[2])
		oids = oids ",\n\t[parameter_" word[1] "] = " toupper(word[2]) "OID"
	}
}

# A query, CTE, snippet, or list of parameters is complete.
function end_block()
{
	end_entry()
	if (kind == "parameters" || kind == "texts")
		end_parameters()
	else if (kind != "")
	{
		kind_of[++nblocks] = kind
		name_of[nblocks] = name
		file_of[nblocks] = file
		set_of[nblocks] = set_then
		given_of[nblocks] = given
		raw_of[nblocks] = (kind == "list" ? "{" around "(" list ")}" : trim_query(body)) \
			(kind == "cte" ? ")" : "")
		if (kind == "cte")
			cte[set_then, name] = nblocks
		else if (kind == "snippet")
			snippet[name] = nblocks
		if (!is_query(nblocks))
			piece_of[nblocks] = first_piece + npieces++
	}
	kind = body = list = around = ""
	nentries = 0
}

function begin_block(what, title)
{
	end_block()
	kind = what
	name = title
	file = FILENAME
	set_then = set
	sub(/[ (].*/, "", name)
	in_union = kind == "cte" && sub(/ union$/, "", title)
	if (kind == "cte")
	{
		if (!sub(/ materialized$/, " AS MATERIALIZED", title))
			title = title " AS"
		body = title " (\n"
	}
	else if (kind == "snippet" && match(title, /[(].*[)]/))
		arguments_of[name] = substr(title, RSTART + 1, RLENGTH - 2)
	else if (kind == "list")
	{
		around = title
		sub(/.* /, "", around)
	}
	else if (kind == "parameters" || kind == "texts")
		body = title
}

# Is what begins with SELECT the next query of a union, or of an entry of a list?
function is_next()
{
	return kind == "list" ? body ~ /^SELECT/ : in_union && body !~ /[(]\n$/
}

# Put in the snippets, of which some may be in files after those that have them.
function expand_all(    id)
{
	for (id = 1; id <= nblocks; id++)
	{
		at_end = file_of[id] ", " name_of[id]
		if (kind_of[id] != "snippet")
			body_of[id] = expand(raw_of[id], 1)
	}
}

BEGIN {
	first_piece = 6		# after the marks
}

FNR == 1 {
	end_block()
	given = 0
}

/^--   / && continued == "entry" {
	entry = entry " " trim(substr($0, 3))
	next
}

/^--   / && continued == "parameters" {
	body = body " " trim(substr($0, 3))
	next
}

{
	continued = ""
}

/^-- (name|cte|list|snippet|parameters|texts):/ {
	begin_block(substr($2, 1, length($2) - 1), trim(substr($0, index($0, ":") + 1)))
	continued = kind == "texts" ? "parameters" : kind
	next
}

/^-- (hint|notice):/ && kind == "list" {
	end_entry()
	entry_kind = substr($2, 1, length($2) - 1)
	entry = trim(substr($0, index($0, ":") + 1))
	in_entry = 1
	continued = "entry"
	next
}

/^ *--/ || /^ *$/ {
	next
}

kind != "" && kind != "parameters" && kind != "texts" {
	body = body (/^SELECT/ && is_next() ? "UNION ALL\n" : "") $0 "\n"
	next
}

{
	fail("no name for " $0)
}

END {
	if (failed)
		exit 1
	end_block()
	expand_all()
	if (prepare)
		print_prepared()
	else if (names)
		print_names()
	else
		print_texts()
}
