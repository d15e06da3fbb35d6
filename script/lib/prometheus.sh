# Programs of Debian's packages of Prometheus, which are not installed, because that
# would start services: .build/prometheus has their files.  Sourced after common.sh.

# Print where a program of a package is: in the path, or unpacked, once.
program_of()
{
	dir=$top/.build/prometheus
	if have_commands "$2"; then
		command -v "$2"
		return
	fi
	if [ ! -x "$dir/usr/bin/$2" ]; then
		update_packages "$1" >&2
		mkdir -p "$dir"
		(
			cd "$dir"
			say "downloading: $1" >&2
			apt-get -qq download "$1" 2>/dev/null || die "could not download: $1"
			dpkg -x "$1"_*.deb .
			rm "$1"_*.deb
		) || return
	fi
	echo "$dir/usr/bin/$2"
}
