# Builds of the extension for tests, and copies of the checkout that tests run in;
# sourced after common.sh.  A step that fails ends its function also where "set -e" is
# without effect, that is, in a condition.
#
# A script of script/ or script/tests that needs servers makes a copy of the
# checkout, which the user of the servers can reach, and runs one of
# script/lib/in_copy there, as that user.

# Absolute, because a build is not in the current directory, and as a private
# installation, which comes first in the path, has one that reports itself.
absolute_pg_config()
{
	PG_CONFIG=$(command -v "$PG_CONFIG") || die "there is no $PG_CONFIG"
	export PG_CONFIG
}

# What the compilers are told: warnings are errors.  The server's headers count as
# the system's, whose warnings are not ours; a parameter that a hook or a function
# does not use belongs to its signature.
warnings()
{
	echo "-Wall -Wextra -Werror -Wno-unused-parameter" \
		"-isystem $("$PG_CONFIG" --includedir-server)"
}

# Compile the source in $1, in a folder below $2, by what changed there since the last
# time: with the server's compiler, and the bitcode with the clang that the server's own
# was made with, where it is there.
compile()
(
	clang=$(sed -n 's/^CLANG[[:space:]]*= *//p' \
		"$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
	mkdir -p "$2/main"
	cd "$2/main"
	make -s -j "$(nproc)" -f "$1/Makefile" COPT="$(warnings)" \
		CLANG="$clang $(warnings) -Wno-unknown-warning-option"
)

# Install what compile made below the directory $3, and the extension of test/api,
# which uses the C interface by the header as it was installed.
install_compiled()
(
	cd "$2/main"
	make -s -f "$1/Makefile" install DESTDIR="$3" >/dev/null || exit
	mkdir -p "$2/example"
	cd "$2/example"
	# Its Makefile does not know that header.
	[ -z "$(find "$1/src/snowflake_api.h" -newer snowflake_example.o 2>&1)" ] ||
		rm -f snowflake_example.*
	make -s -f "$1/test/api/Makefile" COPT="$(warnings)" \
		PG_CPPFLAGS="-I$3$("$PG_CONFIG" --includedir-server)" || exit
	make -s -f "$1/test/api/Makefile" install DESTDIR="$3" >/dev/null
)

# Have in the folder $1 what is compiled of the checkout.  A file that is the same
# stays as it is, because make goes by the times of files.
update_source()
(
	mkdir -p "$1"
	new=$(mktemp -d)
	trap 'rm -rf "$new" "$new.list"' EXIT
	checkout_files | grep -E '^(Makefile|[^/]*\.(control|sql)|(src|shared|test/api)/.*)$' >"$new.list"
	checkout_files | grep -E '^(registry|registry_client|convert|keys)/' |
		grep -vE '^[^/]*/(sql|expected|test)/' >>"$new.list"
	copy_files "$new" <"$new.list" || exit
	changes=$(LC_ALL=C diff -rq "$1" "$new" 2>&1) || true
	if printf '%s\n' "$changes" | grep -q "^Only in $1"; then
		# What was made of a file that is gone, goes, too.
		rm -rf "$1" "${1%/*}/main" "${1%/*}/example"
		mv "$new" "$1"
	elif [ -n "$changes" ]; then
		cd "$new"
		find . -type f | while IFS= read -r file; do
			cmp -s "$file" "$1/$file" && continue
			mkdir -p "$1/${file%/*}"
			cat "$file" >"$1/$file"
		done
	fi
)

# Can the user keep a build in the checkout?
can_keep_build()
{
	is_plain "$top" &&
		mkdir -p "$top/.build/check" 2>/dev/null && [ -w "$top/.build/check" ]
}

# Build the checkout in a folder of .build/check, which is kept for the next time, one
# for each user, PostgreSQL and way to build, and set $kept to it.  Another run waits
# until release_build.
keep_build()
{
	absolute_pg_config
	kept=$top/.build/check/$({
		id -u
		"$PG_CONFIG"
		cat "$top/Makefile" "$top/script/lib/build.sh"
	} | cksum | tr ' ' -)
	mkdir -p "$kept"
	exec 8>"$kept/lock"
	flock 8
	update_source "$kept/source" && compile "$kept/source" "$kept" 8>&-
}

release_build()
{
	exec 8>&-
}

# End what still runs in a folder, or is a program there, such as tests and their servers
# after an interruption.
end_processes()
{
	for signal in TERM QUIT KILL; do
		for try in $(seq 50); do
			# Other processes end meanwhile.
			left=$(find /proc/[0-9]*/exe /proc/[0-9]*/cwd -maxdepth 0 -lname "$1*" 2>/dev/null || true)
			left=$(printf '%s\n' "$left" | cut -d/ -f3 | sort -u)
			[ -n "$left" ] || return 0
			# shellcheck disable=SC2086
			[ "$try" -ne 1 ] || kill -s "$signal" $left 2>/dev/null || true
			# shellcheck disable=SC2086
			kill -s CONT $left 2>/dev/null || true
			sleep 0.1
		done
	done
}

# Run a script in a copy of the checkout, as the user of the servers.  The copy goes
# away, but for the folder that $keep names, which is copied back, unless the script fails:
# then it has the logs, which stay until script/check runs again.  Nothing runs there
# afterwards, and nothing stays of what was interrupted, or whose output was closed.
# With $build_in_copy it is built there, otherwise before, if make can build in the checkout.
run_in_copy()
(
	temporary=${TMPDIR:-/tmp}
	is_plain "$temporary" || temporary=/tmp
	copy=$(mktemp -d "$temporary/snowflake.XXXXXX")
	trap 'cd "$top"; end_processes "$copy"; rm -rf "$copy"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	trap 'exit 141' PIPE
	copy_checkout "$copy"
	mkdir -p "$copy/tmp_check"
	failed_before=
	if [ -z "${build_in_copy:-}" ] && can_keep_build; then
		say "building with $("$PG_CONFIG" --version)"
		with_progress building keep_build &&
			install_compiled "$kept/source" "$kept" "$copy/tmp_check/install" || exit
		release_build
		[ "$1" != script/lib/in_copy/check ] || failed_before=$kept/failed
	fi
	forget_failed

	[ "$(id -u)" -ne 0 ] || chown -R "$server_user": "$copy"
	cd "$copy"
	status=0
	as_server_user env PG_CONFIG="$PG_CONFIG" VERBOSE="${VERBOSE:-}" JOBS="${JOBS:-}" "$@" ||
		status=$?
	if [ "$status" -eq 0 ]; then
		[ -z "${keep:-}" ] || cp -R "$copy/$keep/." "$top/$keep/"
	elif [ "$status" -lt 128 ]; then
		trap 'cd "$top"; end_processes "$copy"' EXIT
		[ -z "$failed_before" ] || printf '%s\n' "$copy" >>"$failed_before"
	fi
	exit "$status"
)

# Remove the copies of runs of script/check that failed before.
forget_failed()
{
	[ -n "$failed_before" ] && [ -e "$failed_before" ] || return 0
	while IFS= read -r old; do
		case $old in
			*/snowflake.??????) rm -rf "$old" ;;
		esac
	done <"$failed_before"
	rm -f "$failed_before"
}

# In the copy: install the extension privately, and set the environment that the
# tests expect.
build_for_tests()
{
	cd "$top"
	absolute_pg_config
	if [ ! -d tmp_check/install ]; then
		mkdir -p tmp_check
		say "building with $("$PG_CONFIG" --version)"
		with_progress building compile "$top" "$top/tmp_check/build" &&
			install_compiled "$top" "$top/tmp_check/build" "$top/tmp_check/install" || exit
	fi
	private_server "$top/tmp_check/install" "$PG_CONFIG"

	bindir=$top/tmp_check/install$("$PG_CONFIG" --bindir)
	tests=$(cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../test" && pwd -P)
	export PATH="$bindir:$PATH"
	export PG_REGRESS="$tests/regress/pg_regress"
	export TESTDIR="$top" TESTDATADIR="$top/tmp_check" TESTLOGDIR="$top/tmp_check/log"
	# PostgreSQL's tests remove LC_ALL: what else is set would have psql write 0,5 ms.
	unset LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME
	export LC_ALL=C LANG=C TZ=UTC
	# A busy machine may need more than a minute to start or stop a server.
	export PGCTLTIMEOUT=180
	unset PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS PGSERVICE PGPASSFILE
	# Directories of sockets go with the copy; their names may have 107 bytes.
	if [ "${#top}" -lt 60 ]; then
		mkdir -p tmp_check/tmp
		export TMPDIR="$top/tmp_check/tmp"
	fi
}

# Have the data of the tests' servers in memory, because they make and remove files by the
# thousand: for one run at a time, on a machine that has plenty.  The logs are in the copy.
use_memory()
{
	memory=/dev/shm/snowflake.$(id -u)
	[ -z "${PG_TEST_NOCLEAN:-}" ] && [ -w /dev/shm ] && [ "$(awk '/^MemAvailable:/ { print int($2 / 1024 / 1024) }' /proc/meminfo)" -ge "$1" ] &&
		[ "$(df -Pk /dev/shm | awk 'NR == 2 { print int($4 / 1024 / 1024) }')" -ge "$1" ] &&
		mkdir -p "$memory" 2>/dev/null && [ -O "$memory" ] && [ ! -L "$memory" ] || return 0
	exec 6>"$memory/lock"
	flock -n 6 || return 0
	# What a run left that was killed.
	rm -rf "$memory/tmp_check"
	mkdir "$memory/tmp_check"
	trap 'rm -rf "$memory/tmp_check"' EXIT
	# Tests have servers load what they compile there.
	if ! { cp /bin/true "$memory/tmp_check/true" && "$memory/tmp_check/true"; } 2>/dev/null; then
		return 0
	fi
	# Before PostgreSQL 16, the data is in a folder of this name, and has the logs.
	mkdir -p "$top/tmp_check/log"
	ln -s "$top/tmp_check/log" "$memory/tmp_check/log"
	export TESTDIR="$memory" TESTDATADIR="$memory/tmp_check"
}

# Have initdb copy what it made once.  Without JIT, which would compile the queries of
# catalogs that a conversion runs in each session again.
use_template()
{
	export PG_TEMPLATE="$TESTDATADIR/template"
	"$bindir/initdb" -N -A trust -D "$PG_TEMPLATE" >"$top/tmp_check/initdb.log"
	echo 'jit = off' >>"$PG_TEMPLATE/postgresql.conf"
	mv "$bindir/initdb" "$bindir/initdb-program"
	cp script/lib/initdb.pl "$bindir/initdb"
}
