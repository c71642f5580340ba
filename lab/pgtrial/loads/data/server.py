"""The server that data is made on, as those who make it need it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]

Reset = Literal["vacuum", "none"]
"""How data is brought near its first state between trials: no dead rows, or left as it is."""


class Server(Protocol):
    """What is needed of a server to load it."""

    def environment(self) -> dict[str, str]:
        """PG* variables for the engine."""
        ...

    def connect(self) -> Connection:
        """A connection of the lab."""
        ...
