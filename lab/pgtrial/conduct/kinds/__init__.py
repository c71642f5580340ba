"""Does the lab's own work while the load of a trial runs, and rehearses loads. Each kind of load has a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pgtrial.conduct.kinds.job import JobRehearsal, JobWatch
from pgtrial.conduct.kinds.programs import ProgramsRehearsal, ProgramsWatch
from pgtrial.conduct.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.kinds.replay import ReplayWatch
from pgtrial.conduct.kinds.suite import SuiteRehearsal, SuiteWatch
from pgtrial.conduct.kinds.tasks import TasksWatch
from pgtrial.conduct.kinds.watch import LoadWatch
from pgtrial.conduct.running_trial import RunningTrial
from pgtrial.loads.target import Session
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.load_point import LoadPoint
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


_REHEARSALS: Mapping[str, LoadRehearsal] = {
    JobLoad.key: JobRehearsal(),
    SuiteLoad.key: SuiteRehearsal(),
    ClientPrograms.key: ProgramsRehearsal(),
}


def rehearsal_of(point: LoadPoint) -> LoadRehearsal:
    """Returns the object that can rehearse the load of a load point."""
    return _REHEARSALS.get(point.kind.key) or LoadRehearsal()


def watch_of(trial: RunningTrial, arm: Arm, session: Session) -> LoadWatch:
    """Returns the object that does the lab's work around the load of a trial, as the kind of the load requires."""
    watch = _WATCHES.get(trial.point.kind.key)
    return watch(trial, arm, session) if watch is not None else LoadWatch()
