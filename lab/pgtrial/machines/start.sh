{
PATH=$PATH:@tools@
read -r start <@boot_id@ || start=$(sysctl -nx kern.boot_id) || start=$(sysctl -n kern.bootsessionuuid) ||
{ start=$(sysctl -n kern.boottime) && start="$start now $(date +%s)"; } || start=
} 2>/dev/null
echo "$start"
