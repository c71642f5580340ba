"""`pgtrial compare`: a study from the command line, the same as a study file would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pgtrial.cli import study_options
from pgtrial.cli.by_options import Reword, by_options
from pgtrial.cli.conduct import start
from pgtrial.model.errors import PgtrialError, StudyError
from pgtrial.model.study.jobs import is_job
from pgtrial.model.study.suites import is_suite
from pgtrial.store.comparison import comparison, parse_setup
from pgtrial.store.set_keys import with_keys

_OF_SUITES = ("runs", "cache", "unchecked")
"""Options of suites alone."""

OPTIONS_OF_BOTH = {
    "load.workload": "--workload",
    "load.query": "--query",
    "load.values": "--values",
    "load.data": "--data",
    "load.scale": "--scale",
    "load.clients": "--clients",
    "load.threads": "--threads",
    "load.warmup": "--warmup",
    "load.duration": "--duration",
    "verdict.blocks": "--blocks",
    "verdict.budget": "--budget",
    "verdict.margin": "--margin",
    "study.question": "--question",
    "study.seed": "--seed",
}
"""The options of `compare` and `capacity`, by the keys of the study file that they stand for."""

FLAGS = ("load.foreign_keys", "verdict.allow_busy_client", "fleet.share_machines")
"""The keys whose options take no value."""

OPTIONS = {
    **OPTIONS_OF_BOTH,
    "load.rate": "--rate",
    "load.protocol": "--protocol",
    "load.fillfactor": "--fillfactor",
    "load.foreign_keys": "--foreign-keys",
    "load.capacity": "--capacity",
    "load.capacity.at_most": "at_most in --capacity",
    "load.max_tries": "--max-tries",
    "load.latency_limit": "--latency-limit",
    "load.suite.runs": "--runs",
    "load.suite.limit": "--limit",
    "load.suite.cache": "--cache",
    "load.suite.unchecked": "--unchecked",
    "load.job.limit": "--limit",
    "load.job.beside": "--beside",
    "load.job.undo": "--undo",
    "verdict.metrics": "--metrics",
    "verdict.allow_busy_client": "--allow-busy-client",
    "fleet": "--fleet",
    "fleet.address": "--fleet",
    "fleet.machines": "--machines",
    "fleet.share_machines": "--share-machines",
}
"""The options of `compare`, by the keys of the study file that they stand for. `--set` stands for all other keys."""

Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any other key of the study file, by its section and name, e.g. load.interleave=250ms or "
        "load.clients='[1, 8]': a value of TOML, or a text without quotes; repeatable.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]


def compare_command(
    arms: Annotated[
        list[str],
        typer.Argument(
            help="Two or more set-ups, the baseline first: settings (NAME=VALUE[,NAME=VALUE...]), postgres=VERSION, "
            "a connection string, a client program ('command=node bench.js'), a query ('query=select ...') or a script "
            "of pgbench's (workload=new.sql) that this arm runs, or `default` for the server as it is. A name may "
            "stand before it: a=host=db1, 'in=query=select ...'.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str | None,
        typer.Option(
            help="tpcb-like, simple-update, select-only, order-entry, a test of sysbench such as oltp_read_write, "
            "app-tasks, a pack (pack:queue, or its folder), a replay (replay:DIRECTORY), a job (job:FILE.sql, such as "
            "CREATE INDEX, which is timed), queries that are timed (suite:FOLDER), or the path of a script "
            "(pgbench's .sql, sysbench's .lua); several with commas, mixed by weights: a.sql,b.sql=3."
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            help="One query in place of a workload, the same for all arms: 'select * from orders where id = :id'.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            help="Where a variable of the query or of scripts has its values from, e.g. id=orders.id; repeatable.",
            metavar="NAME=TABLE.COLUMN",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Data of your own: a dump by pg_dump, a file of SQL (repeatable), or a connection string. With a "
            "replay the dump of the data as they were when the capture began.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Scale factors, e.g. 10 or 10,100; of a suite's data from 0.01 to 100.")
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            help="With a job and --rate: a load that runs beside it, a script of pgbench's or a .sql file.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(
            help="With a job on given servers: SQL that undoes it after each trial; none: it leaves nothing behind.",
            metavar="SQL",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="With a suite: measured runs of each query in a trial; default: 1.")
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            help="With a suite: a query that runs longer is cancelled and counts as the limit, e.g. 2min. With a job: "
            "a job that runs longer has failed."
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="With a suite: warm (a pass before), os (the server is restarted before each query) or cold (the "
            "kernel's cache is emptied as well; takes root)."
        ),
    ] = None,
    unchecked: Annotated[
        str | None, typer.Option(help="With a suite: queries whose results may differ, e.g. q07,q12.")
    ] = None,
    clients: Annotated[str | None, typer.Option(help="Numbers of clients, e.g. 1,8,32.")] = None,
    rate: Annotated[
        str | None, typer.Option(help="Transactions per second, e.g. 500 or 500,1000; decides on response time.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Engine threads.")] = None,
    protocol: Annotated[str | None, typer.Option(help="simple, extended or prepared.")] = None,
    fillfactor: Annotated[int | None, typer.Option(help="Fill factor of the tables, percent.")] = None,
    foreign_keys: Annotated[bool, typer.Option("--foreign-keys", help="Load tables with foreign keys.")] = False,
    warmup: Annotated[str | None, typer.Option(help="Load before the measured part, e.g. 10s.")] = None,
    duration: Annotated[str | None, typer.Option(help="The measured part of each trial, e.g. 30s.")] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            help="Compare the highest rates that keep a promise, e.g. p99=20ms or p99=20ms,failures=0.1%.",
            metavar="PERCENTILE=LIMIT",
            show_default=False,
        ),
    ] = None,
    max_tries: Annotated[
        int | None, typer.Option(help="Tries of a transaction that fails by serialization or deadlock; 0: no limit.")
    ] = None,
    latency_limit: Annotated[str | None, typer.Option(help="With --max-tries: no try after this, e.g. 1s.")] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks at most; default: what the budget holds.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for running the blocks, e.g. 30min; default: 1h.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="What is compared, the first decides: tps, response, p50 to p99.9, 'wal per transaction'; "
            "e.g. p99,response. Of a job: time, wal, size, memory."
        ),
    ] = None,
    margin: Annotated[str | None, typer.Option(help="Differences below it count as equivalent, e.g. 1%.")] = None,
    allow_busy_client: Annotated[
        bool, typer.Option("--allow-busy-client", help="Give a verdict although the client itself was a limit.")
    ] = False,
    server: Annotated[
        list[str] | None,
        typer.Option(
            help="What all arms share, in the form of an arm, e.g. postgres=17; repeatable.", show_default=False
        ),
    ] = None,
    keys: Keys = None,
    fleet: study_options.Fleet = None,
    machines: study_options.Machines = None,
    share_machines: study_options.ShareMachines = False,
    question: Annotated[str | None, typer.Option(help="The question, for the report's title.")] = None,
    results: Annotated[Path | None, typer.Option(help="The study's directory.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order.", min=0)] = None,
    new: Annotated[bool, typer.Option("--new", help="Start anew even if the same study is unfinished.")] = False,
    fail_on_regression: study_options.FailOnRegression = False,
    json: Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines.")] = False,
) -> int:
    """Compare set-ups without a study file; the study is written to its directory and can be run again from there.

    The exit status is that of `pgtrial run`.

    Example: pgtrial compare shared_buffers=128MB shared_buffers=2GB --workload select-only --clients 1,8,32
    """
    load = {
        **load_of_both(
            workload=workload,
            query=query,
            values=values,
            data=data,
            scale=scale,
            clients=clients,
            threads=threads,
            warmup=warmup,
            duration=duration,
        ),
        "rate": _words(rate),
        "protocol": protocol,
        "fillfactor": fillfactor,
        "foreign_keys": foreign_keys or None,
        "capacity": _promise(capacity),
        "max_tries": max_tries,
        "latency_limit": latency_limit,
        **_own_end(
            workload or "",
            {"runs": runs, "limit": limit, "cache": cache, "unchecked": _words(unchecked)},
            {"beside": beside, "undo": undo, "limit": limit},
        ),
    }
    verdict = {
        "metrics": _words(metrics),
        "blocks": blocks,
        "budget": budget,
        "margin": margin,
        "allow_busy_client": allow_busy_client or None,
    }
    of_fleet = {"address": fleet, "machines": machines, "share_machines": share_machines or None}
    return run_comparison(
        arms,
        {"load": load, "verdict": verdict, "fleet": of_fleet},
        by_options(OPTIONS, FLAGS, sets=True),
        server=server,
        keys=keys,
        question=question,
        results=results,
        seed=seed,
        new=new,
        json=json,
        fail_on_regression=fail_on_regression,
    )


def load_of_both(
    *,
    workload: str | None,
    query: str | None,
    values: Sequence[str] | None,
    data: list[str] | None,
    scale: str | None,
    clients: str | None,
    threads: int | None,
    warmup: str | None,
    duration: str | None,
) -> dict[str, Any]:
    """Returns the keys of [load] for which `compare` and `capacity` have options. Raises StudyError."""
    return {
        "workload": _words(workload),
        "query": query,
        "values": _pairs(values or []) or None,
        "data": data or None,
        "scale": _words(scale),
        "clients": _numbers("--clients", clients),
        "threads": threads,
        "warmup": warmup,
        "duration": duration,
    }


def run_comparison(
    arms: Sequence[str],
    sections: Mapping[str, Mapping[str, Any]],
    reword: Reword,
    *,
    server: Sequence[str] | None,
    keys: Sequence[str] | None,
    question: str | None,
    results: Path | None,
    seed: int | None,
    new: bool,
    json: bool,
    fail_on_regression: bool = False,
) -> int:
    """Runs the study of these arms and sections. Keys without a value are left out, and so are sections without keys.

    The messages of errors are reworded by `reword`, so that they name options. Returns the exit status.
    """
    given = {name: held for name, section in sections.items() if (held := _given(section))}
    given["server"] = _merged(server or [])
    try:
        spec = comparison(arms, "the command line", question, seed, given, change=with_keys(keys or []))
        return start(spec, results, anew=new, as_json=json, reword=reword, fail_on_regression=fail_on_regression)
    except PgtrialError as error:
        error.reword(reword)
        raise


def _merged(texts: Sequence[str]) -> dict[str, Any]:
    shared: dict[str, Any] = {}
    for setup in map(parse_setup, texts):
        for keys, before in (
            (setup.keys() - {"settings"}, shared),
            (setup.get("settings", {}), shared.get("settings", {})),
        ):
            if (twice := next((key for key in keys if key in before), None)) is not None:
                raise StudyError(f"--server has {twice} more than once; leave one out")
        settings = {**shared.get("settings", {}), **setup.get("settings", {})}
        shared = {**shared, **setup, **({"settings": settings} if settings else {})}
    return shared


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _own_end(workload: str, suite: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """The sections of suites and jobs. Raises StudyError for options that are not for the workload."""
    given = _given(suite)
    if is_suite(workload):
        job.pop("limit")
        return {"suite": given or None, "job": _given(job) or None}
    if (misplaced := next((key for key in _OF_SUITES if key in given), None)) is not None:
        raise StudyError(
            f"--{misplaced} is for a suite of queries; name one (--workload suite:FOLDER), or remove --{misplaced}"
        )
    if "limit" in given and not is_job(workload):
        raise StudyError(
            "--limit is for a suite of queries or a job; name one (--workload suite:FOLDER or job:FILE.sql), or remove "
            "--limit"
        )
    return {"job": _given(job) or None}


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (name, _, column) in zip(texts, pairs, strict=True):
        if not name.strip() or not column.strip():
            raise StudyError(f"--values {text!r} names no variable and column; write for example --values id=orders.id")
    return _once("--values", [(name.strip(), column.strip()) for name, _, column in pairs])


def _promise(text: str | None) -> dict[str, str] | None:
    """`p99=20ms,failures=0.1%` as the study file has it."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in _words(text) or []]
    if not pairs or not all(name.strip() and value.strip() for name, _, value in pairs):
        raise StudyError(f"--capacity {text!r} is no promise; write for example --capacity p99=20ms,failures=0.1%")
    return _once("--capacity", [(name.strip(), value.strip()) for name, _, value in pairs])


def _once(option: str, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Returns pairs by their names. Raises StudyError if a name repeats: one of its values would be lost."""
    by_name = dict(pairs)
    for name in by_name:
        if sum(name == other for other, _ in pairs) > 1:
            raise StudyError(f"{option} has {name} more than once; leave one out")
    return by_name


def _numbers(option: str, text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(word) for word in _words(text) or []]
    except ValueError:
        raise StudyError(
            f"{option} {text!r} is not a list of whole numbers; write for example {option} 1,8,32"
        ) from None
