"""Makes the orders for trials that run at the same time, from the plan of their study."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pgtrial.conduct.drawn_values import ValuesOfArms
from pgtrial.conduct.planning.interleaving import SLICE_S
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.conduct.trial.load_statements import statements_of
from pgtrial.conduct.trial.order import TrialOrder
from pgtrial.conduct.trial.probes import start_rate
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pack_tables import sql_files
from pgtrial.loads.engine import PHASES
from pgtrial.loads.load_makers import LoadMaker
from pgtrial.loads.load_run import Inbox
from pgtrial.loads.programs.rounds import Rounds
from pgtrial.loads.turns import Turn
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.load_section import LoadSection
from pgtrial.servers.arm import Arm
from pgtrial.store.directory import StudyDirectory


def orders_for(
    study: StudyDirectory,
    planned: Sequence[PlannedTrial],
    arms: Mapping[str, Arm],
    load: LoadSection,
    *,
    listener: Listener,
    maker: LoadMaker,
    values: ValuesOfArms,
    counts: bool,
) -> Iterator[TrialOrder]:
    """Returns an iterator of the orders for these trials of one load point. A trial begins when the iterator makes its
    order, which also makes the directory of the trial.

    `values` has the files from which variables of the arms' scripts take values. `counts` is false for trials that are
    not stored. Raises ArmError if a machine of a fleet is not ready, and StoreError.
    """
    notes = tuple(maker.ready(lambda text: listener(Preparing(text))))
    inbox: Inbox = queue.SimpleQueue()
    plan = study.plan
    slice_s = plan.interleaving.slice_at(planned[0].load_point) if plan.interleaving is not None else None
    in_common = statements_of(study, planned[0], values.get(planned[0].arm)) if counts else None
    rounds = None
    if load.kind.runs_in_batches:
        phases = list(zip(PHASES, load.phases_s, strict=True))
        rounds = Rounds(len(planned), slice_s or SLICE_S, phases, planned[0].seed)
    begin_rate = partial(start_rate, study.trials()) if load.kind.searches_rate else None

    def order(number: int, due: PlannedTrial) -> TrialOrder:
        point = plan.load_points[due.load_point]
        has_own_statements = counts and bool(point.of_arms)
        return TrialOrder(
            due,
            arms[due.arm],
            load,
            point,
            data_of(study.spec, point, due.arm),
            study.begin_trial(due),
            study.script(point.for_arm(due.arm)),
            listener,
            maker,
            turn=Turn(number, len(planned), slice_s),
            shared_server=plan.shares_server,
            beside_script=next(map(study.script_called, point.kind.scripts_beside), None),
            pack=sql_files(study.spec, point),
            values=values.get(due.arm, {}),
            statements=statements_of(study, due, values.get(due.arm)) if has_own_statements else in_common,
            with_drawn_statistics=plan.statistics == "drawn",
            inbox=inbox,
            rounds=rounds,
            metrics=study.spec.metrics,
            start_rate=begin_rate(point, due.block) if begin_rate is not None else None,
            notes=notes,
        )

    return itertools.starmap(order, enumerate(planned, 1))
