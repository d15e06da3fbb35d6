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

# How to call the script: the first lines of its head comment that begin with a tab.
usage()
{
	awk '!/^#/ { exit } /^#\t/ { print substr($0, 2); found = 1; next } found { exit }' "$0"
}

# End because of an argument that is wrong, and say what is right.
refuse()
{
	printf '%s: %s\nusage:\n' "${0##*/}" "$1" >&2
	usage >&2
	exit 1
}

# What holds for all scripts that say how to call them: -h and --help print the head comment,
# and an option that they do not name is refused, as is any argument if they name none.
check_arguments()
{
	[ -f "$0" ] && [ -n "$(usage)" ] || return 0
	case ${1:-} in
		-h | --help)
			awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
			exit
			;;
		--) ;;
		-*)
			usage | tr -s '][ \t=|' '\n' | grep -xF -e "${1%%=*}" >/dev/null || refuse "no option $1"
			;;
	esac
	[ $# -eq 0 ] || usage | grep -F "${0##*/} " >/dev/null || refuse "it takes no arguments"
}
check_arguments "$@"

# Run a command, and say every 15 seconds what has not ended yet.
with_progress()
{
	perl -e '$| = 1; my $parent = getppid; for (my $s = 15; sleep 15 && getppid == $parent; $s += 15) { print "$ARGV[0]: $s s\n" }' "$1" 8>&- 9>&- &
	ticker=$!
	shift
	outcome=0
	"$@" || outcome=$?
	# Another signal is lost if it comes before the program has begun.
	kill -KILL "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null || true
	return "$outcome"
}

# Are all of these commands there?
have_commands()
{
	for command in "$@"; do
		command -v "$command" >/dev/null 2>&1 || return
	done
}

# Are a PostgreSQL server, its headers and its programs there?
have_server()
{
	have_commands "$PG_CONFIG" &&
		[ -f "$("$PG_CONFIG" --pgxs 2>/dev/null)" ] &&
		[ -f "$("$PG_CONFIG" --includedir-server)/postgres.h" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/postgres" ] &&
		[ -x "$("$PG_CONFIG" --bindir)/pgbench" ]
}

# Say what is missing of PostgreSQL, of what an extension is built with and, with "tests", of
# the tools of the tests.
missing()
{
	have_commands cc || say "a C compiler"
	have_commands make || say "make"
	have_server || say "PostgreSQL 15 or later with its server headers and pgbench" \
		"(pg_config in the PATH or in \$PG_CONFIG)"
	[ "${1:-}" = tests ] || return 0
	{ have_commands prove && perl -MIPC::Run -MTest::More -e 1 2>/dev/null; } ||
		say "Perl with IPC::Run and Test::More"
	have_commands pgrep || say "pgrep"
}

# The same in a line, which is empty if nothing is missing.
missing_line()
{
	missing "$@" | paste -sd, | sed 's/,/, /g'
}

# Run apt-get as root, or with sudo.  While another apt runs, such as that of
# unattended-upgrades on each new machine in a cloud, this would be an error, so wait for it.
run_apt_get()
{
	exec 9</var/lib/dpkg
	flock 9
	errors=$(mktemp)
	status=0
	waits=0
	until $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq "$@" 9<&- 2>"$errors"; do
		status=1
		grep -q 'Could not get lock' "$errors" && [ "$waits" -lt 120 ] || break
		[ "$waits" -gt 0 ] ||
			say "waiting up to 10 minutes for another apt: $(grep -m 1 'Could not get lock' "$errors")" >&2
		waits=$((waits + 1))
		status=0
		sleep 5
	done
	cat "$errors" >&2
	rm -f "$errors"
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
	with_progress "updating the list of packages" run_apt_get update ||
		die "could not update the list of packages; an administrator can install: $*"
	packages_updated=yes
}

install_quietly()
{
	run_apt_get install -y --no-install-recommends "$@" >/dev/null
}

# Install Debian packages.  Those that are there stay as they are: apt would upgrade
# PostgreSQL, and restart its servers.
install_packages()
{
	for package in "$@"; do
		shift
		[ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			set -- "$@" "$package"
	done
	[ $# -ne 0 ] || return 0
	update_packages "$@"
	say "installing: $*"
	say "(to remove them: apt-get remove $*)"
	with_progress "installing packages" install_quietly "$@" || die "could not install: $*"
}

# Install packages so that Debian's scripts create and start no server on port 5432.  What they
# read of it is removed afterwards, so that servers that somebody installs later are created
# as usual.  Their own file must not be there before they create it, with all their defaults.
without_cluster()
{
	settings=/etc/postgresql-common/createcluster.d
	$as_root mkdir -p "$settings"
	echo 'create_main_cluster = false' | $as_root tee "$settings/snowflake.conf" >/dev/null
	outcome=0
	("$@") || outcome=$?
	$as_root rm "$settings/snowflake.conf"
	return "$outcome"
}

# Install what is missing of PostgreSQL, the compiler and, with "tests", the
# tools of the tests.
install_missing()
{
	missing=$(missing_line "$@")
	[ -n "$missing" ] || return 0
	# Which packages would belong to a pg_config that was named is not known.
	[ "$PG_CONFIG" = pg_config ] || have_server ||
		die "PG_CONFIG=$PG_CONFIG is not that of a server with its headers and pgbench"
	update_packages "$missing"

	if [ -n "$(missing)" ]; then
		major=$(LC_ALL=C apt-cache depends postgresql |
			sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1)
		[ -n "$major" ] || die "there is no package for PostgreSQL"
		without_cluster install_packages gcc libc6-dev make "postgresql-$major" "postgresql-server-dev-$major"
		[ -z "$(missing)" ] || die "PostgreSQL was installed, but $PG_CONFIG does not find it"
	fi
	if [ -n "$(missing "$@")" ]; then
		install_packages perl libipc-run-perl procps
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

# Refuse what is no argument of script/check.
check_tests()
{
	case ${1:-} in
		--all | --each-version) [ $# -eq 1 ] || refuse "$1 takes no others" ;;
		*)
			for test in "$@"; do
				[ -f "$top/$test" ] || refuse "no test $test"
			done
			;;
	esac
}

# Where the user of the servers can reach a directory.
server_user_reaches()
{
	as_server_user test -x "$1"
}

# Can make build there?  PGXS takes no blanks and no quotes in a path.
is_plain()
{
	case $1 in
		*[!A-Za-z0-9/._+,@%:=~-]*) return 1 ;;
	esac
}

# Make, below a directory that has the extension already, a private installation
# of the PostgreSQL that pg_config reports: programs are copied, because they find
# the rest relative to themselves; the rest are links.
private_server()
(
	prefix=$1
	bindir=$("$2" --bindir)
	pkglibdir=$("$2" --pkglibdir)
	sharedir=$("$2" --sharedir)
	mkdir -p "$prefix$bindir"
	cp --remove-destination "$bindir"/* "$prefix$bindir"
	# JIT inlines functions only where it finds the bitcode of the server's own.
	for dir in "$pkglibdir" "$pkglibdir/bitcode" "$sharedir" "$sharedir/extension"; do
		[ -d "$dir" ] || continue
		mkdir -p "$prefix$dir"
		set --
		for file in "$dir"/*; do
			# What the build forgets to install must not come from elsewhere.
			case ${file##*/} in
				snowflake.* | snowflake--* | snowflake_*) continue ;;
			esac
			[ -e "$prefix$file" ] || set -- "$@" "$file"
		done
		[ $# -eq 0 ] || ln -sf "$@" "$prefix$dir"
	done
)

# The same with this build of the extension.
private_install()
{
	make -s install DESTDIR="$1" >/dev/null
	private_server "$1" "$PG_CONFIG"
}

# The files that belong to the checkout: with git also new ones, but not what was
# built.
checkout_files()
(
	cd "$top"
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . ! -type d ! -path './.git/*' ! -path './.build/*' ! -path './.quickstart*' \
			! -path './tmp_check/*' ! -name '*.o' ! -name '*.bc' ! -name '*.so'
	fi | while IFS= read -r file; do
		[ ! -e "$file" ] || printf '%s\n' "${file#./}"
	done
)

# Copy those of its files whose names are read into a directory.
copy_files()
{
	tar -c -C "$top" -T - | tar -x -C "$1"
}

copy_checkout()
{
	checkout_files | copy_files "$1"
}
