# Servers built from source with checks that a packaged server does not have;
# sourced after common.sh by the scripts that run tests on them:
#
#	asserts			assertions, as in all of them
#	exec-backend	processes that inherit nothing, as on Windows
#					by fork(), so what was not in shared memory is missed
#	valgrind		reports memory contexts to valgrind
#	sanitize		address and undefined-behaviour sanitizers, in the server and in
#					the extension
#
# The extension is compiled with assertions, too: the server's headers ask for it.

# They are kept for the next run; removing the folder is all it takes to have
# them made again.
servers=${SNOWFLAKE_SERVERS:-$top/.build/servers}

server_cflags()
{
	case $1 in
		asserts) echo "-O1 -g" ;;
		exec-backend) echo "-O1 -g -DEXEC_BACKEND" ;;
		valgrind) echo "-O1 -g -DUSE_VALGRIND" ;;
		sanitize) echo "-O1 -g -fno-omit-frame-pointer -fno-common" \
			"-fsanitize=address,undefined -fno-sanitize-recover=all" ;;
		*) refuse "no server \"$1\" (there are: asserts, exec-backend, valgrind, sanitize)" ;;
	esac
}

# Fetch and unpack the source of a Debian or Ubuntu package, from where the
# machine has its packages, as $work/source.  The machine's own lists of packages
# need not tell of sources.
fetch_source()
(
	have_commands apt-get || die "the source of $1 is fetched with apt-get"
	mkdir -p "$work/lists/partial" "$work/cache"
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' | sort -u | sed 's/^/deb-src /' >"$work/sources.list"
	[ -s "$work/sources.list" ] || die "there are no lists of packages: please run apt-get update"
	cd "$work"
	export APT_CONFIG="$work/apt.conf"
	cat >"$APT_CONFIG" <<EOF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
EOF
	say "fetching the source of $1"
	# Some places have packages only, and newest versions may lack theirs.
	apt-get -qq update >apt.log 2>&1 || true
	for version in $(apt-cache showsrc --only-source "$1" |
		sed -n 's/^Version: //p' | sort -rV); do
		if apt-get -qq source --only-source --download-only "$1=$version" >>apt.log 2>&1; then
			dpkg-source --extract ./*.dsc source >>apt.log 2>&1
			return
		fi
	done
	cat apt.log >&2
	die "the source of $1 is not there"
)

# Have a server of a kind, of the same major version as that of PG_CONFIG, and
# set PG_CONFIG to it.
use_server()
{
	cflags=$(server_cflags "$1")
	# A server does not free what it has at its end; locals stay on the stack, whose
	# depth it measures; the tests preload a clock before the sanitizer's library; malloc() fails
	# where a child of the server has a limit.
	export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:verify_asan_link_order=0:allocator_may_return_null=1
	export UBSAN_OPTIONS=print_stacktrace=1
	major=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	# Without "postgres" in its libdir, Debian's source installs into that of the
	# packaged server.
	prefix=$servers/postgresql-$major-$1
	mkdir -p "$servers"
	server_user_reaches "$servers" ||
		die "$server_user cannot reach $servers; please set SNOWFLAKE_SERVERS"
	complete=$prefix/lib/isolation/complete
	if [ ! -e "$complete" ]; then
		[ "$1" != valgrind ] || [ -e /usr/include/valgrind/valgrind.h ] ||
			install_packages valgrind
		# The tarballs of 17 and later are without what these make.
		[ "$major" -lt 17 ] || have_commands bison flex || install_packages bison flex
		have_commands dpkg-source || install_packages dpkg-dev
		rm -rf "$prefix"
		work=$(mktemp -d "${TMPDIR:-/tmp}/server.XXXXXX")
		fetch_source "postgresql-$major"
		say "building a server: $1"
		build_server "$cflags" >"$servers/$major-$1.log" 2>&1 ||
			die "could not build the server; see $servers/$major-$1.log"
		rm -rf "$work"
		touch "$complete"
	fi
	PG_CONFIG=$prefix/bin/pg_config
}

# The extension needs none of the libraries that a server can do without.  PostgreSQL's own
# tests are installed, too, those of isolation beside what its Makefile installs.
build_server()
(
	mkdir "$work/build"
	cd "$work/build" &&
		../source/configure --prefix="$prefix" --enable-cassert --enable-tap-tests \
			--without-icu --without-readline --without-zlib CFLAGS="$1" &&
		make -s -j "$(nproc)" &&
		make -s -j "$(nproc)" -C contrib &&
		make -s install DESTDIR="$work/root" &&
		make -s -C contrib install DESTDIR="$work/root" &&
		make -s -C src/test/regress install-tests DESTDIR="$work/root" &&
		make -s -C src/test/isolation install DESTDIR="$work/root" &&
		mkdir "$work/root$prefix/lib/isolation" &&
		(cd ../source/src/test/isolation && cp -R specs expected isolation_schedule "$work/root$prefix/lib/isolation") ||
		return
	# Nothing but the prefix is written to, whatever the source takes for its
	# place.
	outside=$(find "$work/root" ! -type d ! -path "$work/root$prefix/*" | head)
	if [ -n "$outside" ]; then
		printf 'these are outside of %s:\n%s\n' "$prefix" "$outside"
		return 1
	fi
	mv "$work/root$prefix" "$prefix"
)
