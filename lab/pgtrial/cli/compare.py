"""`pgtrial compare`: makes a study from options of the command line and runs it. The result is the same as that of a
study file with the same keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pgtrial.cli import study_options
from pgtrial.cli.by_options import Reword, by_options
from pgtrial.cli.conduct import start
from pgtrial.model.errors import PgtrialError, StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.jobs import JOB, is_job
from pgtrial.model.study.suites import is_suite
from pgtrial.store.comparison import comparison, parse_setup
from pgtrial.store.set_keys import with_keys

_ARM_IS_JOB = re.compile(r"(^|=)\s*job:")
"""Matches the set-up of an arm that has a job of its own as its load, such as `job:new.sql`. A job is a file of
statements that end by themselves, such as CREATE INDEX, and whose time is measured."""

_OF_SUITES = ("runs", "cache", "unchecked")
"""The options that apply only to suites of queries."""

SHARED_OPTIONS = {
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
"""The options that `compare`, `capacity` and `screen` have in common, by the keys of the study file that they set."""

FLAGS = ("load.foreign_keys", "load.instructions", "verdict.allow_busy_client", "fleet.share_machines")
"""The keys of the study file whose options take no value."""

OPTIONS = {
    **SHARED_OPTIONS,
    "load.rate": "--rate",
    "load.protocol": "--protocol",
    "load.fillfactor": "--fillfactor",
    "load.foreign_keys": "--foreign-keys",
    "load.capacity": "--capacity",
    "load.capacity.at_most": "at_most in --capacity",
    "load.instructions": "--instructions",
    "load.max_tries": "--max-tries",
    "load.latency_limit": "--latency-limit",
    "load.suite.runs": "--runs",
    "load.suite.limit": "--limit",
    "load.suite.cache": "--cache",
    "load.suite.unchecked": "--unchecked",
    "load.job.limit": "--limit",
    "load.job.command": "--command",
    "load.job.reads": "--reads",
    "load.job.beside": "--beside",
    "load.job.undo": "--undo",
    "verdict.metrics": "--metrics",
    "verdict.allow_busy_client": "--allow-busy-client",
    "fleet": "--fleet",
    "fleet.address": "--fleet",
    "fleet.machines": "--machines",
    "fleet.share_machines": "--share-machines",
}
"""The options of `compare`, by the keys of the study file that they set. `--set` sets all other keys."""


def compare_command(
    arms: Annotated[
        list[str],
        typer.Argument(
            help="Two or more set-ups (arms), the baseline first. An arm is one of: settings "
            "(NAME=VALUE[,NAME=VALUE...]); a version (postgres=VERSION); a connection string of a server; a "
            "client program ('command=node bench.js'); a query ('query=select ...') or a pgbench script "
            "(workload=new.sql) or a job (job:new.sql) that only this arm runs; SQL that runs on the arm's own "
            "copy of the data before each trial ('setup=create index ...'); data of its own (data=uuid7.sql); "
            "columns from which variables take values (values=id=events.id); `default` for the server without "
            "changes. A name of your own can precede the set-up: a=host=db1, 'in=query=select ...'. A name alone "
            "is the server without changes: 'plain='.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str | None,
        typer.Option(
            help="The load: a built-in script of pgbench (tpcb-like, simple-update or select-only); the transactions "
            "of TPC-C (order-entry); a test of sysbench such as oltp_read_write; tasks of an application that wait "
            "for connections of its pool (app-tasks); a pack, which is a workload in a folder of SQL files "
            "(pack:queue, or its folder); a replay of recorded sessions (replay:DIRECTORY); a job that is timed, such "
            "as CREATE INDEX (job:FILE.sql); queries that are timed (suite:FOLDER); or the path of a script (.sql for "
            "pgbench, .lua for sysbench). Several loads, separated by commas, are measured one after the other. "
            "Scripts with weights are mixed into one load: a.sql,b.sql=3. Default: tpcb-like."
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            help="One SQL query that the clients of all arms run, in place of a workload: 'select * from "
            "orders where id = :id'.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            help="A column from which a variable of the query or of scripts takes random values, e.g. "
            "id=orders.id for :id. Repeatable.",
            metavar="NAME=TABLE.COLUMN",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Your own data: a dump by pg_dump, an SQL file (repeatable), or the connection string of a database, "
            "which pgtrial then dumps. For a replay: a dump of the data as they were when the recording of the "
            "sessions began.",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="The scale factor of the data, e.g. 10, or several that are measured one after the other, e.g. "
            "10,100. For a suite of queries: 0.01 to 100. Default: 10, or the scale that a pack (a workload in a "
            "folder) names."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="A program that runs as a job, such as a harness of your own: './bench.sh'. pgtrial sets PGHOST, "
            "PGPORT and the other PG* variables so that the program connects to the server of its arm.",
            show_default=False,
        ),
    ] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option(
            help="With --command: a name, and a regular expression that finds a number in the output of the program, "
            r"e.g. 'NOPM=achieved (\d+) NOPM'. The arms are then compared by this number and not by the time of the "
            "program. More counts as better, unless you add --set load.job.reads.NOPM.better=less. Repeatable.",
            metavar="NAME=PATTERN",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            help="For a job, together with --rate: a load that runs at the same time as the job. It is the name of a "
            "built-in pgbench script or the path of a .sql file.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[
        str | None,
        typer.Option(
            help="For a job on a server that you name by a connection string: SQL that undoes the job after each "
            "trial, or the word `none` if the job leaves nothing behind.",
            metavar="SQL",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="For a suite of queries: how often a trial measures each query. Default: 1.")
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            help="For a suite of queries: the time after which a query is cancelled, e.g. 2min; the query then counts "
            "with this time. For a job: the time after which pgtrial ends the job, which then counts as failed."
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="For a suite of queries: what the caches hold when a query runs. warm: all queries run once before "
            "they are measured. os: the server is restarted before each query. cold: the kernel's file cache is "
            "emptied as well, for which pgtrial needs root. Default: warm."
        ),
    ] = None,
    unchecked: Annotated[
        str | None,
        typer.Option(
            help="For a suite of queries: the names of queries whose results are not compared between arms, e.g. "
            "q07,q12."
        ),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(
            help="The number of clients that run transactions at the same time, or several numbers that are measured "
            "one after the other, e.g. 1,8,32. Default: 8."
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="The transactions per second that all clients together start, e.g. 500 or 500,1000. The "
            "verdict is then about the response time. Default: each client runs as fast as it can."
        ),
    ] = None,
    threads: study_options.Threads = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="The query protocol, as of `pgbench -M`: simple, extended or prepared. Default: prepared."),
    ] = None,
    fillfactor: Annotated[
        int | None, typer.Option(help="The fill factor of the tables that pgtrial makes, in percent. Default: 100.")
    ] = None,
    foreign_keys: Annotated[bool, typer.Option("--foreign-keys", help="Make the tables with foreign keys.")] = False,
    warmup: Annotated[
        str | None,
        typer.Option(
            help="How long the load of each trial runs before it is measured, e.g. 10s. Default: until "
            "the speed no longer rises."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(help="The length of the measured part of each trial, e.g. 30s. Default: chosen by the budget."),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            help="Compare the highest rates at which the set-ups keep a limit of the response time, e.g. p99=20ms or "
            "p99=20ms,failures=0.1%.",
            metavar="PERCENTILE=LIMIT",
            show_default=False,
        ),
    ] = None,
    max_tries: Annotated[
        int | None,
        typer.Option(
            help="How many times a transaction is tried if it ends with a serialization failure or a deadlock. 0 means "
            "without limit. Default: once."
        ),
    ] = None,
    latency_limit: Annotated[
        str | None,
        typer.Option(help="With --max-tries: the time after which a transaction is not tried again, e.g. 1s."),
    ] = None,
    blocks: study_options.Blocks = None,
    budget: study_options.Budget = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="The metrics that are compared, separated by commas, e.g. p99,response. The first metric decides the "
            "verdict. Metrics are tps (throughput), response (mean response time), p50 to p99.9 (percentiles of the "
            "response time), costs such as 'wal per transaction', and others, which docs/method.md lists under "
            "Metrics; for a job they are time, wal, size and memory. Default: tps, or response with --rate."
        ),
    ] = None,
    margin: study_options.Margin = None,
    allow_busy_client: Annotated[
        bool,
        typer.Option(
            "--allow-busy-client",
            help="Give a verdict even if the load engine, and not the server, was the bottleneck in many trials.",
        ),
    ] = False,
    instructions: study_options.Instructions = False,
    server: study_options.Shared = None,
    keys: study_options.Keys = None,
    fleet: study_options.Fleet = None,
    machines: study_options.Machines = None,
    share_machines: study_options.ShareMachines = False,
    question: study_options.Question = None,
    results: study_options.Results = None,
    seed: study_options.DrawnSeed = None,
    new: study_options.New = False,
    fail_on_regression: study_options.FailOnRegression = False,
    json: study_options.JsonLines = False,
) -> int:
    """Compare set-ups without writing a study file yourself. pgtrial writes a study file into the directory of the
    study; `pgtrial run DIRECTORY` continues the study.

    The exit statuses are the same as those of `pgtrial run`.

    Example: pgtrial compare shared_buffers=128MB shared_buffers=2GB --workload select-only --clients 1,8,32
    """
    if command is not None and workload is None:
        workload = JOB
    load = {
        **load_of(
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
        "instructions": instructions or None,
        "max_tries": max_tries,
        "latency_limit": latency_limit,
        **_own_end(
            workload or next((JOB for arm in arms if _ARM_IS_JOB.search(arm)), ""),
            {"runs": runs, "limit": limit, "cache": cache, "unchecked": _words(unchecked)},
            {"command": command, "reads": _patterns(reads), "beside": beside, "undo": undo, "limit": limit},
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


def load_of(
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
    """Returns the keys of the section [load] that `compare`, `capacity` and `screen` set by options which they have in
    common. Raises StudyError for a value that is not valid."""
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
    """Runs the study of these arms and sections, and returns the exit status. Keys without a value are left out, and so
    are sections without keys.

    `reword` rewords the messages of errors, so that they name options instead of keys of the study file.
    """
    try:
        given = sections_of(sections, server)
        spec = comparison(arms, "the command line", question, seed, given, change=with_keys(keys or []))
        return start(spec, results, anew=new, as_json=json, reword=reword, fail_on_regression=fail_on_regression)
    except PgtrialError as error:
        error.reword(reword)
        raise


def sections_of(sections: Mapping[str, Mapping[str, Any]], server: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Returns the sections of a study file that options have set. Keys without a value are left out, and so are
    sections without keys. `server` has the values of `--server`, which make the section [server]."""
    given = {name: held for name, section in sections.items() if (held := _given(section))}
    return {**given, "server": merged_setups(server or [])}


def merged_setups(texts: Sequence[str]) -> dict[str, Any]:
    """Returns the keys that all arms share, from the set-ups of the option --server. Raises StudyError if one of them
    is given more than once."""
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
    """Returns the sections of the study file for a suite (queries in files, each of which is timed) or for a job
    (statements or a program that end by themselves and are timed). Raises StudyError for an option that does not apply
    to the workload."""
    given = _given(suite)
    if is_suite(workload):
        job.pop("limit")
        return {"suite": given or None, "job": _given(job) or None}
    if (misplaced := next((key for key in _OF_SUITES if key in given), None)) is not None:
        raise StudyError(
            f"--{misplaced} applies only to a suite of queries; add --workload suite:FOLDER, or remove --{misplaced}"
        )
    if "limit" in given and not is_job(workload):
        raise StudyError(
            "--limit applies only to a suite of queries or a job; add --workload suite:FOLDER or --workload "
            "job:FILE.sql, or remove --limit"
        )
    return {"job": _given(job) or None}


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (name, _, column) in zip(texts, pairs, strict=True):
        if not name.strip() or not column.strip():
            raise StudyError(
                f"--values {quoted(text)} does not name a variable and a column; write for example --values "
                "id=orders.id"
            )
    return _once("--values", [(name.strip(), column.strip()) for name, _, column in pairs])


def _patterns(texts: Sequence[str] | None) -> dict[str, dict[str, str]] | None:
    """Returns the values of `--reads`, such as `NOPM=achieved (\\d+) NOPM`, in the form of the study file."""
    if not texts:
        return None
    pairs = [text.partition("=") for text in texts]
    for text, (name, _, pattern) in zip(texts, pairs, strict=True):
        if not name.strip() or not pattern.strip():
            raise StudyError(
                f"--reads {quoted(text)} does not consist of a name and a pattern; write for example --reads "
                "'NOPM=achieved (\\d+) NOPM'"
            )
    named = _once("--reads", [(name.strip(), pattern) for name, _, pattern in pairs])
    return {name: {"pattern": pattern} for name, pattern in named.items()}


def _promise(text: str | None) -> dict[str, str] | None:
    """Returns the value of `--capacity`, such as `p99=20ms,failures=0.1%`, in the form of the study file. A rate counts
    as served only if the response time and the share of failures keep these limits."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in _words(text) or []]
    if not pairs or not all(name.strip() and value.strip() for name, _, value in pairs):
        raise StudyError(
            f"--capacity {quoted(text)} does not name a percentile and its limit; write for example --capacity "
            "p99=20ms,failures=0.1%"
        )
    return _once("--capacity", [(name.strip(), value.strip()) for name, _, value in pairs])


def _once(option: str, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Returns the pairs as a dictionary. Raises StudyError if a name occurs twice, since one of its values would be
    lost."""
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
            f"{option} {quoted(text)} is not a list of whole numbers; write for example {option} 1,8,32"
        ) from None
