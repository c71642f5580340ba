"""The design of a study as a list of terms and descriptions, which is in the section `How it was measured` of the
report."""

from __future__ import annotations

from statistics import median

from pgtrial.model.records.plan import Extension
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.units import as_written, format_duration
from pgtrial.report.data import StudyData
from pgtrial.report.kinds import words_of
from pgtrial.report.tables.certificate import dated

_LEVELS = "for each block a coin chose the level of each factor; the other trial of the block had the other levels"

_UNOBSERVED = (
    "the server, while sessions of all arms take turns on it: its waits, CPU and WAL are those of all arms together; "
    "so the report says neither what the server did nor what a transaction cost on it"
)
"""What the report of a study on one server cannot tell."""

_NO_CERTIFICATE = "none; `pgtrial selftest` makes one"


def design(data: StudyData) -> list[tuple[str, str]]:
    """Returns how the study was designed, such as its load, its blocks and its looks (interim analyses), as pairs of a
    term and its description."""
    plan, load, result = data.plan, data.spec.load, data.result
    words = words_of(plan)
    packs = {point.pack.name: point.pack for point in plan.load_points if point.pack is not None}
    blocks = f"{result.blocks_complete} complete of {plan.max_blocks} planned, {format_duration(result.block_s)} each"
    terms: list[tuple[str, str | None]] = [
        ("profile", data.spec.study.profile),
        ("baseline", plan.baseline),
        ("arms", ", ".join(plan.arms)),
        ("factors", "; ".join(f"{one.name}: {one.first} or {one.second}" for one in plan.factors)),
        ("declared differences", "; ".join(f"{a}: {', '.join(k)}" for a, k in plan.declared.items() if k) or "none"),
        ("load", words.load(data.spec, plan)),
        ("left out, added or doubtful", "; ".join(words.doubts(data.spec))),
        *(("metric", f"{name}: {own.source} ({own.better} is better)") for name, own in plan.own_metrics.items()),
        ("sysbench", _options(load.sysbench) if any(point.sysbench for point in plan.load_points) else None),
        ("scripts", "; ".join(f"{name} (SHA-256 {code})" for name, code in plan.scripts.items())),
        *(("transaction", f"{name}: {pack.transaction}") for name, pack in packs.items()),
        ("trial", words.trial(data.spec, plan)),
        ("slices", _slices(data)),
        ("not observed", _UNOBSERVED if plan.shares_server and load.observe else None),
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
        ("levels", _LEVELS if plan.factors else None),
        ("order", f"each arm once per load point and block, drawn by NumPy's Philox from seed {plan.seed}"),
        ("scope", plan.scope),
        ("certificate of this machine", dated(data.certificate) if data.certificate is not None else _NO_CERTIFICATE),
        ("planned", f"{plan.created.replace('T', ' ')} by pgtrial {plan.pgtrial}"),
    ]
    return [(term, text) for term, text in terms if text]


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
    return f"{data.plan.deployments} of each arm, of which each block measures one pair; {what}"


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
    """Returns a term and its description for the round trips to each arm's server, which were measured before each
    trial. The description is empty if the study did not measure them."""
    texts = []
    for arm in data.plan.arms:
        times = [t.round_trip_us for t in data.trials if t.arm == arm and t.round_trip_us is not None]
        if times:
            texts.append(f"{arm} {median(times):,.0f} us ({min(times):,.0f} to {max(times):,.0f})")
    by_fleet = any(trial.machines for trial in data.trials)
    term = "round trip from the lab to the server" if by_fleet else "round trip to the server"
    return term, f"before each trial, median (lowest to highest): {'; '.join(texts)}" if texts else ""
