"""The lab's own machine, whichever machine the server is on."""

from __future__ import annotations

from typing import Any

from pgtrial.facts.collect import Subject, collector
from pgtrial.facts.files import LocalFiles
from pgtrial.facts.os_ import distribution


@collector("client")
def lab_machine(subject: Subject) -> dict[str, Any]:
    """Its system: the same for all subjects."""
    del subject
    files = LocalFiles()
    return {
        "system": files.uname.system or None,
        "distribution": distribution(files),
        "kernel": files.uname.release or None,
    }
