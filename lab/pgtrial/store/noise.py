"""noise.json in the state directory: the noise of the studies that ran on this machine. It holds no passwords."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.records.noise import Conditions, Noise, NoiseRecord
from pgtrial.store.shared_records import change_shared, read_shared

_KEPT = 100
"""Studies; older ones are dropped."""
_ENOUGH_BLOCKS = 8
_LIKE = 2.0
"""Trials at most so many times longer or shorter are alike: longer ones are less noisy, by how much is not known."""


def read_noise(path: Path) -> list[Noise]:
    """The studies of the record; none if there is no record. Raises StoreError if it is damaged or newer."""
    return read_shared(path, NoiseRecord, "the next study").studies


def keep_noise(path: Path, noise: Noise) -> None:
    """Put a study's noise into the record, in place of what the same study had. A damaged record is begun anew.

    Raises StoreError if the record is newer or cannot be written. The caller keeps other labs from writing.
    """

    def with_it(record: NoiseRecord) -> NoiseRecord:
        others = [each for each in record.studies if (each.study, each.created) != (noise.study, noise.created)]
        return NoiseRecord(studies=[*others, noise][-_KEPT:])

    change_shared(path, NoiseRecord, with_it)


def noise_under(conditions: Conditions, studies: list[Noise]) -> Noise | None:
    """The latest study under these conditions with eight blocks or more, else the one with the most blocks."""
    alike = [each for each in reversed(studies) if _alike(each.conditions, conditions)]
    return max(alike, key=lambda each: min(each.blocks, _ENOUGH_BLOCKS), default=None)


def _alike(there: Conditions, here: Conditions) -> bool:
    same = there.model_copy(update={"duration_s": here.duration_s}) == here
    shorter, longer = sorted((there.duration_s, here.duration_s))
    return same and longer <= _LIKE * shorter
