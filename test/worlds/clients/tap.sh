# TAP for the tests of clients that are shell scripts: sourced by them.
# shellcheck shell=bash

tap_count=0
tap_failed=0

# Is what we got what was expected?
is()
{
	tap_count=$((tap_count + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $tap_count - $3"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_count - $3"
		printf '%s\n' "got: $1" "expected: $2" | sed 's/^/# /'
	fi
}

# Does a command succeed?  Its output is shown if not.
succeeds()
{
	local name=$1 log status=0
	shift
	log=$("$@" 2>&1) || status=$?
	[ "$status" -eq 0 ] || printf '%s\n' "$log" | sed 's/^/# /'
	is "$status" 0 "$name"
}

# Take up the TAP of a program as that of one test each.
takes()
{
	local name=$1 line log status=0
	shift
	log=$("$@" 2>&1) || status=$?
	while IFS= read -r line; do
		case $line in
			'ok '*) is 1 1 "$name: ${line#ok * - }" ;;
			'not ok '*) is 0 1 "$name: ${line#not ok * - }" ;;
			1..*) ;;
			*) echo "# $line" ;;
		esac
	done <<<"$log"
	is "$status" 0 "$name: to its end"
}

# In a folder of Node's: the packages that script/tests/clients has fetched.
node_packages()
{
	ln -s /srv/npm/node_modules .
	cp "$TESTS/../tap.mjs" .
	echo '{ "type": "module" }' >package.json
}

# A file of which the page shows a part: a template, with the part at its line "PAGE".
fill()
{
	sed -e "/PAGE/{r $2" -e 'd}' "$1"
}

sql()
{
	psql -AtqX -v ON_ERROR_STOP=1 -c "$1"
}

# A database whose new tables get snowflake sequences, of which the client knows nothing.
use_sequences()
{
	export PGDATABASE=${PGDATABASE}_sequences DATABASE_URL=${DATABASE_URL}_sequences
	createdb "$PGDATABASE"
	psql -qX -U postgres -c 'CREATE EXTENSION snowflake' \
		-c "ALTER DATABASE $PGDATABASE SET snowflake.default_sequence_kind = snowflake" >/dev/null
}

finish()
{
	echo "1..$tap_count"
	[ "$tap_failed" -eq 0 ]
}
