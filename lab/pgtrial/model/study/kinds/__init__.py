"""The kinds of load that a study may have, each in a module of its own. `KINDS` is the only list of them."""

from __future__ import annotations

from pgtrial.model.study.kinds.capacity import Capacity
from pgtrial.model.study.kinds.job import Job
from pgtrial.model.study.kinds.kind import LoadKind
from pgtrial.model.study.kinds.programs import Programs
from pgtrial.model.study.kinds.replay import Replay
from pgtrial.model.study.kinds.suite import Suite
from pgtrial.model.study.kinds.tasks import Tasks
from pgtrial.model.study.kinds.transactions import Transactions
from pgtrial.model.study.load_keys import LoadKeys

KINDS: tuple[LoadKind, ...] = (Tasks(), Replay(), Suite(), Job(), Programs(), Capacity(), Transactions())
"""All kinds of load. The kind of a load is the first one whose `is_meant` is true for it."""


def kind_of(load: LoadKeys) -> LoadKind:
    """Returns the kind of a load."""
    return next(kind for kind in KINDS if kind.is_meant(load))
