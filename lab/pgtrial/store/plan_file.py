"""plan.json: the plan, with digests by which a later change of the plan or of study.toml is noticed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from pgtrial.model.errors import StoreError
from pgtrial.model.records.plan import Plan
from pgtrial.store.files import damaged, parse_record, write_atomically
from pgtrial.store.workloads import digest

PLAN, STUDY = "plan.json", "study.toml"

_KEY = "sha256"
"""Key of plan.json beside the plan's own: the SHA-256 of study.toml, and of the plan as compact JSON, keys sorted."""
_CURE = "restore it from a copy, or run the study anew"


def write_plan(directory: Path, plan: Plan, study: str) -> None:
    """Write the plan of a study whose study.toml has this text. Raises StoreError."""
    content = json.loads(plan.model_dump_json())
    content[_KEY] = {PLAN: _digest(content), STUDY: digest(study)}
    write_atomically(directory / PLAN, json.dumps(content, indent=1, ensure_ascii=False))


def read_plan(directory: Path, study: str) -> Plan:
    """The plan of a study whose study.toml has this text. Raises StoreError if either was changed since it was written.

    A plan that was written before there were digests is not checked.
    """
    path = directory / PLAN
    try:
        content = from_json(path.read_bytes())
        expected = content.pop(_KEY, None) if isinstance(content, dict) else None
    except (OSError, ValueError) as error:
        raise damaged(path, error, _CURE) from error
    plan = parse_record(path, json.dumps(content), Plan, _CURE)
    if expected is not None:
        found = {PLAN: _digest(content), STUDY: digest(study)}
        for name, actual in found.items():
            if not isinstance(expected, dict) or expected.get(name) != actual:
                raise StoreError(
                    f"{directory / name} was changed after the study began (its SHA-256 differs from the one in "
                    f"{PLAN}); {_CURE}"
                )
    return plan


def _digest(content: dict[str, Any]) -> str:
    compact = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(compact.encode()).hexdigest()
