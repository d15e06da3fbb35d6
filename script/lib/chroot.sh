# Chroots of releases of Debian and Ubuntu; sourced after common.sh by the scripts
# that try PostgreSQLs other than the machine's own.

# The releases, oldest PostgreSQL first.  Only Ubuntu has 16 (24.04, noble); the
# next major version comes to Debian's experimental first, which is an addition
# to sid.
releases='bookworm noble trixie forky experimental'

# Debian for other processors, which have to be asked for: i386 has 32 bits, and the
# bytes of s390x are in the other order.  Tests take ten times as long where a processor
# is emulated.
processors='i386 i386-experimental arm64 s390x'

# The major version of PostgreSQL that a release has.
release_version()
{
	case $1 in
		bookworm | i386 | arm64 | s390x) echo 15 ;;
		noble) echo 16 ;;
		trixie) echo 17 ;;
		forky) echo 18 ;;
		experimental | i386-experimental) echo 19 ;;
	esac
}

# They are kept for the next run; removing the folder is all it takes to have
# them made again.
chroots=${SNOWFLAKE_CHROOTS:-$top/.build/chroots}

# Where a checkout is inside of a chroot.
checkout=/srv/snowflake

# Is this the name of one?
check_release()
{
	case " $releases $processors " in
		*" $1 "*) ;;
		*) refuse "no release \"$1\" (there are: $releases $processors)" ;;
	esac
}

# Making chroots needs root, debootstrap and the keys of Debian.
need_chroots()
{
	[ "$(id -u)" -eq 0 ] || die "chroots need root; try: sudo $0"
	have_commands unshare debootstrap &&
		[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		install_packages util-linux debootstrap debian-archive-keyring
	mkdir -p "$chroots"
}

# One run at a time uses a chroot, from make_chroot to leave_chroot; what it
# started holds the lock, too, until it has ended.
chroot_lock()
{
	lock=10
	for other in $releases $processors; do
		[ "$other" != "$1" ] || break
		lock=$((lock + 1))
	done
}

enter_chroot()
{
	chroot_lock "$1"
	eval "exec $lock>\"\$chroots/\$1.lock\""
	flock "$lock"
}

leave_chroot()
{
	chroot_lock "$1"
	eval "exec $lock>&-"
}

# Ubuntu's keys, if need be from Debian, which has them since 13.
ubuntu_keyring()
{
	keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
	[ ! -e "$keyring" ] || return 0
	make_chroot trixie
	keyring=$chroots/trixie/usr/share/keyrings/ubuntu-archive-keyring.gpg
	if [ ! -e "$keyring" ]; then
		{
			in_chroot trixie apt-get -qq update &&
				in_chroot trixie apt-get -qq install -y ubuntu-keyring
		} >"$chroots/trixie.log" 2>&1 ||
			die "could not get the keys of Ubuntu; see $chroots/trixie.log"
	fi
	leave_chroot trixie
}

# The name that qemu has for the processor of a release, if the machine does not run its
# programs by itself.
emulator()
{
	case $1-$(dpkg --print-architecture) in
		i386*-amd64 | i386*-i386 | arm64-arm64 | s390x-s390x) ;;
		i386*) echo i386 ;;
		arm64-*) echo aarch64 ;;
		s390x-*) echo s390x ;;
	esac
}

# Have the kernel run programs for the processor of a release, in chroots too.
need_emulation()
{
	qemu=$(emulator "$1")
	[ -n "$qemu" ] || return 0
	have_commands "qemu-$qemu-static" update-binfmts ||
		install_packages qemu-user-static binfmt-support
	[ -e "/proc/sys/fs/binfmt_misc/qemu-$qemu" ] ||
		update-binfmts --enable "qemu-$qemu" ||
		die "the kernel cannot be told to run programs for $1"
}

# Set what debootstrap needs to know of a release.
describe_release()
{
	architecture=$(dpkg --print-architecture)
	if [ "$1" = noble ]; then
		ubuntu_keyring
		suite=noble
		family=gutsy
		components=main,universe
		mirror=http://ports.ubuntu.com/ubuntu-ports
		[ "$architecture" != amd64 ] || mirror=http://archive.ubuntu.com/ubuntu
		mirror=${UBUNTU_MIRROR:-$mirror}
	else
		keyring=/usr/share/keyrings/debian-archive-keyring.gpg
		suite=$1
		case $1 in
			experimental) suite=sid ;;
			i386-experimental) suite=sid architecture=i386 ;;
			i386 | arm64 | s390x) suite=bookworm architecture=$1 ;;
		esac
		family=sid
		components=main
		mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
	fi
}

# Make the chroot of a release unless it is there; one that is may have been left
# in the middle of installing packages.
make_chroot()
{
	check_release "$1"
	enter_chroot "$1"
	need_emulation "$1"
	if [ -d "$chroots/$1" ]; then
		in_chroot "$1" sh -c 'dpkg --configure -a && apt-get -qq -f install -y' \
			>"$chroots/$1.log" 2>&1 ||
			die "$chroots/$1 is broken (see $chroots/$1.log): please remove it"
		return
	fi
	describe_release "$1"
	say "making a chroot of $1"
	rm -rf --one-file-system "$chroots/$1.new"
	# A release that debootstrap is too old to know is made as its family is.
	scripts=/usr/share/debootstrap/scripts
	suite_script=$scripts/$suite
	[ -e "$suite_script" ] || suite_script=$scripts/$family
	unshare --mount debootstrap --variant=minbase --arch="$architecture" \
		--components="$components" --keyring="$keyring" "$suite" "$chroots/$1.new" "$mirror" "$suite_script" \
		>"$chroots/$1.log" 2>&1 || die "debootstrap failed; see $chroots/$1.log"

	# Packages are fetched as the machine does it (a proxy, say).
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-)' \
		>"$chroots/$1.new/etc/apt/apt.conf.d/90machine" || true
	# What is lost by a power cut is made again.
	echo force-unsafe-io >"$chroots/$1.new/etc/dpkg/dpkg.cfg.d/unsafe"
	# No cluster is wanted when PostgreSQL is installed.
	mkdir -p "$chroots/$1.new/etc/postgresql-common"
	echo 'create_main_cluster = false' \
		>"$chroots/$1.new/etc/postgresql-common/createcluster.conf"
	if [ "${1#i386-}" = experimental ]; then
		add_experimental "$1.new" >>"$chroots/$1.log" 2>&1 ||
			die "could not install PostgreSQL; see $chroots/$1.log"
	fi
	mv "$chroots/$1.new" "$chroots/$1"
}

# PostgreSQL and what is built from its source come from experimental, all else
# from sid.  Nothing there depends on this version, or takes it for the one that
# packages are built for, so both are said.
add_experimental()
{
	version=$(release_version experimental)
	echo "deb $mirror experimental main" \
		>"$chroots/$1/etc/apt/sources.list.d/experimental.list"
	cat >"$chroots/$1/etc/apt/preferences.d/experimental" <<EOF
Package: src:postgresql-$version
Pin: release a=experimental
Pin-Priority: 600
EOF
	echo "$version" >"$chroots/$1/etc/postgresql-common/supported_versions"
	in_chroot "$1" apt-get -qq update &&
		in_chroot "$1" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
			--no-install-recommends gcc libc6-dev make \
			"postgresql-$version" "postgresql-server-dev-$version"
}

# Run a command in a release's chroot.  It has its own processes, mounts and
# shared memory, and nothing of them is left when it ends.
in_chroot()
{
	root=$chroots/$1
	# npm trusts whom it trusts on the machine.
	if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
		mkdir -p "$root/etc/ssl"
		cp --remove-destination "$NODE_EXTRA_CA_CERTS" "$root/etc/ssl/npm.pem"
	fi
	# What is emulated takes ten times as long.
	longest=180
	[ -z "$(emulator "$1")" ] || longest=1800
	shift
	cp --remove-destination /etc/hosts /etc/resolv.conf "$root/etc/" 2>/dev/null || true
	# Not the command but the shell is the first process, that reaps the others.
	unshare --mount --pid --ipc --fork --kill-child sh -c '
		root=$1
		shift
		mount --make-rprivate / &&
			mount -t proc proc "$root/proc" &&
			mount --rbind /dev "$root/dev" &&
			mount -t tmpfs tmpfs "$root/dev/shm" || exit
		chroot "$root" "$@"
		exit' sh "$root" \
		env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		${CI:+CI="$CI"} ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=/etc/ssl/npm.pem} VERBOSE="${VERBOSE:-}" JOBS="${JOBS:-}" \
		PG_TEST_TIMEOUT_DEFAULT="$longest" \
		sh -c 'mkdir -p "$0" && cd "$0" && exec "$@"' "$checkout" "$@"
}

# Put what belongs to the checkout into a release's chroot, in place of what the
# last run left, but for the build that script/check keeps.
fill_chroot()
{
	mkdir -p "$chroots/$1$checkout/.build"
	find "$chroots/$1$checkout" -mindepth 1 -maxdepth 1 ! -name .build -exec rm -rf {} +
	rm -rf "$chroots/$1"/tmp/snowflake.*
	copy_checkout "$chroots/$1$checkout"
}
