# Removes the tree $1. What is another account's in it that account empties, and root removes empty directories: the rm
# of BusyBox looks at a directory and goes into it by its name, and so into a link that was put there meanwhile.
others() { find "$1" -type d ! -user 0 -print -prune 2>/dev/null; }
emptied='
cd "$TREE" || exit
clear() { find . ! -name . -prune -exec rm -rf {} +; }
clear 2>/dev/null || { chmod -R u+rwX . && clear; }
'
[ "$(id -u)" != 0 ] || others "$1" | while read -r TREE
do
    export TREE
    SHELL=/bin/sh su -m "$(ls -ld "$TREE" | awk '{ print $3 }')" -c "$emptied" </dev/null
    rmdir "$TREE"
done
[ "$(id -u)" = 0 ] && [ -n "$(others "$1")" ] || rm -rf "$1"
