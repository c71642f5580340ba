{
    sync
    echo 3 > /proc/sys/vm/drop_caches
    for cache in /sys/kernel/slab/*/shrink; do echo 1 > "$cache"; done
    echo 1 > /proc/sys/vm/compact_memory
} 2>/dev/null
