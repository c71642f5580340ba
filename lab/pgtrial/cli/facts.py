"""`pgtrial facts`: prints the hardware and software of this machine, or of each arm of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from pgtrial.cli import study_options
from pgtrial.cli.output import json_line, stopped
from pgtrial.cli.study_options import Profile, read
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.conduct.arm_facts import facts_of_server
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.evidence.collect.collect import collect_machine
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.machines.interrupt import Interrupted, interruptible
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.model.records.plan import Drawn
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.table import Table, by_position
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.store.bundle import is_bundle, open_study
from pgtrial.store.files import values_of
from pgtrial.store.state import state_root
from pgtrial.store.temporary import temporary_folder
from pgtrial.verdict.rules import audit
from pgtrial.verdict.rules.case import known_value

_NOT_SHOWN = ("defaults", "sources")


def facts_command(
    study: Annotated[
        str | None,
        typer.Argument(
            help="A study file or a bundled study (@NAME): pgtrial starts the servers of its arms and examines them. "
            "Or a study directory or a bundle: pgtrial shows the stored facts. Default: this machine."
        ),
    ] = None,
    profile: Profile = None,
    fleet: study_options.Fleet = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the facts as JSON, with all settings of the servers.")
    ] = False,
) -> int:
    """Show the hardware and software of this machine, or of the arms of a study. For a study, also show the differences
    between the arms that make the comparison unfair.

    With --fleet the differences are judged as if the machines of this Ray cluster made the load. The cluster itself is
    not contacted.
    """
    if study is None:
        if profile is not None or fleet is not None:
            raise StudyError("--profile and --fleet apply only to a study; name a study, or leave these options out")
        facts, audited = {"this machine": collect_machine(_existing(state_root()), measure=True)}, None
    elif Path(study).is_dir() or is_bundle(Path(study)):
        if profile is not None or fleet is not None:
            raise StudyError(
                "--profile and --fleet apply only to a study file; leave them out, since the facts of this study "
                "are stored already"
            )
        with open_study(Path(study)) as stored:
            facts, audited = _titled(stored.deployment_facts().values()), stored.audit()
        if not facts:
            raise StudyError(f"{study} has no facts yet; `pgtrial run {study}` collects them")
    else:
        spec = study_options.by_fleet(read(study, profile), fleet, None, share=False)
        try:
            with interruptible():
                facts, audited = _of_study(spec)
        except Interrupted as interrupted:
            return stopped(interrupted)
    with values_of(Path(study)) if study is not None else nullcontext():
        _print(facts, audited, as_json=as_json)
    return 0


def _print(by_server: dict[str, Facts], audited: Audit | None, *, as_json: bool) -> None:
    if as_json:
        content: dict[str, Any] = {"facts": {arm: facts.model_dump() for arm, facts in by_server.items()}}
        content |= {"audit": audited.model_dump()} if audited is not None else {}
        json_line(content, indent=2)
    else:
        _show(by_server, audited)


def _of_study(spec: StudySpec) -> tuple[dict[str, Facts], Audit]:
    design = Design(spec)
    number = design.deployments
    deployments = range(number) if number > 1 else [None]
    of_arms: dict[str, list[Facts]] = {}
    with Workspace() as workspace, temporary_folder() as logs:
        arms = make_arms(design, workspace)
        needs = Needs.of(design)
        for arm in arms.values():
            arm.check(needs)
            for deployment in deployments:
                # a server without data has the same facts as one with data, and starts faster
                with arm.serve(NO_TABLES, logs / "server.log", {}, Drawn(deployment)) as target:
                    facts = facts_of_server(arm, target, measure=True)
                of_arms.setdefault(arm.name, []).append(facts.model_copy(update={"deployment": deployment}))
    plan = make_plan(spec, spec.study.seed or 0, datetime.now(UTC).isoformat(timespec="seconds"))
    audited = audit(plan, {arm: known[0] for arm, known in of_arms.items()}, design, of_arms)
    return _titled(of_arms.values()), audited


def _titled(deployments: Iterable[list[Facts]]) -> dict[str, Facts]:
    return {_title(facts): facts for known in deployments for facts in known}


def _title(facts: Facts) -> str:
    return facts.arm if facts.deployment is None else f"{facts.arm}, deployment {facts.deployment + 1}"


def _existing(path: Path) -> Path:
    return next(part for part in (path, *path.absolute().parents) if part.exists())


def _show(by_arm: dict[str, Facts], audited: Audit | None) -> None:
    """Prints a table with a row for each fact (such as the processor or a setting of the server) and a column for each
    arm. Rows in which the arms differ are bold."""
    rows = []
    for group in next(iter(by_arm.values())).facts:
        if group in _NOT_SHOWN:
            continue
        for name in dict.fromkeys(name for facts in by_arm.values() for name in facts.facts.get(group, {})):
            rows.append([f"{group}.{name}", *(_text(known_value(facts, group, name)) for facts in by_arm.values())])
    console = Terminal()
    console.print(for_terminal(Table("", rows, by_position("fact", *by_arm), lambda row: len(set(row[1:])) > 1)))
    for finding in audited.findings if audited is not None else ():
        console.print("", Text.assemble((finding.severity, "bold"), f": {finding.message} {finding.cure}"))


def _text(value: Any) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
