# Chroots of Debian's releases; sourced after common.sh by the scripts that try
# PostgreSQLs other than the machine's own.

# The releases, oldest first, by the PostgreSQL that they have: 15, 17 and 18.
# No release has 16.
releases='bookworm trixie forky'

# They are kept for the next run; removing the folder is all it takes to have
# them made anew.
chroots=${SNOWFLAKE_CHROOTS:-$top/.build/chroots}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# Where a checkout is inside of a chroot.
checkout=/srv/snowflake

# Making chroots needs root, debootstrap and the keys of Debian.
need_chroots()
{
	[ "$(id -u)" -eq 0 ] || die "chroots need root; try: sudo $0"
	have_commands unshare debootstrap &&
		[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		install_packages util-linux debootstrap debian-archive-keyring
}

# Make the chroot of a release unless it is there.
make_chroot()
{
	[ ! -d "$chroots/$1" ] || return 0
	say "making a chroot of Debian $1"
	mkdir -p "$chroots"
	rm -rf "$chroots/$1.new"
	# A release that debootstrap is too old to know is made as sid is.
	scripts=/usr/share/debootstrap/scripts
	suite_script=$scripts/sid
	[ ! -e "$scripts/$1" ] || suite_script=$scripts/$1
	debootstrap --variant=minbase "$1" "$chroots/$1.new" "$mirror" "$suite_script" \
		>"$chroots/$1.log" 2>&1 || die "debootstrap failed; see $chroots/$1.log"

	# Packages are fetched as the machine does it (a proxy, say).
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check-)' \
		>"$chroots/$1.new/etc/apt/apt.conf.d/90machine" || true
	# No cluster is wanted when PostgreSQL is installed.
	mkdir -p "$chroots/$1.new/etc/postgresql-common"
	echo 'create_main_cluster = false' \
		>"$chroots/$1.new/etc/postgresql-common/createcluster.conf"
	mv "$chroots/$1.new" "$chroots/$1"
}

# Run a command in a release's chroot.  It has its own processes and mounts,
# and nothing of them is left when it ends.
in_chroot()
{
	release=$1
	shift
	cp /etc/hosts /etc/resolv.conf "$chroots/$release/etc/" 2>/dev/null || true
	# Not the command but the shell is the first process, that reaps the others.
	unshare --mount --pid --fork --kill-child sh -c '
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
		sh -c 'cd "$0" && exec "$@"' "$checkout" "$@"
}

# Put what belongs to the checkout into a release's chroot.
fill_chroot()
{
	rm -rf "$chroots/$1$checkout"
	mkdir -p "$chroots/$1$checkout"
	copy_checkout "$chroots/$1$checkout"
}
