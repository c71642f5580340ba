"""Does the lab's own work while the load of a trial runs. Each kind of load has a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pgtrial.conduct.trial.kinds.job import JobWatch
from pgtrial.conduct.trial.kinds.programs import ProgramsWatch
from pgtrial.conduct.trial.kinds.replay import ReplayWatch
from pgtrial.conduct.trial.kinds.suite import SuiteWatch
from pgtrial.conduct.trial.kinds.tasks import TasksWatch
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.server_log import ServerLog
from pgtrial.loads.target import Session
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad

_WATCHES: Mapping[str, Callable[[TrialOrder, Session, ServerLog], LoadWatch]] = {
    JobLoad.key: lambda order, session, _: JobWatch(order, session),
    SuiteLoad.key: lambda order, _, log: SuiteWatch(order, log),
    ReplayLoad.key: lambda order, _session, _log: ReplayWatch(order),
    ClientPrograms.key: lambda order, _session, _log: ProgramsWatch(order),
    TaskLoad.key: lambda order, session, _: TasksWatch(order, session),
}


def watch_of(order: TrialOrder, session: Session, log: ServerLog) -> LoadWatch:
    """Returns the object that does the lab's work around the load of a trial, as the kind of the load requires."""
    watch = _WATCHES.get(order.point.kind.key)
    return watch(order, session, log) if watch is not None else LoadWatch(order)
