# Runs of tests, and how many passed and failed; sourced after common.sh.

# Lines of a test that passed or failed: of pg_regress before PostgreSQL 16, and
# since then as of prove.  One that was skipped is neither.
test_passed='^test .*\.\.\. ok|^ok [0-9]+'
test_failed='^test .*\.\.\. FAILED|^not ok [0-9]+'
passed=0
failed=0

# Run a command with its output in tmp_check/NAME.out, show its progress, and count
# by its lines what passed and failed; a command that fails without such a line, or
# tests nothing, counts as one failure.  What failed is shown, with the logs to read.
# There are $tests_left tests or files, which are noted in the folder RUNNING, and then in
# PROCESSOR.
count()
{
	log=tmp_check/$1.out
	status=0
	shift
	export RUNNING="$top/tmp_check/running"
	export PROCESSOR="$top/tmp_check/processor"
	mkdir -p "$RUNNING" "$PROCESSOR"
	if [ -n "${VERBOSE:-}" ]; then
		"$@" 2>&1 | tee "$log" || status=$?
	else
		"$@" 2>&1 | tee "$log" | perl "$top/script/lib/progress.pl" "${tests_left:-1}" "$RUNNING" "$PROCESSOR" || status=$?
	fi
	# Without the log, which something else may have removed, nothing passed.
	p=$(grep -aE "$test_passed" "$log" | grep -avci '# skip' || true)
	f=$(grep -cE "$test_failed" "$log" || true)
	skipped=$(grep -ciE '^ok [0-9]+ # skip' "$log" || true)
	[ "${skipped:-0}" -eq 0 ] || say "$skipped tests were skipped: $(sed -nE 's/^ok [0-9]+ # skip //p' "$log" | sort -u | paste -sd,)"
	: "${p:=0}" "${f:=0}"
	if [ "$f" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$p" -eq 0 ]; }; then
		f=1
	fi
	[ "$f" -eq 0 ] || show_logs
	passed=$((passed + p))
	failed=$((failed + f))
}

# After a failure: the differences that pg_regress found in $diffs, what TAP tests died
# of, and which logs to read.
show_logs()
{
	[ ! -s "${diffs:-}" ] || cat "$diffs"
	names=$(sed -nE 's,^[^ ]*/([^ /]*)\.pl +\(Wstat: .*,\1,p' "$log")
	for name in $names; do
		grep -aE ' line [0-9]+\.$' "tmp_check/log/regress_log_$name" 2>/dev/null | tail -n 3 | sed "s/^/$name: /" || true
	done
	say "To find out why, read:"
	say "  $top/$log"
	for name in $names; do
		for file in tmp_check/log/regress_log_"$name" tmp_check/log/"$name"_*.log; do
			[ ! -e "$file" ] || say "  $top/$file"
		done
	done
	server_log=${diffs:+${diffs%/*}/log/postmaster.log}
	[ ! -e "${server_log:-}" ] || say "  $top/$server_log"
}

# Run a command that ends with "N passed, N failed", show the rest of its output,
# and add the numbers up; one without such a line counts as one test.  They are
# in $p and $f, too.  For scripts with "pipefail".
add_up()
{
	log=$(mktemp)
	status=0
	"$@" 2>&1 | tee "$log" | sed -u '/^[0-9]* passed, [0-9]* failed$/d' || status=$?
	p=$(sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p' "$log" | tail -n 1)
	f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p' "$log" | tail -n 1)
	rm -f "$log"
	: "${p:=$((status == 0))}" "${f:=$((status != 0))}"
	if [ "$f" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$p" -eq 0 ]; }; then
		f=1
	fi
	passed=$((passed + p))
	failed=$((failed + f))
}

# The last line of a script that counts, and its exit status.
conclude()
{
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

# The value of a variable of the Makefile in a folder, as make reads it.
make_variable()
{
	make -s --no-print-directory -C "${2:-.}" --eval="print-$1: ; @echo \$($1)" "print-$1"
}

# The folders that have tests of pg_regress.
regress_folders='. registry registry_client convert keys'

# After build_for_tests: count the tests of pg_regress that are named, FOLDER/NAME each.
count_regress()
{
	for folder in $regress_folders; do
		names=$(printf '%s\n' "$@" | sed -n "s|^$folder/||p")
		[ -n "$names" ] || continue
		say "pg_regress: $folder"
		output=tmp_check/regress/$folder
		mkdir -p "$output"
		diffs=$output/regression.diffs
		tests_left=$(printf "%s" "$names" | wc -w)
		config=--temp-config=test/regress.conf
		[ ! -e "$folder/regress.conf" ] || config="$config --temp-config=$folder/regress.conf"
		# shellcheck disable=SC2086
		count "regress.$folder" "$PG_REGRESS" --inputdir="$folder" --outputdir="$output" \
			--bindir="$bindir" --dlpath=. --temp-instance="$TESTDATADIR/regress.$folder" \
			$config $names
	done
}

# The names of all.
all_regress()
{
	for folder in $regress_folders; do
		for name in $(make_variable REGRESS "$folder"); do
			printf '%s\n' "$folder/$name"
		done
	done
}

# The same for isolation tests.
count_isolation()
{
	say "isolation tests"
	# shellcheck disable=SC2046
	[ $# -ne 0 ] || set -- $(make_variable ISOLATION)
	mkdir -p tmp_check/iso
	tests_left=$#
	diffs=tmp_check/iso/regression.diffs
	count isolation "$tests/isolation/pg_isolation_regress" --inputdir=test \
		--outputdir=tmp_check/iso --bindir="$bindir" \
		--temp-instance="$TESTDATADIR/isolation" --temp-config=test/regress.conf "$@"
}

# The same for files of TAP tests, of which JOBS run side by side: more than there are
# processors, because tests wait more than they work.
count_tap()
{
	jobs=${JOBS:-$((3 * $(nproc)))}
	say "TAP tests: $# files, $jobs side by side"
	tests_left=$#
	diffs=
	count tap prove -v --merge --timer -j "$jobs" \
		--exec "script/lib/run_file.pl perl -I $tests/perl -I $top/test/perl" "$@"
}
