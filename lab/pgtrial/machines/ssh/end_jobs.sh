{
@processes@
tree() {
    kill -STOP "$1" 2>/dev/null
    for child in $(children "$1"); do tree "$child"; done
    kill -9 "$1" 2>/dev/null
}
for job in @jobs@/*
do
    [ -s "$job/pid" ] && [ ! -f "$job/status" ] || continue
    read -r number boot began < "$job/pid"
    [ -n "$began" ] && [ "$boot" = "$(this_boot)" ] && [ "$began" = "$(born "$number")" ] && tree "$number"
done
rm -rf @jobs@
}
