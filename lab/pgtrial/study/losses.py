"""What is done when a server goes, or a machine of the fleet: a word, or `wait 60s`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from pgtrial.study.units import parse_duration

_LONGEST_S = 86_400.0


def policy(value: Any, others: Sequence[str], example: str) -> str:
    """One of the `others`, or `wait` with a duration in seconds. Raises ValueError, which tells the `example`."""
    words = value.split(maxsplit=1) if isinstance(value, str) else []
    if len(words) == 1 and words[0] in others:
        return str(words[0])
    if len(words) != 2 or words[0] != "wait":
        written = ", ".join(f'"{word}"' for word in others)
        raise ValueError(f'{value!r} is no such policy; write {written}, or for example "{example}"')
    patience = parse_duration(words[1])
    if not 1 <= patience <= _LONGEST_S:
        raise ValueError(f"{value!r} is out of range; wait for 1s to 24h")
    return f"wait {patience:g}s"


def patience_s(chosen: str) -> float | None:
    """Seconds for which is waited; None for a policy that does not wait."""
    return parse_duration(chosen.removeprefix("wait ")) if chosen.startswith("wait ") else None


def _of_servers(value: Any) -> str:
    return policy(value, ["fail"], "wait 60s")


ServerLoss = Annotated[str, BeforeValidator(_of_servers)]
"""`fail`, or `wait` and a duration."""
