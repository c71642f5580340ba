program=$(readlink "/proc/$1/exe" || procstat -h -b "$1" | sed 's/^.* //')
[ -n "$program" ] || program=$(ps -o comm= -p "$1")
[ "${program#/}" != "$program" ] || exit
echo "$program"
sha256sum "$program" || sha256 -r "$program" || shasum -a 256 "$program"
