"""What a trial does when its server goes: `fail`, or `wait 60s`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from pgtrial.study.units import parse_duration

_LONGEST_S = 86_400.0


def _canonical(value: Any) -> str:
    words = value.split(maxsplit=1) if isinstance(value, str) else []
    if words == ["fail"]:
        return "fail"
    if len(words) != 2 or words[0] != "wait":
        raise ValueError(f'{value!r} is no such policy; write "fail", or for example "wait 60s"')
    patience = parse_duration(words[1])
    if not 1 <= patience <= _LONGEST_S:
        raise ValueError(f"{value!r} is out of range; wait for 1s to 24h")
    return f"wait {patience:g}s"


ServerLoss = Annotated[str, BeforeValidator(_canonical)]
"""`fail`, or `wait` and a duration."""


def patience_s(policy: str) -> float | None:
    """Seconds for which a server may be away; None where that ends the trial."""
    return None if policy == "fail" else parse_duration(policy.removeprefix("wait "))
