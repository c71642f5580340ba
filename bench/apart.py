"""Studies of one server against itself whose arms are as far apart as two versions are: how many call it different.

`python -m bench.apart run` runs what is missing, the kinds in turns, and writes bench/apart.json after each study.
A self-test cannot see what these can: its arms share one server and one copy of the data. Give it a state directory of
its own (PGTRIAL_STATE), since the servers that stand for given ones are gone afterwards.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from bench.figures import EQUAL_ARMS, equal_arms, read_figures, rounded, write_figures
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Word
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_data
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.verdict.pace import under_way_s

_FIGURES = Path(__file__).with_name("apart.json")
_STUDIES = 40
"""The number of studies of each kind."""
_BLOCKS = {"suite": 12}
_USUAL_BLOCKS = 8
"""The number of blocks of kinds that `_BLOCKS` does not list; the queries of a suite share the error, so that their
first look is later.
"""
_DEPLOYMENTS = 4
_SHORT = {"warmup": "300ms", "duration": "1s"}
_ARMS = ("one", "the other")
_OWN_TEMPLATE = {"initdb": ["--no-instructions"]}
"""An option that changes nothing of the server and makes a template of its own, as another version or build does."""

_ORDERS = """CREATE TABLE orders (id int PRIMARY KEY, customer int, cents int);
INSERT INTO orders SELECT i, i * 7919 % 5000, i * 31 % 10007 FROM generate_series(1, 50000) AS i;
CREATE INDEX ON orders (customer);
"""
_QUERY = """\\set customer random(1, 5000)
SELECT sum(cents) FROM orders WHERE customer = :customer;
"""

Kind = Literal["templates", "own data", "suite", "given servers", "deployments"]
_KINDS: tuple[Kind, ...] = get_args(Kind)


class Apart(Record):
    """The result of a study of a server against itself."""

    created: str
    kind: Kind
    verdict: Word
    difference: float | None
    low: float | None
    high: float | None
    """The 95% interval of the difference."""
    others: int
    """The number of claims beside the primary one, such as those of queries, that say better or worse."""
    blocks: int
    seconds: float


def main() -> None:
    """Run the studies that are missing, or show what is there."""
    parser = argparse.ArgumentParser(prog="bench.apart", description=__doc__)
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--studies", type=int, default=_STUDIES, help=f"of each kind ({_STUDIES})")
    given = parser.parse_args()
    if given.what == "run":
        _run_missing(given.studies)
    for line in _table():
        print(line)


def _run_missing(wanted: int) -> None:
    known = read_figures(_FIGURES, Apart)
    for number in range(wanted):
        for kind in _KINDS:
            if sum(study.kind == kind for study in known) <= number:
                known.append(_run(kind))
                write_figures(_FIGURES, known)


def _table() -> Iterator[str]:
    """Yields the lines of the Markdown table of the studies' results."""
    yield f"| the arms have their own | {EQUAL_ARMS} |"
    yield "|---|---|---|---|---|---|"
    for kind in _KINDS:
        if cells := equal_arms([study for study in read_figures(_FIGURES, Apart) if study.kind == kind]):
            yield f"| {' | '.join([kind, *cells])} |"


def _run(kind: Kind) -> Apart:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgtrial-apart-")))
        load, arms = stack.enter_context(_WAYS[kind](folder))
        spec = _spec(load, arms, folder, _BLOCKS.get(kind, _USUAL_BLOCKS))
        study = StudyDirectory.create(folder / "study", spec, plan_now(spec))
        run_study(study, lambda event: None, spec=spec)
        result, trials, created = read_data(study).result, study.trials(), study.plan.created
    (claim,) = result.primary
    difference = claim.difference
    figures = Apart(
        created=created,
        kind=kind,
        verdict=claim.verdict,
        difference=rounded(difference and difference.value),
        low=rounded(difference and difference.low),
        high=rounded(difference and difference.high),
        others=sum(query.verdict in ("better", "worse") for query in result.queries),
        blocks=len({trial.block for trial in trials}),
        seconds=round(under_way_s(trials), 1),
    )
    print(figures.model_dump_json(), flush=True)
    return figures


def _spec(load: Mapping[str, Any], arms: Mapping[str, Any], folder: Path, blocks: int) -> StudySpec:
    sections = {
        "study": {"name": "apart", "question": "Is one server called different from itself?"},
        "load": load,
        "arms": arms,
        # client and servers share the machine; the client's part of the work is the same for both arms
        "verdict": {"blocks": blocks, "allow_busy_client": True, "stop_early": False},
    }
    return build_study(sections, "bench.apart", folder)


Way = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The load and the arms of a study file."""


@contextmanager
def _templates(folder: Path) -> Iterator[Way]:
    yield {"workload": "select-only", "scale": 5, "clients": 4, **_SHORT}, _apart()


@contextmanager
def _own_data(folder: Path) -> Iterator[Way]:
    (folder / "orders.sql").write_text(_ORDERS)
    (folder / "query.sql").write_text(_QUERY)
    yield {"workload": "query.sql", "data": "orders.sql", "clients": 4, **_SHORT}, _apart()


@contextmanager
def _suite(folder: Path) -> Iterator[Way]:
    yield {"workload": "suite:joins", "scale": 0.1}, _apart()


@contextmanager
def _given_servers(folder: Path) -> Iterator[Way]:
    with _served(len(_ARMS)) as dsns:
        arms = {arm: {"dsn": dsn} for arm, dsn in zip(_ARMS, dsns, strict=True)}
        yield {"workload": "select-only", "scale": 5, "clients": 4, **_SHORT}, arms


@contextmanager
def _deployments(folder: Path) -> Iterator[Way]:
    with _served(len(_ARMS) * _DEPLOYMENTS) as dsns:
        arms = {arm: {"dsn": dsns[number :: len(_ARMS)]} for number, arm in enumerate(_ARMS)}
        yield {"workload": "select-only", "scale": 1, "clients": 4, **_SHORT}, arms


_WAYS: dict[Kind, Callable[[Path], Any]] = {
    "templates": _templates,
    "own data": _own_data,
    "suite": _suite,
    "given servers": _given_servers,
    "deployments": _deployments,
}


def _apart() -> dict[str, dict[str, Any]]:
    return {_ARMS[0]: {}, _ARMS[1]: _OWN_TEMPLATE}


@contextmanager
def _served(number: int) -> Iterator[list[str]]:
    """Starts `number` servers with the same configuration and yields their connection strings."""
    spec = StudySpec.model_validate({"arms": {"server": {}, "unused": {}}, "load": {"scale": 1}})
    with ExitStack() as stack:
        workspace = stack.enter_context(Workspace())
        log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgtrial-apart-log-")))
        dsns = []
        for place in range(number):
            arm = make_arms(Design(spec), workspace)["server"]
            stack.callback(arm.close)
            arm.check(Needs.of(Design(spec)))
            arm.prepare(PgbenchTables(1), lambda text: None)
            target = stack.enter_context(arm.serve(PgbenchTables(1), log / f"{place}.log", {}))
            with target.connect() as session:
                session.execute(f"CREATE DATABASE apart OWNER {target.owner}")
            dsns.append(f"host={target.host} port={target.port} user={target.owner} dbname=apart")
        yield dsns


if __name__ == "__main__":
    main()
