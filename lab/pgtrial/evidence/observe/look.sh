data=$1 session=$2 device=$3 system=$4
[ -n "$system" ] || system=$(uname -s)
echo "system $system"
postmaster=
[ -n "$data" ] && [ -f "$data/postmaster.pid" ] && [ ! -L "$data/postmaster.pid" ] && read -r postmaster <"$data/postmaster.pid"
case $postmaster in *[!0-9]*) postmaster= ;; esac
if [ -z "$postmaster" ] && [ -n "$session" ]; then
  if [ -r "/proc/$session/stat" ]; then
    read -r line <"/proc/$session/stat"
    parent=${line##*) ?}
    name=${line#*(}
  else
    line=$(ps -o ppid= -o comm= -p "$session")
    parent=$line
    name=${line##*[ /]}
  fi
  case $name in postgres* | postmaster*) for postmaster in $parent; do break; done ;; esac
fi
[ -n "$postmaster" ] && echo "postmaster $postmaster"
case $system in
Linux)
  read -r boot <@boot_id@ && echo "boot $boot"
  if [ -z "$device" ]; then
    echo "ticks $(getconf CLK_TCK)"
    device=none
    number=$([ -n "$data" ] && stat -L -c %d "$data") &&
      device=$((number >> 8 & 4095)):$((number & 255 | number >> 12 & 1048320))
    echo "device $device"
  fi
  set -- @files@ "@device_file@"
  [ -n "$session" ] && set -- "$@" "/proc/$session/schedstat" "/proc/$session/stat"
  if [ -n "$postmaster" ]; then
    listed=/proc/$postmaster/task/$postmaster/children
    if [ -e "$listed" ]; then
      read -r children <"$listed"
      set -- "$@" "/proc/$postmaster/stat"
      for child in $children; do [ "$child" = "$session" ] || set -- "$@" "/proc/$child/stat"; done
    else
      set -- "$@" /proc/[0-9]*/stat
    fi
  fi
  read -r spent rest </proc/$$/schedstat && echo "spent $spent"
  grep -E '^(cpu |ctxt |some |full | *[0-9]| *[^ ]+: *[0-9])' "$@" /proc/self/schedstat
  ;;
FreeBSD)
  sysctl kern.cp_time kern.clockrate vm.stats.sys.v_swtch
  netstat -ibn | sed -n 's/^\(.*<Link#\)/link \1/p'
  [ -n "$postmaster" ] && ps -A -S -o pid= -o ppid= -o time= | sed 's/^/process /'
  ;;
esac 2>/dev/null
