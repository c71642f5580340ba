"""The factors of a screening study, `[factors]` in a study file: which values they may have, and the set-ups that
follow from their levels.

A screening study has no arms of its own. Its two arms stand for the two set-ups of each block: a set-up whose levels
the plan has drawn, and its complement. As the arms of the study file they have all first and all second levels, so that
pgtrial checks, prepares and declares every level before the first trial.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pgtrial.model import marks
from pgtrial.model.quoting import quoted
from pgtrial.model.records.screens import Factor
from pgtrial.model.study.setup import SetUp
from pgtrial.model.units import SETTING_UNITS, plural

DRAWN, COMPLEMENT = "drawn", "complement"
"""The names of the two arms of a screening study."""

_KEYS = ("postgres", "huge_pages", "thp", "governor", "io_scheduler", "numa", "cpus")
"""The keys of an arm that can be factors. Any other name of a factor is the name of a setting."""

_LEVELS = 2


def setup_of(factors: Mapping[str, Sequence[Any]], levels: str) -> dict[str, Any]:
    """Returns the keys of an arm in which each factor has one of its levels. `levels` has a digit for each factor: 0
    for its first level and 1 for its second one."""
    chosen = {name: values[int(level)] for (name, values), level in zip(factors.items(), levels, strict=True)}
    settings = {name: value for name, value in chosen.items() if name not in _KEYS}
    keys = {name: value for name, value in chosen.items() if name in _KEYS}
    return {**keys, **({"settings": settings} if settings else {})}


def ends_of(factors: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Returns the levels that each arm of a screening study has in the study file: the first level of all factors, and
    the second level of all factors."""
    return {DRAWN: "0" * len(factors), COMPLEMENT: "1" * len(factors)}


def arms_of(factors: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """Returns the arms of a screening study, with the keys that they have in a study file."""
    return {arm: setup_of(factors, levels) for arm, levels in ends_of(factors).items()}


def in_factors(message: str) -> str:
    """Returns a message in which the arms of a screening study, which the user has not written, are called by the
    section of its factors. The result has marks, like the message."""
    for arm in (DRAWN, COMPLEMENT):
        for mark in (f"{marks.at_arm(arm)}settings.", marks.at_arm(arm)):
            message = message.replace(mark, marks.heading("factors"))
        message = message.replace(marks.arm(arm), marks.section("factors"))
    return message


def have_levels(arms: Mapping[str, SetUp], factors: Mapping[str, Sequence[Any]]) -> bool:
    """True if these arms are the two of a screening study and have the levels of its factors. They may have further
    keys, such as the program of a job. Raises ValueError (of pydantic) if a key of an arm cannot have the level of a
    factor."""
    expected = {arm: SetUp.model_validate(keys) for arm, keys in arms_of(factors).items()}
    return list(arms) == list(expected) and all(
        getattr(arms[arm], key) == getattr(setup, key)
        for arm, setup in expected.items()
        for key in setup.model_fields_set
    )


def listed_factors(factors: Mapping[str, Sequence[str]]) -> list[Factor]:
    """Returns the factors of a study file as records, in their order."""
    return [Factor(name=name, first=first, second=second) for name, (first, second) in factors.items()]


def complement_of(levels: str) -> str:
    """Returns the levels of the complement, in which each factor has its other level."""
    return levels.translate(str.maketrans("01", "10"))


def objections_to_factors(factors: Any) -> Iterator[str]:
    """Yields what is wrong with the factors of a study file, each as a sentence. The argument is the unchecked value of
    `[factors]`."""
    form = 'write for example jit = ["on", "off"]'
    if not isinstance(factors, Mapping) or not factors:
        yield f"{marks.section('factors')} needs at least one factor with two levels; {form}"
        return
    for name, times in Counter(str(name).lower() for name in factors).items():
        if times > 1:
            yield f"the factor {name} is named {times} times; name each factor once, with its two levels"
    for name, levels in factors.items():
        if name in SetUp.model_fields and name not in _KEYS:
            yield (
                f"{name} cannot be a factor; factors are settings of PostgreSQL and the keys {', '.join(_KEYS)}; "
                "`pgtrial compare` compares set-ups that differ in other keys"
            )
        elif not isinstance(levels, list) or not all(isinstance(level, str | int | float) for level in levels):
            yield f"the factor {name} needs a list of two levels; {form}"
        elif len(levels) < _LEVELS or len({str(level) for level in levels}) < len(levels):
            yield f"the factor {name} has {_counted(levels)}, but a screening study compares two; {form}"
        elif len(levels) > _LEVELS:
            yield (
                f"the factor {name} has {len(levels)} levels, but a screening study compares two; keep the two that "
                "are furthest apart, and compare the others by `pgtrial compare`"
            )
        elif len({_meaning(level) for level in levels}) < _LEVELS:
            same = " and ".join(_as_written(level) for level in levels)
            yield f"the factor {name} has two levels that mean the same: {same}; give it levels that differ"
        elif name == "postgres" and not all(str(level).isdigit() for level in levels):
            yield f"the levels of the factor postgres must be major versions, such as {quoted('17')} and {quoted('18')}"


_WORDS = {"true": "on", "yes": "on", "false": "off", "no": "off"}
_QUANTITY = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(SETTING_UNITS)})?")


def _as_written(level: Any) -> str:
    return ("on" if level else "off") if isinstance(level, bool) else str(level)


def _meaning(level: Any) -> object:
    """Returns a value that is equal for two levels that PostgreSQL reads alike: words for true and false, numbers, and
    sizes and times in other units."""
    text = _as_written(level).strip()
    if quantity := _QUANTITY.fullmatch(text):
        number, unit = quantity.groups()
        kind, size = SETTING_UNITS[unit] if unit is not None else (None, 1.0)
        return kind, float(number) * size
    return _WORDS.get(text.lower(), text.lower() if text.lower() in _WORDS.values() else text)


def _counted(levels: Sequence[Any]) -> str:
    different = len({str(level) for level in levels})
    return plural(different, "level") if different == len(levels) else f"the level {levels[0]} twice"
