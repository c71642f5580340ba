"""A rule on client programs, which checks that each arm runs the same version of its program in all trials."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.verdict.rules.case import Case, Concern, listed, rule


@rule("changed_program", "a client program changed during the study", over_trials=True)
def changed_program(case: Case) -> Iterator[Concern]:
    """Finds client programs that report different versions in different trials, because the installation was changed
    during the study."""
    for arm in case.plan.arms:
        names = list(dict.fromkeys(trial.program for trial in case.trials if trial.arm == arm and trial.program))
        if len(names) > 1:
            yield Concern(
                [arm],
                f"The client program of {arm} was {listed(names)} in different trials.",
                "Run the study again, and install nothing while it runs.",
                "withhold",
            )
