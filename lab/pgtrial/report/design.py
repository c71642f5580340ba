"""How a study was made: the first list of the report's section on the method."""

from __future__ import annotations

from statistics import median

from pgtrial.model.records.plan import Extension
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.units import as_written, format_duration, plural
from pgtrial.report.data import StudyData
from pgtrial.report.tables.certificate import dated

_NO_CERTIFICATE = "none; `pgtrial selftest` makes one"


def design(data: StudyData) -> list[tuple[str, str]]:
    """Pairs of a term and its description."""
    plan, load, result = data.plan, data.spec.load, data.result
    packs = {point.pack.name: point.pack for point in plan.load_points if point.pack is not None}
    blocks = f"{result.blocks_complete} complete of {plan.max_blocks} planned, {format_duration(result.block_s)} each"
    terms: list[tuple[str, str | None]] = [
        ("profile", data.spec.study.profile),
        ("baseline", plan.baseline),
        ("arms", ", ".join(plan.arms)),
        ("declared differences", "; ".join(f"{a}: {', '.join(k)}" for a, k in plan.declared.items() if k) or "none"),
        ("load", _load(data)),
        ("sysbench", _options(load.sysbench) if any(point.sysbench for point in plan.load_points) else None),
        ("scripts", "; ".join(f"{name} (SHA-256 {code})" for name, code in plan.scripts.items())),
        *(("transaction", f"{name}: {pack.transaction}") for name, pack in packs.items()),
        ("trial", _trial(data)),
        ("slices", _slices(data)),
        _round_trips(data),
        ("blocks", blocks),
        ("gone on", "; ".join(_extension(step) for step in plan.extensions)),
        ("deployments", _deployments(data) if plan.deployments > 1 else None),
        ("layouts", _layouts(data)),
        ("trials", f"{result.trials_stored} of {result.trials_planned}"),
        ("margin", as_written(plan.margin)),
        (
            "stopping",
            "at the first planned look at the verdict that decides" if plan.stop_early else "after all planned blocks",
        ),
        ("order", f"each arm once per load point and block, drawn by NumPy's Philox from seed {plan.seed}"),
        ("scope", plan.scope),
        ("certificate of this machine", dated(data.certificate) if data.certificate is not None else _NO_CERTIFICATE),
        ("planned", f"{plan.created.replace('T', ' ')} by pgtrial {plan.pgtrial}"),
    ]
    return [(term, text) for term, text in terms if text]


def _load(data: StudyData) -> str:
    load, points = data.spec.load, data.plan.load_points
    replay, suite = points[0].replay, points[0].suite
    if suite is not None:
        return f"the suite {suite.name} in one session: {points[0].label}"
    if load.runs_programs:
        commands = {arm: data.spec.resolved(arm).command for arm in data.plan.arms}
        return "the client program of each arm: " + "; ".join(f"{arm}: {text}" for arm, text in commands.items())
    if replay is None:
        return f"{plural(len(points), 'load point')}, {load.protocol} protocol, fill factor {load.fillfactor}"
    connections = load.replay.max_connections
    most = f", at most {plural(connections, 'connection')}" if connections is not None else ""
    return (
        f"the capture {replay.capture} (SHA-256 {replay.capture_sha256}) on the dump {replay.data} (SHA-256 "
        f"{replay.data_sha256}): {replay.label}{most}"
    )


def _trial(data: StudyData) -> str:
    plan, load = data.plan, data.spec.load
    if load.replays:
        return f"one replay {plan.load_points[0].replay.pace}" if plan.load_points[0].replay else "one replay"
    if load.runs_suite:
        suite = load.suite
        before = "an unmeasured pass over all queries, then " if not suite.drops_caches else ""
        limit = format_duration(suite.limit_s)
        runs = plural(suite.runs, "run")
        return f"{before}{runs} of each in random order; a query is cancelled after {limit}"
    if load.runs_job:
        return f"one run of the job, no warm-up; it has failed after {format_duration(load.job.limit)}"
    if load.capacity is not None:
        lengths = f"{format_duration(plan.warmup_s)} of warm-up in a closed loop, then probes at chosen rates"
        return f"{lengths}, {format_duration(plan.duration_s)} each or longer at slow rates"
    if not load.runs_tasks:
        lengths = f"{format_duration(plan.warmup_s)} of warm-up, {format_duration(plan.duration_s)} measured"
        found = plan.lengths.preliminary if plan.lengths is not None else None
        return lengths if found is None else f"{lengths}; chosen after a block that does not count: {found.text}"
    tasks = load.tasks
    lifetime = f", connections replaced after {format_duration(tasks.pool_lifetime)}" if tasks.pool_lifetime else ""
    return (
        f"one run of all tasks to their end, no warm-up; arrival {tasks.arrival}, a task fails that has no connection "
        f"after {format_duration(tasks.pool_timeout)}{lifetime}"
    )


def _slices(data: StudyData) -> str:
    interleaving = data.plan.interleaving
    if interleaving is None:
        return ""
    servers = "; all arms are sessions of one server" if interleaving.shared_server else ""
    length = format_duration(interleaving.slice_s)
    longer = "".join(
        f"; {format_duration(slice_s)} at {data.labels[point]}, where transactions are longer"
        for point, slice_s in interleaving.longer.items()
    )
    return f"the trials of a block at a load point take turns, {length} each, in random order{longer}{servers}"


def _extension(step: Extension) -> str:
    decided = "decided" if step.decided else "undecided"
    return f"after block {step.after} to block {step.end}, {step.created.replace('T', ' ')}, {decided} until then"


def _deployments(data: StudyData) -> str:
    unit = data.unit
    what = "the verdict counts pairs of them" if unit == "deployment" else "the verdict counts blocks, not them"
    return f"{data.plan.deployments} of each arm, one pair for each block; {what}"


def _layouts(data: StudyData) -> str:
    by_arm: dict[str, dict[int, int]] = {arm: {} for arm in data.plan.arms}
    for trial in data.trials:
        if trial.layout is not None:
            by_arm[trial.arm][trial.block] = trial.layout
    drawn = [f"{arm} {', '.join(map(str, layouts.values()))}" for arm, layouts in by_arm.items() if layouts]
    return f"of the server's code, drawn for each block: {'; '.join(drawn)}" if drawn else ""


def _options(section: SysbenchSection) -> str:
    return ", ".join(f"{name} = {value}" for name, value in section.options.items()) or "no further options"


def _round_trips(data: StudyData) -> tuple[str, str]:
    """Before the trials of each arm; no description for studies that are older than this record."""
    texts = []
    for arm in data.plan.arms:
        times = [t.round_trip_us for t in data.trials if t.arm == arm and t.round_trip_us is not None]
        if times:
            texts.append(f"{arm} {median(times):,.0f} us ({min(times):,.0f} to {max(times):,.0f})")
    by_fleet = any(trial.machines for trial in data.trials)
    term = "round trip from the lab to the server" if by_fleet else "round trip to the server"
    return term, f"before each trial, median (lowest to highest): {'; '.join(texts)}" if texts else ""
