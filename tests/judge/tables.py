"""Tables of numbers as another harness writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pgtrial.judge.comparing import Asked
from pgtrial.judge.draw import draw
from pgtrial.judge.judgement import Judgement
from pgtrial.judge.judging import judge
from pgtrial.judge.numbers import Numbers, read_numbers

ONE_SETUP = (123_000, 131_000, 150_000, 160_000, 188_000, 206_000)
"""Transactions per second of one set-up in six runs, on a machine that became faster and faster."""


def text_of(rows: Iterable[Sequence[object]], header: str = "arm,value") -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def table(folder: Path, text: str | bytes, name: str = "runs.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def numbers_in(folder: Path, text: str | bytes, column: str = "value") -> Numbers:
    return read_numbers(str(table(folder, text)), column)


def judged(folder: Path, text: str | bytes, column: str = "value", **asked: object) -> Judgement:
    return judge(numbers_in(folder, text, column), Asked(**asked))


def drawn_series(
    blocks: int, planted: Mapping[str, float], *, noise: float = 0.02, seed: int = 4
) -> list[tuple[int, str, float]]:
    """Returns rows of block, arm and value in a drawn order: the level wanders from block to block, and each arm has
    its planted factor."""
    generator = np.random.default_rng(seed)
    rows, level = [], 1000.0
    for number, order in enumerate(draw(list(planted), blocks, seed).blocks, 1):
        level *= math.exp(generator.normal(0, 0.03))
        rows += [(number, arm, level * planted[arm] * math.exp(generator.normal(0, noise))) for arm in order]
    return rows
