# end_server.sh PIDFILE DATA: ends the server of the data directory DATA. Exits with status 3 if the system does not tell
# in which directory the process of PIDFILE works, so that it may be another program. The servers' account can write to
# PIDFILE; if PIDFILE does not name the server, the script looks in /proc for a postgres whose working directory is DATA.
postmaster_in() {
    servers=$(grep -lx postgres /proc/[0-9]*/comm 2>/dev/null | cut -d / -f 3 | while read -r each
    do [ "$(works_in "$each")" = "$1" ] && echo "$each"; done)
    for each in $servers
    do
        parent=$(ps -o ppid= -p "$each" | tr -d ' ')
        case " $(echo $servers) " in *" $parent "*) ;; *) echo "$each"; return ;; esac
    done
}
here=$(cd -P "$2" 2>/dev/null && pwd -P) || exit 0
number=
[ -f "$1" ] && [ ! -L "$1" ] && number=$(head -n 1 "$1" 2>/dev/null)
case $number in *[!0-9]*) number= ;; esac
[ -n "$number" ] && kill -0 "$number" 2>/dev/null && began=$(born "$number") && [ -n "$began" ] || number=
if [ -n "$number" ]
then
    there=$(works_in "$number")
    [ -n "$there" ] || exit 3
    [ "$there" = "$here" ] || number=
fi
if [ -z "$number" ]
then
    number=$(postmaster_in "$here")
    [ -n "$number" ] && began=$(born "$number") && [ -n "$began" ] || exit 0
fi
runs() { [ "$(born "$number")" = "$began" ] && kill -0 "$number" 2>/dev/null; }
kill -QUIT "$number" 2>/dev/null
polls=0
while runs && [ $polls -lt 150 ]; do sleep 0.1; polls=$((polls + 1)); done
runs || exit 0
kill -9 "$number" $(children "$number") 2>/dev/null
sleep 0.5
! runs
