pid=$(head -n 1 "$1" 2>/dev/null) || exit 0
[ -n "$pid" ] || exit 0
case $(ps -p "$pid" -o args= 2>/dev/null) in *postgres*|*postmaster*) ;; *) exit 0 ;; esac
kill -QUIT "$pid" 2>/dev/null
polls=0
while kill -0 "$pid" 2>/dev/null && [ $polls -lt 150 ]; do sleep 0.1; polls=$((polls + 1)); done
kill -0 "$pid" 2>/dev/null || exit 0
backends=$(ps -A -o pid= -o ppid= | awk -v parent="$pid" '$2 == parent { print $1 }')
kill -9 "$pid" $backends 2>/dev/null
sleep 0.5
! kill -0 "$pid" 2>/dev/null
