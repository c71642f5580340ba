"""Synthetic interleaved studies: what each slice of the trials of a block delivered, without engines or servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

import numpy as np

from pgtrial.model.records.plan import Interleaving, Plan, PlannedTrial
from pgtrial.model.records.trial import SliceRow, Trial
from tests.slice_order import Slices

from .studies import START, make_plan, make_trial

SLICE_S = 0.25
WARMUP_ROUNDS = 2
OWN_SLICES = 40
TPS = 100_000.0
"""The throughput of an arm, so high that rounding the transactions of a slice causes no noise."""
LOAD_S = timedelta(seconds=30)
"""The wall time that a group of alternating trials takes together, with starting and stopping."""


@dataclass(frozen=True)
class Turn:
    """One slice of a trial."""

    planned: PlannedTrial
    participant: int
    """The place of the trial in the drawn order, from 0."""
    slot: int
    """The number of the slice since the start of the load, counted over all participants."""
    before: Turn | None
    """The slice before this one."""

    def follows(self, arm: str) -> bool:
        """True if the slice before this one belongs to a trial of this arm."""
        return self.before is not None and self.before.planned.arm == arm


def interleaved_plan(arms=("on", "off"), **options) -> Plan:
    plan = make_plan(arms, duration_s=OWN_SLICES * SLICE_S, **options)
    return plan.model_copy(update={"interleaving": Interleaving(slice_s=SLICE_S)})


def turns(plan: Plan) -> Iterator[list[Turn]]:
    """Yields the slices of each block and load point in the order that the engine draws with the seed of the load."""
    for _, group in groupby(plan.trials, lambda planned: (planned.block, planned.load_point)):
        trials = list(group)
        order = Slices(SLICE_S, len(trials), trials[0].seed).turns()
        found: list[Turn] = []
        for slot in range((WARMUP_ROUNDS + OWN_SLICES) * len(trials)):
            participant = next(order)
            found.append(Turn(trials[participant], participant, slot, found[-1] if found else None))
        yield found


def noisy_slices(started: float, in_slices: float, seed: int = 1) -> Callable[[Turn], float]:
    """Servers that are faster or slower as they were started, and slices that differ, both by normal logarithms."""
    random = np.random.default_rng(seed)
    luck: dict[int, float] = {}

    def tps(turn: Turn) -> float:
        own = luck.setdefault(turn.planned.index, float(random.normal(0, started)))
        return TPS * math.exp(own + random.normal(0, in_slices))

    return tps


Study = tuple[list[Trial], dict[int, list[SliceRow]]]


def alternate(plan: Plan, tps: Callable[[Turn], float]) -> Study:
    """Returns the trials and their slices. In each slice all clients are active from its begin to its end."""
    slices: dict[int, list[SliceRow]] = {planned.index: [] for planned in plan.trials}
    for block in turns(plan):
        for turn in block:
            begin_s, end_s = (SLICE_S * number for number in (turn.slot, turn.slot + 1))
            clients = plan.load_points[turn.planned.load_point].clients
            slices[turn.planned.index].append(
                slice_row(
                    len(slices[turn.planned.index]), begin_s, clients * SLICE_S, round(tps(turn) * SLICE_S), end_s
                )
            )
    return [_trial(plan, planned, slices[planned.index]) for planned in plan.trials], slices


def slice_row(number: int, begin_s: float, client_s: float, transactions: int, end_s: float) -> SliceRow:
    """Returns the row of the slice in round `number`, which was planned to begin at `begin_s` and ended at `end_s`."""
    return SliceRow(
        phase="warmup" if number < WARMUP_ROUNDS else "measure",
        round=number,
        planned_begin_s=begin_s,
        planned_end_s=begin_s + SLICE_S,
        begin_s=begin_s,
        end_s=end_s,
        client_s=client_s,
        transactions=transactions,
        failures=0,
        mean_us=1e6 * client_s / transactions if transactions else None,
    )


def _trial(plan: Plan, planned: PlannedTrial, rows: list[SliceRow]) -> Trial:
    """Returns a trial as it is stored: its start and its end are those of the whole group of alternating trials."""
    measured = [row for row in rows if row.phase == "measure"]
    trial = make_trial(plan, planned, sum(row.transactions for row in measured) / (SLICE_S * len(measured)))
    at_once = [each for each in plan.trials if (each.block, each.load_point) == (planned.block, planned.load_point)]
    started = START + LOAD_S * plan.trials.index(at_once[0]) // len(at_once)
    return trial.model_copy(update={"started": started.isoformat(), "ended": (started + LOAD_S).isoformat()})
