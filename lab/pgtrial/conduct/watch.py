"""Canaries around each block, and voiding of disturbed blocks. The judgement does not know the arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from pgtrial.conduct.progress import BlockNoisy, BlockVoid, Listener, Preparing
from pgtrial.conduct.stopping import wall_time
from pgtrial.model.records.disturbances import Canary, CanaryReading, Judgement
from pgtrial.model.records.trial import Trial
from pgtrial.statistics.canaries import REFERENCE, is_off, judge
from pgtrial.store.directory import StudyDirectory

ReadCanary = Callable[[], CanaryReading]

_TRIES = 3
"""Canaries taken before a block until one is not off: what ended a block badly should not spoil the next one."""


class Watch:
    """The canaries of one run of the lab."""

    def __init__(self, study: StudyDirectory, read: ReadCanary, listener: Listener):
        self._study = study
        self._read = read
        self._listener = listener
        self._own: set[int] = set()
        """Numbers of the canaries taken by this lab: an older one says nothing about the machine now."""

    def before(self, block: int, trials: Sequence[Trial]) -> None:
        """Take a canary before a block begins; a block that continues after an interruption has one already."""
        if any(trial.block == block for trial in trials):
            return
        canaries = self._study.canaries()
        if len(canaries) < REFERENCE:
            self._listener(Preparing("taking the first canaries: how fast this machine is without any arm"))
        while len(canaries) < REFERENCE:
            canaries.append(self._take(canaries, "reference", block))
        for _ in range(_TRIES):
            newest = canaries[-1]
            if newest.number in self._own and newest.next_block == block and not is_off(canaries):
                break
            canaries.append(self._take(canaries, "before", block))

    def watches(self, block: int) -> bool:
        """Whether the block is to be judged when it ends: there is a canary from before it."""
        canaries = self._study.canaries()
        return bool(canaries) and canaries[-1].next_block == block

    def judge(self, block: int, trials: Sequence[Trial]) -> Judgement:
        """Take the canary after a block and store the judgement; a voided block is set aside."""
        canaries = self._study.canaries()
        reading = self._read()
        ended = [trial for trial in trials if trial.block == block]
        judgement = judge(canaries, reading, block, self._study.plan.max_blocks).model_copy(
            update={
                "spent_s": round(sum(map(wall_time, ended)), 3),
                "failed": dict(Counter(trial.arm for trial in ended if trial.status == "failed")),
            }
        )
        void = judgement.outcome == "void"
        next_block = block if void else self._next_block(trials)
        self._store(Canary(number=canaries[-1].number + 1, role="after", next_block=next_block, reading=reading,
                           judged=judgement))  # fmt: skip
        if void:
            self._study.finish_void()
            self._listener(BlockVoid(block, judgement.reason))
        elif judgement.outcome == "noisy":
            self._listener(BlockNoisy(block, judgement.reason))
        return judgement

    def _take(self, canaries: Sequence[Canary], role: Literal["reference", "before"], block: int) -> Canary:
        number = canaries[-1].number + 1 if canaries else 0
        return self._store(Canary(number=number, role=role, next_block=block, reading=self._read()))

    def _store(self, canary: Canary) -> Canary:
        self._study.write_canary(canary)
        self._own.add(canary.number)
        return canary

    def _next_block(self, trials: Sequence[Trial]) -> int | None:
        done = {trial.index for trial in trials}
        return next((planned.block for planned in self._study.plan.wanted if planned.index not in done), None)
