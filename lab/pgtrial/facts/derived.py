"""Settings that a server works out from others while nobody sets them: name -> the settings they follow.

Found by starting servers of PostgreSQL 15 to 18 with one setting changed and reading pg_settings. Sources: PostgreSQL's
documentation, chapter Server Configuration, at each name, and the README of its storage/aio for io_max_concurrency.
"""

from __future__ import annotations

_PROCESSES = frozenset(
    {
        "max_connections",
        "autovacuum_max_workers",
        "autovacuum_worker_slots",
        "max_worker_processes",
        "max_wal_senders",
    }
)
"""What decides how many processes a server may have."""

_SHARED_MEMORY = _PROCESSES | {
    "shared_buffers",
    "wal_buffers",
    "max_locks_per_transaction",
    "max_pred_locks_per_transaction",
    "max_prepared_transactions",
    "max_replication_slots",
    "min_dynamic_shared_memory",
    "shared_preload_libraries",
    "track_activity_query_size",
    "commit_timestamp_buffers",
    "multixact_member_buffers",
    "multixact_offset_buffers",
    "notify_buffers",
    "serializable_buffers",
    "subtransaction_buffers",
    "transaction_buffers",
    "io_max_concurrency",
    "io_max_combine_limit",
    "io_method",
}
"""What takes shared memory by its size."""

PARENTS: dict[str, frozenset[str]] = {
    "commit_timestamp_buffers": frozenset({"shared_buffers"}),
    "huge_pages_status": _SHARED_MEMORY | {"huge_pages", "huge_page_size", "shared_memory_type"},
    "io_max_concurrency": _PROCESSES | {"shared_buffers"},
    "num_os_semaphores": _PROCESSES,
    "shared_memory_size": _SHARED_MEMORY | {"huge_pages", "huge_page_size"},
    "shared_memory_size_in_huge_pages": _SHARED_MEMORY | {"huge_pages", "huge_page_size"},
    "subtransaction_buffers": frozenset({"shared_buffers"}),
    "transaction_buffers": frozenset({"shared_buffers"}),
    "wal_buffers": frozenset({"shared_buffers"}),
}
"""Derived settings. Those with a value of their own in some arm follow nothing there."""
