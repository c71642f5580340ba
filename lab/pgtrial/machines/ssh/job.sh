{
@processes@
@remove@
mask=$(umask)
umask 077
if mkdir @home@ 2>/dev/null
then
cd @home@ || exit @lost@
cat > script <<'@end@'
@script@
@end@
echo "$$ $(this_boot) $(born $$)" > pid
(umask "$mask"; exec /bin/sh @home@/script) </dev/null >out 2>err
echo $? > status.new
mv status.new status
else
cd @home@ || exit @lost@
polls=0
while [ ! -f status ]
do
if [ -s pid ]
then read -r number began < pid; kill -0 "$number" 2>/dev/null || [ -f status ] || exit @lost@
else polls=$((polls + 1)); [ $polls -lt @patience@ ] || exit @lost@
fi
sleep @poll@
done
fi
cat out
cat err >&2
read -r status < status
exit $status
}
