"""A rule on client programs: each arm has the same program in all its trials."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.verdict.rules.case import Case, Concern, listed, rule


@rule("changed_program", "a client program changed during the study", over_trials=True)
def changed_program(case: Case) -> Iterator[Concern]:
    """Finds programs that report another version in a later trial: the installation was changed during the study."""
    for arm in case.plan.arms:
        names = list(dict.fromkeys(trial.program for trial in case.trials if trial.arm == arm and trial.program))
        if len(names) > 1:
            yield Concern(
                [arm],
                f"The client program of {arm} was {listed(names)} in different trials.",
                "Run the study again, and install nothing while it runs.",
                "withhold",
            )
