"""Makes screening studies from factors on the command line, and the study that confirms the winning set-up of a
screening study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.factors import listed_factors, setup_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.study_file import Change, build_study

BASELINE, WINNER = "baseline", "winner"
"""The names of the arms of the study that confirms a winning set-up."""

_LEVELS = 2


def screening(
    factors: Sequence[str],
    origin: str,
    question: str | None,
    seed: int | None,
    sections: Mapping[str, Mapping[str, Any]],
    *,
    change: Change = dict,
) -> StudySpec:
    """Returns the study that screens factors from the command line, such as `jit=on,off`. `sections` are further
    sections of a study file, and `origin` is the source that messages name.

    `change` is a function that is applied to the keys of the study before they are checked. Raises StudyError if the
    factors or keys are invalid.
    """
    given: dict[str, Any] = ({"question": question} if question else {}) | ({"seed": seed} if seed is not None else {})
    parsed = parse_factors(factors)
    data = change({"study": given, "factors": parsed, **sections})
    study = {"question": _question(list(parsed)), "name": "screen", **data["study"]}
    return build_study({**data, "study": study}, origin)


def _question(names: Sequence[str]) -> str:
    """Returns the question of a study that screens these factors. It names all of them, since studies with the same
    question count as several tries of one study."""
    *others, last = names
    return f"Which of {', '.join(others)} and {last} matter?" if others else f"Does {last} matter?"


def parse_factors(texts: Sequence[str]) -> dict[str, list[str]]:
    """Returns the levels of factors from the command line, `NAME=LEVEL,LEVEL`, by the name of the factor. Raises
    StudyError for a text of another form, and for a factor that is named twice."""
    factors: dict[str, list[str]] = {}
    for text in texts:
        name, equals, levels = (part.strip() for part in text.partition("="))
        if not name or not equals or not levels:
            raise StudyError(f"{quoted(text)} is not a factor; write a setting with its two levels, such as jit=on,off")
        if any(name.lower() == other.lower() for other in factors):
            raise StudyError(f"the factor {name} is named twice; name it once, with its two levels")
        factors[name] = [level.strip() for level in levels.split(",")]
        if len(factors[name]) > _LEVELS:
            raise StudyError(
                f"the factor {name} has {len(factors[name])} levels, but a screening study compares two; keep the two "
                "that are furthest apart, and compare the others by `pgtrial compare`; if a level contains a comma, "
                f'write {name} = ["...", "..."] below [factors] in a study file'
            )
    return factors


def confirmation(spec: StudySpec, winner: Mapping[str, str]) -> StudySpec:
    """Returns the study that compares the winning set-up of a screening study with the first level of each factor.
    `winner` has the better level of each factor that the study has decided; the other factors keep their first
    level."""
    factors = spec.factors
    levels = "".join(str(values.index(winner.get(name, values[0]))) for name, values in factors.items())
    arms = {BASELINE: "0" * len(factors), WINNER: levels}
    setups = {arm: SetUp.model_validate(setup_of(factors, of_arm)) for arm, of_arm in arms.items()}
    changed = [factor.labels[1] for factor in listed_factors(factors) if winner.get(factor.name) == factor.second]
    question = f"Is {' with '.join(changed)} faster than the first levels?"
    study = spec.study.model_copy(update={"name": f"{spec.study.name}-confirm", "question": question, "seed": None})
    made = spec.model_copy(update={"factors": {}, "arms": setups, "study": study})
    return made.with_scripts(spec.scripts)
