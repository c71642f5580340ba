# end_server.sh PIDFILE DATA: ends the server of this data directory. Status 3: nobody can tell whether it is its server.
[ -f "$1" ] && [ ! -L "$1" ] || exit 0
number=$(head -n 1 "$1" 2>/dev/null) || exit 0
case $number in '' | *[!0-9]*) exit 0 ;; esac
kill -0 "$number" 2>/dev/null || exit 0
began=$(born "$number")
here=$(cd -P "$2" 2>/dev/null && pwd -P) && [ -n "$began" ] || exit 0
there=$(works_in "$number")
[ -n "$there" ] || exit 3
[ "$there" = "$here" ] || exit 0
runs() { [ "$(born "$number")" = "$began" ] && kill -0 "$number" 2>/dev/null; }
kill -QUIT "$number" 2>/dev/null
polls=0
while runs && [ $polls -lt 150 ]; do sleep 0.1; polls=$((polls + 1)); done
runs || exit 0
kill -9 "$number" $(children "$number") 2>/dev/null
sleep 0.5
! runs
