# What the scripts share; sourced by them, with $top set to the checkout.

PG_CONFIG=${PG_CONFIG:-pg_config}

# The user that servers run as where the scripts are run by root.
server_user=postgres

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Are all of these commands there?
have_commands()
{
	for command in "$@"; do
		command -v "$command" >/dev/null 2>&1 || return
	done
}

# Are a PostgreSQL server and what an extension is built with there?
have_postgres()
{
	have_commands make cc "$PG_CONFIG" &&
		[ -f "$("$PG_CONFIG" --pgxs 2>/dev/null)" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/postgres" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/pgbench" ]
}

# Are the tools of the tests there too?
have_test_tools()
{
	have_commands prove faketime && perl -MIPC::Run -MTest::More -e 1 2>/dev/null
}

# Run apt-get as root, or with sudo, but not while another script does, which
# would be an error.
run_apt_get()
{
	exec 9</var/lib/dpkg
	flock 9
	status=0
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" 9<&- || status=$?
	exec 9<&-
	return "$status"
}

# Have the list of packages up to date, once: as root, or with sudo.
update_packages()
{
	[ -z "${packages_updated:-}" ] || return 0
	have_commands apt-get || die "please install: $*"
	as_root=
	if [ "$(id -u)" -ne 0 ]; then
		have_commands sudo || die "please have an administrator install: $*"
		as_root=sudo
	fi
	say "updating the list of packages"
	run_apt_get update || die "could not update the list of packages"
	packages_updated=yes
}

# Install Debian packages.
install_packages()
{
	update_packages "$@"
	say "installing: $*"
	run_apt_get install -y --no-install-recommends "$@" >/dev/null ||
		die "could not install: $*"
}

# Install what is missing of PostgreSQL, the compiler and, with "tests", the
# tools of the tests.
install_missing()
{
	if have_postgres && { [ "${1:-}" != tests ] || have_test_tools; }; then
		return
	fi
	update_packages "a C compiler, make," \
		"PostgreSQL 15 or later with its server headers (pg_config in the PATH or" \
		"in \$PG_CONFIG)${1:+, Perl with IPC::Run and Test::More, and faketime}"

	if ! have_postgres; then
		major=$(apt-cache depends postgresql |
			sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1)
		[ -n "$major" ] || die "there is no package for PostgreSQL"
		install_packages gcc make "postgresql-$major" "postgresql-server-dev-$major"
		have_postgres || die "PostgreSQL was installed, but $PG_CONFIG does not find it"
	fi
	if [ "${1:-}" = tests ] && ! have_test_tools; then
		install_packages perl libipc-run-perl faketime
	fi
}

# Run a command as the user that servers run as: this one, unless that is
# root.
as_server_user()
{
	if [ "$(id -u)" -eq 0 ]; then
		runuser -u "$server_user" -- "$@"
	else
		"$@"
	fi
}

# Where the user of the servers can reach a directory.
server_user_reaches()
{
	as_server_user test -x "$1"
}

# Make, below a directory that has the extension already, a private installation
# of the PostgreSQL that a pg_config tells of: programs are copied, as they find
# the rest relative to themselves; the rest are links.
private_server()
(
	prefix=$1
	bindir=$("$2" --bindir)
	pkglibdir=$("$2" --pkglibdir)
	sharedir=$("$2" --sharedir)
	mkdir -p "$prefix$bindir"
	cp --remove-destination "$bindir"/* "$prefix$bindir"
	for dir in "$pkglibdir" "$sharedir" "$sharedir/extension"; do
		mkdir -p "$prefix$dir"
		for file in "$dir"/*; do
			# What the build forgets to install must not come from elsewhere.
			case ${file##*/} in
				snowflake.* | snowflake--*) continue ;;
			esac
			[ -e "$prefix$file" ] || ln -sf "$file" "$prefix$file"
		done
	done
)

# The same with this build of the extension.
private_install()
{
	make -s install DESTDIR="$1" >/dev/null
	private_server "$1" "$PG_CONFIG"
}

# Copy what belongs to the checkout into a directory.
copy_checkout()
(
	cd "$top"
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard |
			while IFS= read -r file; do
				[ ! -e "$file" ] || printf '%s\n' "$file"
			done | tar -c -T - | tar -x -C "$1"
	else
		tar -c --exclude=./.quickstart --exclude=./.build . | tar -x -C "$1"
	fi
)

# Run a script in a copy of what belongs to the checkout, that the user of the
# servers can reach, and as that user.  The copy goes away if it succeeds, but
# for the folder that $keep names, which is copied back.
run_in_copy()
(
	copy=$(mktemp -d "${TMPDIR:-/tmp}/snowflake.XXXXXX")
	copy_checkout "$copy"
	[ "$(id -u)" -ne 0 ] || chown -R "$server_user": "$copy"
	cd "$copy"
	if as_server_user env PG_CONFIG="$PG_CONFIG" VERBOSE="${VERBOSE:-}" \
		JOBS="${JOBS:-}" "$@"; then
		[ -z "${keep:-}" ] || cp -R "$copy/$keep/." "$top/$keep/"
		rm -rf "$copy"
	else
		status=$?
		echo "The logs are in $copy/tmp_check." >&2
		exit "$status"
	fi
)

# Build, with warnings as errors: first with the clang that the server's own
# bitcode was made with, where it is there, then with the server's compiler.
# The server's headers count as the system's, whose warnings are not ours; a
# parameter that a hook or a function does not use belongs to its signature.
build_strictly()
{
	warnings="-Wall -Wextra -Werror -Wno-unused-parameter"
	warnings="$warnings -isystem $("$PG_CONFIG" --includedir-server)"
	clang=$(sed -n 's/^CLANG[[:space:]]*= *//p' \
		"$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
	make -s clean
	if [ -n "$clang" ] && have_commands "$clang"; then
		# The flags are those of the server's compiler, which has others.
		make -s -j "$(nproc)" CC="$clang" with_llvm=no COPT="$warnings \
			-Wno-unknown-warning-option -Wno-ignored-optimization-argument \
			-Wno-unused-command-line-argument"
		make -s clean
	fi
	make -s -j "$(nproc)" COPT="$warnings"
}

# After build_for_tests: build and install the extension that uses the C
# interface, by the header as it was installed.
install_example()
(
	cd test/api
	make -s COPT="$warnings" \
		PG_CPPFLAGS="-I$top/tmp_check/install$("$PG_CONFIG" --includedir-server)"
	private_install "$top/tmp_check/install"
)

# In the copy: build, install that privately, and set the environment that the
# tests expect.
build_for_tests()
{
	cd "$top"
	rm -rf tmp_check
	mkdir tmp_check
	build_strictly
	private_install "$top/tmp_check/install"

	# Absolute, as the private installation, which comes first in the path, has
	# one that tells of itself.
	PG_CONFIG=$(command -v "$PG_CONFIG")
	export PG_CONFIG
	bindir=$top/tmp_check/install$("$PG_CONFIG" --bindir)
	tests=$(cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../test" && pwd -P)
	export PATH="$bindir:$PATH"
	export PG_REGRESS="$tests/regress/pg_regress"
	export TESTDIR="$top" TESTDATADIR="$top/tmp_check" TESTLOGDIR="$top/tmp_check/log"
	export LC_ALL=C TZ=UTC
	# A busy machine may need more than a minute to start or stop a server.
	export PGCTLTIMEOUT=180
	unset PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS PGSERVICE PGPASSFILE
}

# Lines of a test that passed or failed: of pg_regress before PostgreSQL 16, and
# since then as of prove.
test_passed='^test .*\.\.\. ok|^ok [0-9]+'
test_failed='^test .*\.\.\. FAILED|^not ok [0-9]+'
passed=0
failed=0

# Run a command with its output in tmp_check/NAME.out, show the output, and
# count by its lines what passed and failed; a command that fails without such
# a line, or tests nothing, counts as one failure.
count()
{
	log=tmp_check/$1.out
	status=0
	shift
	"$@" >"$log" 2>&1 || status=$?
	p=$(grep -cE "$test_passed" "$log" || true)
	f=$(grep -cE "$test_failed" "$log" || true)
	if [ "$f" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$p" -eq 0 ]; }; then
		f=1
	fi
	if [ "$f" -ne 0 ] || [ -n "${VERBOSE:-}" ]; then
		cat "$log"
		cat tmp_check/regression.diffs tmp_check/iso/regression.diffs \
			2>/dev/null || true
	else
		grep -vE '^(ok [0-9]|# |    )' "$log" || true
	fi
	passed=$((passed + p))
	failed=$((failed + f))
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

# The value of one of the Makefile's variables, as make reads it.
make_variable()
{
	make -s --no-print-directory --eval="print-$1: ; @echo \$($1)" "print-$1"
}

# After build_for_tests: count the tests of pg_regress that are named, or all.
count_regress()
{
	# shellcheck disable=SC2046
	[ $# -ne 0 ] || set -- $(make_variable REGRESS)
	count regress "$PG_REGRESS" --inputdir=. --outputdir=tmp_check \
		--bindir="$bindir" --dlpath=. --temp-instance=tmp_check/regress \
		--temp-config=test/regress.conf "$@"
}

# The same for isolation tests.
count_isolation()
{
	# shellcheck disable=SC2046
	[ $# -ne 0 ] || set -- $(make_variable ISOLATION)
	mkdir tmp_check/iso
	count isolation "$tests/isolation/pg_isolation_regress" --inputdir=test \
		--outputdir=tmp_check/iso --bindir="$bindir" \
		--temp-instance=tmp_check/isolation --temp-config=test/regress.conf "$@"
}
