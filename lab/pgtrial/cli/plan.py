"""`pgtrial plan`: what a study would do, without doing it."""

from __future__ import annotations

import itertools
import json as json_format
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pgtrial.arm.base import Needs
from pgtrial.cli.conduct import warn
from pgtrial.cli.place import plan_now
from pgtrial.cli.study_file import PROFILE_HELP, read
from pgtrial.data.sizes import needed_mb
from pgtrial.store.records import Plan
from pgtrial.study.plan import fewest_blocks, warnings
from pgtrial.study.spec import StudySpec
from pgtrial.study.units import format_duration

_SHOWN_BLOCKS = 3


def command(
    study: Annotated[str, typer.Argument(help="A study file, or a bundled study (@NAME).")],
    profile: Annotated[str | None, typer.Option(help=PROFILE_HELP, show_default=False)] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the order; default: the study's, else drawn.", min=0)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
) -> int:
    """Show load points, blocks, looks, time and disk space of a study, and the order of its first blocks."""
    spec = read(study, profile)
    if seed is not None:
        spec = spec.model_copy(update={"study": spec.study.model_copy(update={"seed": seed})})
    plan = plan_now(spec)
    found = warnings(spec, plan)
    if json:
        print(json_format.dumps({**_estimates(spec, plan), "warnings": found, "plan": plan.model_dump()}, indent=1))
        return 0
    for warning in found:
        warn(warning)
    _print(spec, plan)
    return 0


def _estimates(spec: StudySpec, plan: Plan) -> dict[str, Any]:
    return {
        "trials": len(plan.trials),
        "seconds_at_most": round(plan.trial_estimate_s * len(plan.trials)),
        "fewest_blocks": fewest_blocks(spec, plan),
        "disk_mb": max(needed_mb(data, spec.load.fillfactor) for data in Needs.of(spec).data),
    }


def _print(spec: StudySpec, plan: Plan) -> None:
    console = Console()
    estimates = _estimates(spec, plan)
    per_block = len(plan.load_points) * len(plan.arms)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column()
    rows.add_row("question", spec.study.question)
    rows.add_row("arms", ", ".join(f"{arm} (baseline)" if arm == plan.baseline else arm for arm in plan.arms))
    for arm in plan.arms:
        if plan.declared[arm]:
            rows.add_row("", f"{arm} differs in {', '.join(plan.declared[arm])}")
    for number, point in enumerate(plan.load_points):
        rows.add_row("load points" if number == 0 else "", f"{point.label}, {point.protocol}")
    rows.add_row(
        "trials",
        f"{len(plan.load_points)} load points x {len(plan.arms)} arms x {plan.max_blocks} blocks = {len(plan.trials)}, "
        + (
            "each of all tasks to their end"
            if spec.load.runs_tasks
            else f"each {format_duration(plan.warmup_s)} of warm-up and {format_duration(plan.duration_s)} measured"
        ),
    )
    early = ", less if a look decides earlier" if plan.stop_early and len(plan.looks) > 1 else ""
    rows.add_row("time", f"about {format_duration(estimates['seconds_at_most'])} at most{early}")
    rows.add_row("disk", f"about {estimates['disk_mb']:,} MB while it runs, with the largest data")
    looks = ", ".join(map(str, plan.looks)) or f"none: the first possible one is at {estimates['fewest_blocks']} blocks"
    if plan.deployments > 1:
        rows.add_row("deployments", f"{plan.deployments} of each arm, one pair for each block")
    rows.add_row("looks", f"after block {looks}; margin {plan.margin:.3g}" if plan.looks else looks)
    rows.add_row("seed", f"{plan.seed}{'' if spec.study.seed is not None else ' (drawn now; a run draws its own)'}")
    for block in range(min(_SHOWN_BLOCKS, plan.max_blocks)):
        trials = plan.trials[block * per_block : (block + 1) * per_block]
        groups = itertools.groupby(trials, key=lambda trial: trial.load_point)
        order = "; ".join(f"{plan.load_points[point].slug}: {', '.join(t.arm for t in runs)}" for point, runs in groups)
        on = f" on deployment {(trials[0].place or 0) + 1}" if plan.deployments > 1 else ""
        rows.add_row("order" if block == 0 else "", f"block {block + 1}{on}: {order}")
    console.print(rows)
