"""Describes the load of a study in plans and reports. Each kind of load that needs words of its own has a module
here."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.records.transactions import CapacitySearch
from pgtrial.report.kinds.capacity import CapacityWords
from pgtrial.report.kinds.job import JobWords
from pgtrial.report.kinds.kind import KindWords
from pgtrial.report.kinds.programs import ProgramsWords
from pgtrial.report.kinds.replay import ReplayWords
from pgtrial.report.kinds.suite import SuiteWords
from pgtrial.report.kinds.tasks import TasksWords

_WORDS: Mapping[str, KindWords] = {
    TaskLoad.key: TasksWords(),
    ReplayLoad.key: ReplayWords(),
    SuiteLoad.key: SuiteWords(),
    JobLoad.key: JobWords(),
    ClientPrograms.key: ProgramsWords(),
    CapacitySearch.key: CapacityWords(),
}


def words_of(plan: Plan) -> KindWords:
    """Returns the object that describes the load of a study in words."""
    return _WORDS.get(plan.kind.key) or KindWords()
