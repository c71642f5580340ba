"""Rehearses loads. Each kind of load whose rehearsal differs from that of transactions has a module."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrial.conduct.preparation.kinds.job import JobRehearsal
from pgtrial.conduct.preparation.kinds.programs import ProgramsRehearsal
from pgtrial.conduct.preparation.kinds.rehearsed import LoadRehearsal
from pgtrial.conduct.preparation.kinds.suite import SuiteRehearsal
from pgtrial.model.records.job import JobLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.programs import ClientPrograms
from pgtrial.model.records.suite import SuiteLoad

_REHEARSALS: Mapping[str, LoadRehearsal] = {
    JobLoad.key: JobRehearsal(),
    SuiteLoad.key: SuiteRehearsal(),
    ClientPrograms.key: ProgramsRehearsal(),
}


def rehearsal_of(point: LoadPoint) -> LoadRehearsal:
    """Returns the object that can rehearse the load of a load point."""
    return _REHEARSALS.get(point.kind.key) or LoadRehearsal()
