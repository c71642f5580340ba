"""noise.json in the state directory: the noise of the studies that ran on this machine. It holds no passwords."""

from __future__ import annotations

from pathlib import Path

from pydantic_core import from_json

from pgtrial.model.errors import StoreError
from pgtrial.model.records.noise import Conditions, Noise, NoiseRecord
from pgtrial.store.files import first_line, write_atomically

_KEPT = 100
"""Studies; older ones are dropped."""
_ENOUGH_BLOCKS = 8
_LIKE = 2.0
"""Trials at most so many times longer or shorter are alike: longer ones are less noisy, by how much is not known."""


class NewerRecord(StoreError):
    """The record was written by a newer pgtrial, and must not be replaced."""


def read_noise(path: Path) -> list[Noise]:
    """The studies of the record; none if there is no record. Raises StoreError if it is damaged or newer."""
    try:
        data = from_json(path.read_bytes())
        version = data.get("format") if isinstance(data, dict) else None
        if isinstance(version, int) and version > NoiseRecord().format:
            raise NewerRecord(f"{path} is ignored: a newer pgtrial wrote it (format {version}); upgrade to use it")
        return NoiseRecord.model_validate(data).studies
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path} is ignored: it cannot be read ({error.strerror})") from error
    except ValueError as error:
        why = first_line(error)
        raise StoreError(f"{path} is ignored: it is damaged ({why}); the next study begins it anew") from error


def keep_noise(path: Path, noise: Noise) -> None:
    """Put a study's noise into the record, in place of what the same study had. A damaged record is begun anew.

    Raises StoreError if the record is newer or cannot be written. The caller keeps other labs from writing.
    """
    try:
        before = read_noise(path)
    except NewerRecord:
        raise
    except StoreError:
        before = []
    others = [each for each in before if (each.study, each.created) != (noise.study, noise.created)]
    try:
        write_atomically(path, NoiseRecord(studies=[*others, noise][-_KEPT:]).model_dump_json(indent=1))
    except StoreError as error:
        raise StoreError(f"{path} cannot be written ({getattr(error.__cause__, 'strerror', error)})") from error


def noise_under(conditions: Conditions, studies: list[Noise]) -> Noise | None:
    """The latest study under these conditions with eight blocks or more, else the one with the most blocks."""
    alike = [each for each in reversed(studies) if _alike(each.conditions, conditions)]
    return max(alike, key=lambda each: min(each.blocks, _ENOUGH_BLOCKS), default=None)


def _alike(there: Conditions, here: Conditions) -> bool:
    same = there.model_copy(update={"duration_s": here.duration_s}) == here
    shorter, longer = sorted((there.duration_s, here.duration_s))
    return same and longer <= _LIKE * shorter
