"""Recognises connection strings among the texts of a study, which may also be paths or settings."""

from __future__ import annotations

import re

SERVER_KEYS = frozenset({"host", "hostaddr", "port", "user", "dbname", "service", "password"})
"""The parameters with which a connection string may begin."""


def names_server(text: str) -> bool:
    """True if a text is a connection string, and not a setting or a path."""
    return re.match(r"postgres(ql)?://", text) is not None or text.partition("=")[0].strip() in SERVER_KEYS
