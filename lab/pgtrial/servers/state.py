"""The directory of what pgtrial keeps between studies: templates, copies of servers, journals, records."""

from __future__ import annotations

import os
from pathlib import Path


def state_root() -> Path:
    """$PGTRIAL_STATE, else /var/lib/pgtrial for root, else the user's XDG state directory."""
    if chosen := os.environ.get("PGTRIAL_STATE"):
        return Path(chosen).expanduser()
    if os.geteuid() == 0:
        return Path("/var/lib/pgtrial")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "pgtrial"
