"""pgtrial: puts PostgreSQL set-ups on trial and says which is faster, by how much, and how sure that is.

import pgtrial

study = pgtrial.open("results/demo-2026-11-23-0412")
print(study)
study.trials.group_by("arm").agg(polars.col("tps").median())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgtrial.api import Study, compare, open

__all__ = ["Study", "__version__", "compare", "open"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Imports the interface for Python when it is first used, so that the command line starts without it."""
    if name in ("Study", "compare", "open"):
        return getattr(importlib.import_module("pgtrial.api"), name)
    raise AttributeError(f"module 'pgtrial' has no attribute {name!r}")
