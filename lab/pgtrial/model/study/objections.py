"""Checks that the sections of a study file fit together: its metrics, prices and fleet with its load and its arms."""

from __future__ import annotations

from collections.abc import Iterator

from pgtrial.model import marks
from pgtrial.model.metrics import PER_CENT, TPS, unknown_metric
from pgtrial.model.study.cut_values import cut
from pgtrial.model.study.design import Design
from pgtrial.model.study.jobs import NOTHING
from pgtrial.model.study.manifests import Location
from pgtrial.model.study.own_metrics import objections_to_names
from pgtrial.model.study.servers import MadeHere
from pgtrial.model.study.spec import StudySpec, is_paced
from pgtrial.model.study.sql_texts import has_statement
from pgtrial.model.study.suites import is_suite


def objection_to_metrics(design: Design) -> str | None:
    """Returns the reason why the study cannot declare its metrics, as a sentence; None if it can."""
    load, names, metrics = design.load, design.verdict.metrics, marks.key("verdict", "metrics")
    own = design.spec.own_metrics
    if (unknown := unknown_metric(names, own)) is not None:
        return f"{metrics}: {unknown}"
    if names and load.kind.why_no_metrics is not None:
        return f"{metrics} {load.kind.why_no_metrics}"
    for name in names:
        if name not in own and (misfit := load.kind.misfit(load, name)) is not None:
            return f'{metrics}: "{name}" {misfit}'
    for name in (TPS, PER_CENT):
        if name in names and is_paced(design.spec):
            return f'{metrics}: with a rate, "{name}" is the rate itself; leave the metric out, or leave out the rate'
    if PER_CENT in names and not design.prices:
        return f'{metrics}: "{PER_CENT}" needs the price of every arm; write price = "0.42 USD/h" in each'
    return None


def objection_to_own_metrics(spec: StudySpec) -> str | None:
    """Returns the reason why the study cannot define metrics of its own, as a sentence; None if it can, or if it
    defines none."""
    where, kind = marks.key("metrics"), spec.load.kind
    if not spec.metrics:
        return None
    if kind.why_no_metrics is not None:
        return f"{where} {kind.why_no_metrics}"
    twice = [name for name in spec.metrics if name in spec.load.job.reads]
    if twice:
        reads = marks.key("load.job", "reads")
        return f"{where} and {reads} both define {twice[0]}; give one of them another name"
    if kind.searches_rate and (sampled := [name for name, metric in spec.metrics.items() if metric.each_second]):
        return (
            f"{marks.key(f'metrics.{sampled[0]}', 'each_second')} is not for a study of capacity, whose load runs "
            "at many rates; leave it out, and pgtrial reads the number once after each trial"
        )
    return next(objections_to_names(spec.metrics, where), None)


def objections_to_sql(spec: StudySpec) -> Iterator[tuple[Location, str]]:
    """Yields the location in the study file and a sentence for each key whose SQL has a text without a statement."""
    keys: list[tuple[Location, str, list[str]]] = [
        (("server", "setup_sql"), marks.key("server", "setup_sql"), spec.server.setup_sql),
        *(
            (("arms", arm, "setup_sql"), f"{marks.at_arm(arm)}setup_sql", table.setup_sql)
            for arm, table in spec.arms.items()
        ),
        (("load", "job", "undo"), marks.key("load.job", "undo"), [spec.load.job.undo or NOTHING]),
        *(
            (("metrics", name, "sql"), marks.key(f"metrics.{name}", "sql"), [metric.sql])
            for name, metric in spec.metrics.items()
            if metric.sql is not None
        ),
    ]
    for location, key, texts in keys:
        if not all(map(has_statement, texts)):
            yield location, f"{key} has a text without a statement; write SQL, or remove the text"


def objection_to_prices(design: Design) -> str | None:
    """Returns what is wrong with the prices of the arms, as a sentence; None if nothing is wrong."""
    prices = design.prices
    free = [arm for arm in design.servers if arm not in prices]
    if prices and free:
        return f"{marks.arm(free[0])} has no price; give every arm one, or no arm"
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) > 1:
        several = " and ".join(currencies)
        return f"{marks.heading('arms')}price: {several} cannot be compared; write all prices in one currency"
    return None


def objection_to_instructions(design: Design) -> str | None:
    """Returns the reason why pgtrial cannot count the instructions of the study's servers, as a sentence; None if it
    can, or if the study does not ask for it."""
    if not design.load.instructions:
        return None
    instructions = marks.key("load", "instructions")
    if (why := design.load.kind.why_no_instructions) is not None:
        return f"{instructions}: {why}; remove it"
    others = [arm for arm, server in design.servers.items() if not isinstance(server, MadeHere)]
    if others:
        return (
            f"{instructions}: pgtrial does not start the server of {marks.arm(others[0])} on this machine, so it "
            "cannot count the instructions of that server; remove the key"
        )
    return None


def objection_to_fleet(spec: StudySpec) -> str | None:
    """Returns the reason why a fleet of machines cannot make the study's load, as a sentence; None if a fleet can, or
    if the study has no fleet."""
    if spec.fleet is None:
        return None
    of_values = "one engine draws the values, so several machines cannot share the load" if spec.load.values else None
    why = of_values or spec.load.kind.why_no_fleet
    return f"{marks.key('fleet')} {why}; remove it" if why is not None else None


def objection_to_screen(design: Design) -> str | None:
    """Returns the reason why the study cannot screen its factors, as a sentence; None if it can, or if it compares arms
    and has no factors."""
    return next(_objections_to_screen(design), None) if design.spec.factors else None


def _objections_to_screen(design: Design) -> Iterator[str]:
    spec, kind, verdict = design.spec, design.load.kind, design.verdict
    shared = {name.lower() for name in spec.server.settings}
    for name in spec.factors:
        if name.lower() in shared:
            yield (
                f"{name} is a factor, and {marks.section('server')} sets it as well, for all set-ups; remove it in one "
                "of the two places"
            )
    # how many queries a suite has is not known before its files are read
    is_of_queries = kind.has_family(spec.load) or any(map(is_suite, spec.load.workload))
    if is_of_queries or kind.searches_rate or kind.follows_the_arm:
        yield "factors are screened under a load of transactions or a job; choose such a load, or compare set-ups"
    if len(design.load_points) > 1:
        keys = [marks.short_key("load", key) for key in ("workload", "scale", "clients", "rate")]
        yield (
            f"factors are screened at one load point, and the study has {len(design.load_points)}; give one value for "
            f"each of {', '.join(keys)}"
        )
    if len(design.metrics) > 1:
        yield f"factors are screened by one metric, and the study has {', '.join(design.metrics)}; keep one of them"
    unfit = {
        marks.key("verdict", "drop_decided"): verdict.drop_decided,
        marks.key("verdict", "one_sided"): verdict.one_sided,
        marks.key("load", "instructions"): spec.load.instructions,
    }
    for key, is_set in unfit.items():
        if is_set:
            yield f"{key} is not for a study that screens factors; remove it"
    for path in (path for paths in cut(spec)[1].values() for path in paths if path.startswith("arms.")):
        name = path.rpartition("settings.")[2]
        yield f"the levels of {name} may be secrets, and a plan stores the levels of factors; leave the factor out"
    if design.deployments > 1:
        yield f"factors are screened on one server, and the study names {design.deployments} deployments; name one"
    if design.given and (not design.possible_sessions or spec.load.interleave == "off"):
        yield (
            "on a server that exists already, factors are screened in sessions of the server, in turns; take settings "
            f"that a session can set as factors, and leave {marks.key('load', 'interleave')} out"
        )
