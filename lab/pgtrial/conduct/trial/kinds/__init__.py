"""Does the lab's own work while the load of a trial runs. Each kind of load has a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pgtrial.conduct.trial.kinds.job import JobWatch
from pgtrial.conduct.trial.kinds.programs import ProgramsWatch
from pgtrial.conduct.trial.kinds.replay import ReplayWatch
from pgtrial.conduct.trial.kinds.suite import SuiteWatch
from pgtrial.conduct.trial.kinds.tasks import TasksWatch
from pgtrial.conduct.trial.kinds.watch import LoadWatch
from pgtrial.conduct.trial.running_trial import RunningTrial
from pgtrial.loads.target import Session
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.servers.arm import Arm

_WATCHES: Mapping[str, Callable[[RunningTrial, Arm, Session], LoadWatch]] = {
    JobLoad.key: JobWatch,
    SuiteLoad.key: lambda trial, arm, _: SuiteWatch(trial, arm),
    ReplayLoad.key: lambda trial, _arm, _session: ReplayWatch(trial),
    ClientPrograms.key: lambda _trial, _arm, _session: ProgramsWatch(),
    TaskLoad.key: lambda trial, _, session: TasksWatch(trial, session),
}


def watch_of(trial: RunningTrial, arm: Arm, session: Session) -> LoadWatch:
    """Returns the object that does the lab's work around the load of a trial, as the kind of the load requires."""
    watch = _WATCHES.get(trial.point.kind.key)
    return watch(trial, arm, session) if watch is not None else LoadWatch()
