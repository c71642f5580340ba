{
tree() {
    kill -STOP "$1" 2>/dev/null
    for child in $(ps -A -o pid= -o ppid= | awk -v parent="$1" '$2 == parent { print $1 }'); do tree "$child"; done
    kill -9 "$1" 2>/dev/null
}
for job in @jobs@/*
do
    [ -s "$job/pid" ] && [ ! -f "$job/status" ] && tree "$(cat "$job/pid")"
done
rm -rf @jobs@
}
