# Chroots of Debian's releases; sourced after common.sh by the scripts that try
# PostgreSQLs other than the machine's own.

# The releases, oldest first, by the PostgreSQL that they have: 15, 17 and 18.
# No release has 16.
releases='bookworm trixie forky'

# They are kept for the next run; removing the folder is all it takes to have
# them made anew.
chroots=${SNOWFLAKE_CHROOTS:-$top/.build/chroots}

# Where a checkout is inside of a chroot.
checkout=/srv/snowflake

# Is this the name of one?
check_release()
{
	case " $releases " in
		*" $1 "*) ;;
		*) die "no release \"$1\" (there are: $releases)" ;;
	esac
}

# Making chroots needs root, debootstrap and the keys of Debian.  One run at a
# time uses them; what it started holds the lock, too, until it has ended.
need_chroots()
{
	[ "$(id -u)" -eq 0 ] || die "chroots need root; try: sudo $0"
	have_commands unshare debootstrap &&
		[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		install_packages util-linux debootstrap debian-archive-keyring
	mkdir -p "$chroots"
	exec 9>"$chroots/lock"
	flock --nonblock 9 || die "another run uses $chroots"
}

# Make the chroot of a release unless it is there; one that is may have been left
# in the middle of installing packages.
make_chroot()
{
	check_release "$1"
	if [ -d "$chroots/$1" ]; then
		in_chroot "$1" sh -c 'dpkg --configure -a && apt-get -qq -f install -y' \
			>"$chroots/$1.log" 2>&1 ||
			die "$chroots/$1 is broken (see $chroots/$1.log): please remove it"
		return
	fi
	say "making a chroot of Debian $1"
	rm -rf --one-file-system "$chroots/$1.new"
	# A release that debootstrap is too old to know is made as sid is.
	scripts=/usr/share/debootstrap/scripts
	suite_script=$scripts/sid
	[ ! -e "$scripts/$1" ] || suite_script=$scripts/$1
	unshare --mount debootstrap --variant=minbase "$1" "$chroots/$1.new" "${DEBIAN_MIRROR:-}" \
		"$suite_script" >"$chroots/$1.log" 2>&1 || die "debootstrap failed; see $chroots/$1.log"

	# Packages are fetched as the machine does it (a proxy, say).
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-)' \
		>"$chroots/$1.new/etc/apt/apt.conf.d/90machine" || true
	# No cluster is wanted when PostgreSQL is installed.
	mkdir -p "$chroots/$1.new/etc/postgresql-common"
	echo 'create_main_cluster = false' \
		>"$chroots/$1.new/etc/postgresql-common/createcluster.conf"
	mv "$chroots/$1.new" "$chroots/$1"
}

# Run a command in a release's chroot.  It has its own processes, mounts and
# shared memory, and nothing of them is left when it ends.
in_chroot()
{
	release=$1
	shift
	cp --remove-destination /etc/hosts /etc/resolv.conf "$chroots/$release/etc/" 2>/dev/null || true
	# Not the command but the shell is the first process, that reaps the others.
	unshare --mount --pid --ipc --fork --kill-child sh -c '
		root=$1
		shift
		mount --make-rprivate / &&
			mount -t proc proc "$root/proc" &&
			mount --rbind /dev "$root/dev" &&
			mount -t tmpfs tmpfs "$root/dev/shm" || exit
		chroot "$root" "$@"
		exit' sh "$chroots/$release" \
		env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		${CI:+CI="$CI"} VERBOSE="${VERBOSE:-}" \
		sh -c 'mkdir -p "$0" && cd "$0" && exec "$@"' "$checkout" "$@"
}

# Put what belongs to the checkout into a release's chroot, in place of what the
# last run left.
fill_chroot()
{
	rm -rf "$chroots/$1$checkout" "$chroots/$1"/tmp/snowflake.*
	mkdir -p "$chroots/$1$checkout"
	copy_checkout "$chroots/$1$checkout"
}
