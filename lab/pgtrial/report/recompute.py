"""Whether a stored verdict follows from the stored trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pgtrial.model.errors import StoreError
from pgtrial.report.data import read_measured
from pgtrial.store.directory import StudyDirectory

_ABSENT = "absent"


def differences(study: StudyDirectory) -> list[str]:
    """Where verdict.json differs from the verdict that the trials give; empty: it follows. Raises StoreError."""
    path = study.path / "verdict.json"
    try:
        stored = json.loads(path.read_text())
    except FileNotFoundError:
        raise StoreError(f"{study.path} has no verdict.json; `pgtrial report DIRECTORY` writes it") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged; `pgtrial report DIRECTORY` writes it anew") from error
    computed = read_measured(study).result.model_dump(mode="json")
    return [
        f"{place} is {_short(one)} in verdict.json and {_short(other)} by the trials"
        for place, one, other in _unequal("", stored, computed)
    ]


def _unequal(place: str, stored: Any, computed: Any) -> Iterator[tuple[str, Any, Any]]:
    """The smallest differing values, with the place of each, e.g. `primary.0.verdict`."""
    if isinstance(stored, list) and isinstance(computed, list):
        stored, computed = dict(enumerate(stored)), dict(enumerate(computed))
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in {**computed, **stored}:
            inner = f"{place}.{key}".lstrip(".")
            yield from _unequal(inner, stored.get(key, _ABSENT), computed.get(key, _ABSENT))
    elif stored != computed:
        yield place, stored, computed


def _short(value: Any) -> str:
    text = value if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:76]} ..."
