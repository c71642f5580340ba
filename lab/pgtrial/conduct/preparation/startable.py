"""Checks before the first trial of a screening study that servers start with the levels of its factors, alone and
together.

Levels that PostgreSQL accepts one by one may exclude each other, such as wal_level = minimal and max_wal_senders = 10.
A study of such factors is refused. Each block measures a set-up and its complement, so that two factors of which one
pair of levels cannot start would have to be drawn in the same way in all blocks, and no number of blocks could tell
their effects apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Plan
from pgtrial.model.units import plural
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.drawn_setups import DrawnArm
from pgtrial.verdict.rules.case import listed

_BLOCKS = 16
"""The number of blocks whose set-ups are started before the first trial. Each pair of levels is then started with a
probability of 99.99%, and each three levels with one of 98%."""


def check_setups(plan: Plan, arms: Mapping[str, Arm], needs: Needs, listener: Listener) -> None:
    """Starts servers with the first levels, with each factor's second level, and with the set-ups of the first blocks.
    Raises StudyError for a level, or for levels together, with which no server starts.

    Does nothing for a study without factors, and for factors that are settings of sessions on one server: whether a
    session accepts them has been checked with the arms.
    """
    arm = arms[plan.baseline]
    if not isinstance(arm, DrawnArm) or plan.shares_server:
        return
    listener(Preparing(f"starting servers with the levels of {plural(len(plan.factors), 'factor')}"))
    for levels in _tried(plan):
        if (refused := _refusal(arm, levels, needs)) is not None:
            raise StudyError(_sentence(plan, arm, levels, refused, needs))


def _tried(plan: Plan) -> Iterator[str]:
    """Yields the levels with which servers are started: all first levels, the second level of each factor by itself,
    all second levels, and then those of the first blocks. None is yielded twice."""
    number = len(plan.factors)
    alone = ("".join("01"[other == at] for other in range(number)) for at in range(number))
    drawn = (trial.levels for trial in plan.trials if trial.block < _BLOCKS and trial.levels is not None)
    yield from dict.fromkeys(["0" * number, *alone, "1" * number, *drawn])


def _refusal(arm: DrawnArm, levels: str, needs: Needs) -> str | None:
    """Returns the message of a server that does not start with these levels; None if it starts."""
    try:
        arm.check_levels(levels, needs)
    except StudyError as error:
        return str(error).removeprefix(f"arms.{arm.name}: ")
    return None


def _sentence(plan: Plan, arm: DrawnArm, levels: str, refused: str, needs: Needs) -> str:
    """Returns the message about levels with which no server starts. It names as few second levels as possible: levels
    are put back to the first one as long as the server still does not start."""
    for at, level in enumerate(levels):
        fewer = f"{levels[:at]}0{levels[at + 1 :]}"
        if level == "1" and fewer.count("1") and (still := _refusal(arm, fewer, needs)) is not None:
            levels, refused = fewer, still
    if "1" not in levels:
        return f"the server does not start with the first level of each factor: {refused}; correct this, or the levels"
    second = [factor.labels[1] for factor, level in zip(plan.factors, levels, strict=True) if level == "1"]
    if len(second) == 1:
        return f"the server does not start with {second[0]}: {refused}; give this factor another level, or leave it out"
    return (
        f"the server does not start with {listed(second)} together: {refused}; leave one of these factors out, since "
        "their effects cannot be told apart if they cannot have these levels at the same time"
    )
