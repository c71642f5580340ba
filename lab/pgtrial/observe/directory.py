"""Where the data of a server is that is not the lab's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

_SHOWN = "SELECT current_setting('data_directory', true)"


def shown_directory(connection: psycopg.Connection[tuple[Any, ...]]) -> Path | None:
    """The data directory as the server names it; None where the role may not know (pg_read_all_settings).

    Raises psycopg.OperationalError when the server is gone.
    """
    try:
        row = connection.execute(_SHOWN).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return Path(row[0]) if row is not None and row[0] else None
