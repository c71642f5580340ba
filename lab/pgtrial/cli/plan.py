"""`pgtrial plan`: shows what a study would do, without running it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from rich.table import Column, Table

from pgtrial.cli import study_options
from pgtrial.cli.output import json_line, line, warn
from pgtrial.cli.progress import shown
from pgtrial.cli.rehearsed import show_plans
from pgtrial.cli.study_options import Profile, Seed, read
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.planning.declared import metrics_in_words
from pgtrial.conduct.planning.interleaving import why_not
from pgtrial.conduct.planning.lengths import in_words
from pgtrial.conduct.planning.outlook import Outlook, cautions, in_one_line, outlook
from pgtrial.conduct.planning.plan import fewest_blocks, study_estimate, warnings
from pgtrial.conduct.planning.scope import UNNAMED
from pgtrial.conduct.preparation.rehearsal import has_own
from pgtrial.conduct.preparation.rehearsed_plans import has_listed
from pgtrial.conduct.study_directory import plan_now
from pgtrial.loads.data.data import needed_mb
from pgtrial.loads.target import CONNECT_TIMEOUT_S, open_session
from pgtrial.model.errors import ArmError, BudgetError, StudyError
from pgtrial.model.marks import in_toml
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.study.design import Design
from pgtrial.model.study.fleet import LOCAL, FleetSection
from pgtrial.model.study.servers import MadeHere, conninfo_of, parts_of
from pgtrial.model.study.sources import is_source
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import as_written, format_duration, grouped, plural, shortened
from pgtrial.report.kinds import words_of
from pgtrial.servers.abilities import check_abilities
from pgtrial.servers.arm import Needs
from pgtrial.servers.connection_errors import address_of, reason_of, with_defaults
from pgtrial.servers.given import without_password
from pgtrial.servers.installations import resolve
from pgtrial.statistics.scalability import FEWEST_BLOCKS
from pgtrial.store.directory import STUDY, StudyDirectory
from pgtrial.verdict.rules.case import listed
from pgtrial.verdict.sweeps import sweeps

_SHOWN_BLOCKS = 3


def plan_command(
    study: Annotated[str, typer.Argument(help="A study file, a bundled study (@NAME), or the directory of a study.")],
    *,
    profile: Profile = None,
    seed: Seed = None,
    fleet: study_options.Fleet = None,
    machines: study_options.Machines = None,
    share_machines: study_options.ShareMachines = False,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Start the servers, load the data, run each script once on every arm, and compare how PostgreSQL "
            "plans its statements on the arms.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the complete plan as JSON.")] = False,
) -> int:
    """Show what a study would do: load points, blocks, looks (interim analyses), time, disk space, the server of each
    arm, and the order of the first blocks.

    Without --rehearse pgtrial connects to no server and no machine, so that they need not exist yet. With --rehearse
    they must exist. Servers that pgtrial starts itself then run the load on a copy of the data. A server that you name
    by a connection string only parses the statements. If the arms have scripts of their own that only read, it also
    executes these scripts in read-only transactions, so that pgtrial can compare the rows.
    """
    if rehearse and json:
        raise StudyError("--json prints the plan and cannot be combined with --rehearse; leave out one of the two")
    if (Path(study) / STUDY).is_file():
        given = (profile, seed, fleet, machines)
        if rehearse or share_machines or any(option is not None for option in given):
            raise StudyError(
                f"{study} is the directory of a study, whose plan is fixed; leave out all options except --json"
            )
        there = StudyDirectory.open(Path(study))
        spec, plan = there.spec, there.plan
    else:
        spec = study_options.by_fleet(read(study, profile, seed), fleet, machines, share=share_machines)
        plan = _planned(spec, rehearse=rehearse)
    design = Design.planned(spec, plan)
    expected = outlook(design, plan)
    marked = [*_not_here(design), *_lacking(design), *warnings(design, plan), *cautions(expected, plan)]
    sentences = list(map(in_toml, marked))
    if json:
        beforehand = (expected or Outlook()).model_dump(exclude={"note"})
        content = {**_estimates(design, plan), **beforehand, "warnings": sentences, "plan": plan.model_dump()}
        json_line(content, indent=1)
        return 0
    for warning in sentences:
        warn(warning)
    rows = Table.grid(Column(style="dim"), Column(), padding=(0, 2))
    for name, text in [
        *_what(spec, plan),
        *_where(design, plan, ask=rehearse),
        *_how_long(design, plan, expected),
        *_order(plan),
    ]:
        rows.add_row(name, text)
    Terminal().print(rows)
    if rehearse:
        _rehearse(spec, plan)
    return 0


def _planned(spec: StudySpec, *, rehearse: bool) -> Plan:
    """Returns the plan that a study would have if it started now. Raises StudyError.

    If `rehearse` is true, the load is run once on each arm (the rehearsal). If the budget is too short for a verdict,
    the error is raised only after the rehearsal, since the rehearsal may find graver errors.
    """
    try:
        return plan_now(spec)
    except BudgetError as error:
        if rehearse:
            longer = spec.with_verdict(budget=2 * error.needed_s)
            _rehearse(longer, plan_now(longer))
        raise


def _rehearse(spec: StudySpec, plan: Plan) -> None:
    design = Design.planned(spec, plan)
    if not has_own(design) and not has_listed(design):
        line("rehearsal: nothing to rehearse, since the load comes with pgtrial and contains no SQL of your own")
        return
    # imported here, since importing the code that runs studies takes time and most plans are only shown
    from pgtrial.conduct.run_study import rehearse_alone  # noqa: PLC0415

    with shown(Terminal(), as_json=False) as listener:
        plans = rehearse_alone(spec, plan, listener)
    if has_own(design):
        line("rehearsal: the load ran once on every arm without an error")
    show_plans(plan, plans)


def _not_here(design: Design) -> Iterator[str]:
    """Yields a sentence for each arm whose server is not installed on this machine."""
    for arm, server in design.servers.items():
        if isinstance(server, MadeHere) and not is_source(server.postgres):
            try:
                resolve(server.postgres)
            except StudyError as error:
                yield f"arms.{arm}: on this machine the study would fail at its start: {error}"


def _lacking(design: Design) -> Iterator[str]:
    """Yields a sentence if the data of the study need something, such as an extension, that a server on this machine
    does not have."""
    if any(_not_here(design)):
        return
    try:
        check_abilities(design, Needs.of(design).data)
    except (ArmError, StudyError) as error:
        yield f"on this machine the study would fail at its start: {error}"


def _estimates(design: Design, plan: Plan) -> dict[str, Any]:
    return {
        "trials": len(plan.trials),
        "seconds_at_most": round(study_estimate(plan)),
        "fewest_blocks": fewest_blocks(design, plan),
        "disk_mb": max(needed_mb(data) for data in Needs.of(design).data),
        "places": [
            {"arms": shared.arms, "places": shared.names or "kept copies of the data"}
            for shared in design.shared_storage
        ],
        "made_on_given_servers": _made_on_given(design),
        "not_interleaved": why_not(design) if design.load.interleave != "off" else None,
        "fleet": design.spec.fleet.model_dump() if design.spec.fleet is not None else None,
    }


def _what(spec: StudySpec, plan: Plan) -> Iterator[tuple[str, str]]:
    yield "question", spec.study.question
    yield "arms", ", ".join(f"{arm} (baseline)" if arm == plan.baseline else arm for arm in plan.arms)
    for number, factor in enumerate(plan.factors):
        yield "factors" if number == 0 else "", f"{factor.name}: {factor.first} or {factor.second}"
    for arm in plan.arms:
        if plan.declared[arm] and not plan.factors:
            yield "", f"{arm} differs in {', '.join(plan.declared[arm])}"
    for number, (arm, script) in enumerate(plan.load_points[0].of_arms.items()):
        text = shortened(" ".join(spec.scripts[script].split()), _SHOWN_SCRIPT)
        yield "scripts" if number == 0 else "", f"{arm} runs {script}: {text}"
    for number, point in enumerate(plan.load_points):
        yield "load points" if number == 0 else "", f"{point.label}, {point.protocol}"
    for number, text in enumerate(_curves(plan)):
        yield "curves" if number == 0 else "", text


def _curves(plan: Plan) -> Iterator[str]:
    """Yields one sentence for each curve that the study will fit: the universal scalability law for the throughput over
    the number of clients, or a broken line over the size of the data, with cliffs where the throughput falls."""
    for sweep in sweeps(plan, "clients"):
        law = f"a scalability law of each arm over {len(sweep.numbers)} numbers of clients"
        yield f"{law}, from block {FEWEST_BLOCKS} on ({plan.load_points[sweep.points[0]].load})"
    for sweep in sweeps(plan, "scale"):
        unknown = "; reads cannot confirm them, for all arms are sessions of one server" if plan.shares_server else ""
        yield f"cliffs of each arm over {len(sweep.numbers)} scales{unknown}"


def _where(design: Design, plan: Plan, *, ask: bool) -> Iterator[tuple[str, str]]:
    """Yields the lines that say where the servers, the load and the data are. With `ask`, pgtrial connects to the given
    servers, which the study names by their connection strings, to ask for their version."""
    if plan.interleaving is not None:
        slices = f"{plan.interleaving.slice_s * 1000:g} ms"
        together = (
            "all arms are sessions of one server" if plan.interleaving.shared_server else "all servers are up at once"
        )
        yield "interleaved", f"{together}, and the load alternates between them every {slices}"
    elif design.load.interleave == "auto":
        yield "interleaved", f"no: {why_not(design)}"
    for number, text in enumerate(_made_on_given(design)):
        yield "will make" if number == 0 else "", text
    named = {arm: hosts for arm, hosts in plan.hosts.items() if any(map(_is_named, hosts))}
    for number, (arm, hosts) in enumerate(named.items()):
        yield "hosts" if number == 0 else "", f"{arm}: {', '.join(_host(host) for host in hosts)}"
    for number, text in enumerate(_given_servers(design, ask=ask)):
        yield "servers" if number == 0 else "", text
    for number, (arm, names) in enumerate(_altered(design)):
        what = f"{', '.join(names)} by ALTER SYSTEM for each trial, put back after it"
        yield "settings" if number == 0 else "", f"{arm}: {what}"
    if design.spec.fleet is not None:
        yield "load from", _fleet(design.spec.fleet)
    elif plan.hosts:
        yield "load from", "this machine"
    for number, shared in enumerate(design.shared_storage):
        what = listed(shared.names) if shared.names else "the kept copies of their data"
        turns = "takes turns" if len(shared.arms) == 1 else "take turns"
        yield "places" if number == 0 else "", f"{listed(shared.arms)} {turns} on {what}"
    if plan.deployments > 1:
        trials_at = Counter(trial.place for trial in plan.trials)
        blocks = sorted({number // (len(plan.load_points) * len(plan.arms)) for number in trials_at.values()})
        yield (
            "deployments",
            f"{plan.deployments} of each arm; each block measures one of each arm, so that each deployment takes part "
            f"in {' or '.join(map(str, blocks))} of the {plural(plan.end, 'block')}",
        )
    yield "scope", plan.scope


def _altered(design: Design) -> Iterator[tuple[str, list[str]]]:
    """Yields each arm whose given server (a server that the study names by a connection string) pgtrial changes by
    ALTER SYSTEM, with the names of the settings that it changes."""
    for arm, server in design.given.items():
        names = [name for name in server.settings if name not in design.sessions.get(arm, {})]
        if names and (arm == design.baseline or not design.sessions):
            yield arm, names


def _made_on_given(design: Design) -> list[str]:
    """Returns a line for each database of a given server, which is a server that the study names by a connection
    string. The line lists the tables that a run would create in this database if they are missing."""
    texts = []
    for dsn in dict.fromkeys(dsn for server in design.given.values() for dsn in server.dsn):
        named = "dbname" in parts_of(dsn)
        where = f"{without_password(conninfo_of(dsn))}{'' if named else ', in its default database'}"
        for data in Needs.of(design).data:
            size = f", about {data.mb:,} MB" if data.mb else ""
            made = f"{data.relations_made} ({data.label}{size}), unless they are there"
            texts.append(f"{where}: {made if data.marks else 'nothing'}")
    return texts


_SHOWN_SCRIPT = 300
"""The number of characters of a script that the plan shows."""


def _given_servers(design: Design, *, ask: bool) -> Iterator[str]:
    """Yields a line for each given server (a server that the study names by a connection string), with the arms that
    use it: `a and b: PostgreSQL 15.8 at db1:5432, database shop`."""
    named = grouped((dsn, arm) for arm, server in design.given.items() for dsn in server.dsn)
    for dsn, arms in named.items():
        yield f"{listed(arms)}: {_asked(dsn) if ask else _named(dsn)}"


def _asked(dsn: str) -> str:
    try:
        with open_session(conninfo_of(dsn), connect_timeout=CONNECT_TIMEOUT_S) as session:
            info = session.info
            version = info.parameter_status("server_version")
            where = f"{info.host or 'the default socket'}:{info.port}, database {info.dbname}, role {info.user}"
            return f"PostgreSQL {version} at {where}"
    except psycopg.Error as error:
        return f"{_named(dsn)}, which does not answer now: {reason_of(error)}"


def _named(dsn: str) -> str:
    """Returns the host, port, database and role of a connection string, completed by the environment variables of
    libpq. A value that is neither in the string nor in the environment is left out."""
    parts = with_defaults(parts_of(dsn))
    if "service" in parts:
        return f"service {parts['service']}"
    where = address_of(parts)
    more = [f"{word} {parts[key]}" for word, key in (("database", "dbname"), ("role", "user")) if key in parts]
    return ", ".join([where, *more])


def _is_named(host: ServerHost) -> bool:
    """True if the plan can name the host of the server: the connection string contains a host, or pgtrial examines the
    host by ssh. If false, libpq chooses the host when it connects, and the plan shows only the connection (in the line
    `servers`)."""
    return host.label not in UNNAMED or host.looked_at is not None


def _host(host: ServerHost) -> str:
    if host.by == "this machine":
        return host.label
    known_as = host.label.rpartition("@")[2]
    address = f", reached at {host.address}" if host.address not in (None, known_as) else ""
    data = f", data in {host.data}" if host.data is not None else ""
    looked_at = f", looked at by ssh as {host.looked_at}" if host.looked_at is not None else ""
    return f"{host.label} by {host.by}{address}{data}{looked_at}"


def _fleet(fleet: FleetSection) -> str:
    if fleet.address == LOCAL:
        return f"this machine, by {plural(fleet.machines or 1, 'engine')} of a Ray cluster that is made for the run"
    machines = "all machines" if fleet.machines is None else plural(fleet.machines, "machine")
    packed = ", several engines on one if need be" if fleet.share_machines else ""
    return f"{machines} of the Ray cluster {fleet.address}{packed}; when one is lost: {fleet.on_machine_loss}"


def _how_long(design: Design, plan: Plan, expected: Outlook | None) -> Iterator[tuple[str, str]]:
    estimates = _estimates(design, plan)
    yield (
        "trials",
        f"{plural(len(plan.load_points), 'load point')} x {len(plan.arms)} arms x {plural(plan.max_blocks, 'block')} = "
        f"{len(plan.trials)}, each {words_of(plan).planned_trial(design.spec, plan)}",
    )
    for sentence in in_words(plan, design):
        yield "lengths", sentence
    early = ", less if an earlier look at the verdict decides" if plan.stop_early and len(plan.looks) > 1 else ""
    at_most = format_duration(estimates["seconds_at_most"])
    for number, doubt in enumerate(words_of(plan).doubts(design.spec)):
        yield "capture" if number == 0 else "", doubt
    yield "time", f"about {at_most}{early}; loading comes on top"
    on_each = " on each host" if plan.hosts else ""
    yield "disk", f"about {estimates['disk_mb']:,} MB{on_each} while it runs, with the largest data"
    if plan.metrics:
        yield "metrics", metrics_in_words(plan)
    looks = ", ".join(map(str, plan.looks_within))
    yield (
        "looks",
        f"the verdict is read after block {looks}; margin {as_written(plan.margin)}"
        if looks
        else f"none: the first possible one is at {estimates['fewest_blocks']} blocks",
    )
    if expected is not None:
        yield "precision", in_one_line(expected, plan)
    yield "seed", f"{plan.seed}{'' if design.spec.study.seed is not None else ' (drawn now; a run draws its own)'}"


def _order(plan: Plan) -> Iterator[tuple[str, str]]:
    per_block = len(plan.load_points) * len(plan.arms)
    for block in range(min(_SHOWN_BLOCKS, plan.max_blocks)):
        trials = plan.trials[block * per_block : (block + 1) * per_block]
        groups = itertools.groupby(trials, key=lambda trial: trial.load_point)
        order = "; ".join(f"{plan.load_points[point].slug}: {', '.join(map(_turn, runs))}" for point, runs in groups)
        on = f" on deployment {(trials[0].place or 0) + 1}" if plan.deployments > 1 else ""
        yield "order" if block == 0 else "", f"block {block + 1}{on}: {order}"


def _turn(trial: PlannedTrial) -> str:
    if trial.levels is not None:
        return f"{trial.arm} ({trial.levels})"
    return trial.arm if trial.layout is None else f"{trial.arm} (layout {trial.layout})"
