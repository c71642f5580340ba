"""`pgtrial compare`: a study from the command line, the same as a study file would make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pgtrial.cli import study_options
from pgtrial.cli.conduct import start
from pgtrial.model.errors import StudyError
from pgtrial.model.study.servers import parts_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import numbered
from pgtrial.store.study_file import build_study

_NAMED = re.compile(r"([A-Za-z][\w.+-]*)=((?:postgres(?:ql)?://|[A-Za-z_][\w.]*\s*=).*)", re.DOTALL)
"""A name before a set-up: `a=host=db1`, `old=postgres=14`."""

_DSN_KEYS = {"host", "hostaddr", "port", "user", "dbname", "service", "password"}
_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_][\w.]*\s*=)")
_DEFAULT = "default"
_LONGEST_NAME = 56
"""Characters."""


def compare_command(
    arms: Annotated[
        list[str],
        typer.Argument(
            help="Two or more set-ups, the baseline first: settings (NAME=VALUE[,NAME=VALUE...]), postgres=VERSION, "
            "a connection string, or `default` for the server as it is. A name may stand before it: a=host=db1.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str | None,
        typer.Option(
            help="tpcb-like, simple-update, select-only, order-entry, a test of sysbench such as oltp_read_write, "
            "app-tasks, a pack (pack:queue, or its folder), a replay (replay:DIRECTORY), or the path of a script "
            "(pgbench's .sql, sysbench's .lua); several with commas."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="With a replay: a dump of the data as they were when the capture began.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale factors, e.g. 10 or 10,100.")] = None,
    clients: Annotated[str | None, typer.Option(help="Numbers of clients, e.g. 1,8,32.")] = None,
    rate: Annotated[
        str | None, typer.Option(help="Transactions per second, e.g. 500 or 500,1000; decides on response time.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Engine threads.")] = None,
    protocol: Annotated[str | None, typer.Option(help="simple, extended or prepared.")] = None,
    fillfactor: Annotated[int | None, typer.Option(help="Fill factor of the tables, percent.")] = None,
    foreign_keys: Annotated[bool, typer.Option("--foreign-keys", help="Load tables with foreign keys.")] = False,
    warmup: Annotated[str | None, typer.Option(help="Load before the measured part, e.g. 10s.")] = None,
    duration: Annotated[str | None, typer.Option(help="The measured part of each trial, e.g. 30s.")] = None,
    max_tries: Annotated[
        int | None, typer.Option(help="Tries of a transaction that fails by serialization or deadlock; 0: no limit.")
    ] = None,
    latency_limit: Annotated[str | None, typer.Option(help="With --max-tries: no try after this, e.g. 1s.")] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks at most; default: what the budget holds.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for running the blocks, e.g. 30min.")] = None,
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
    fleet: study_options.Fleet = None,
    machines: study_options.Machines = None,
    pack: study_options.Pack = False,
    question: Annotated[str | None, typer.Option(help="The question, for the report's title.")] = None,
    results: Annotated[Path | None, typer.Option(help="The study's directory.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order.", min=0)] = None,
    new: Annotated[bool, typer.Option("--new", help="Start anew even if the same study is unfinished.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines.")] = False,
) -> int:
    """Compare set-ups without a study file; the study is written to its directory and can be run again from there.

    Example: pgtrial compare shared_buffers=128MB shared_buffers=2GB --workload select-only --clients 1,8,32
    """
    load = {
        "workload": _words(workload),
        "replay": {"data": data} if data is not None else None,
        "scale": _numbers("--scale", scale),
        "clients": _numbers("--clients", clients),
        "rate": _words(rate),
        "jobs": jobs,
        "protocol": protocol,
        "fillfactor": fillfactor,
        "foreign_keys": foreign_keys or None,
        "warmup": warmup,
        "duration": duration,
        "max_tries": max_tries,
        "latency_limit": latency_limit,
    }
    verdict = {"blocks": blocks, "budget": budget, "margin": margin, "allow_busy_client": allow_busy_client or None}
    sections = {"load": _given(load), "server": _merged(server or []), "verdict": _given(verdict)}
    spec = comparison(arms, "the command line", question, seed, sections)
    spec = study_options.by_fleet(spec, fleet, machines, pack=pack)
    return start(spec, results, anew=new, as_json=json)


def comparison(
    arms: Sequence[str], origin: str, question: str | None, seed: int | None, sections: Mapping[str, Mapping[str, Any]]
) -> StudySpec:
    """The study of arms as the command line names them, with other sections of a study file. `origin` is for messages.

    Raises StudyError.
    """
    named = name_arms(arms)
    question = question or f"Which is faster: {' or '.join(named)}?"
    study = _given({"question": question, "name": "compare", "seed": seed})
    return build_study({"study": study, "arms": named, **sections}, origin)


def name_arms(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The arms by name, as a study file would hold them.

    A name that is not given is the text of the set-up, of given servers what distinguishes them; numbered where it
    repeats.
    """
    given = [_with_name(text) for text in texts]
    setups = [parse_setup(text) for _, text in given]
    servers = _server_names(
        [setup["dsn"] for (name, _), setup in zip(given, setups, strict=True) if name is None and "dsn" in setup]
    )
    named: dict[str, dict[str, Any]] = {}
    for (name, text), setup in zip(given, setups, strict=True):
        stem = name or (servers[setup["dsn"]] if "dsn" in setup else " ".join(text.split()) or _DEFAULT)
        named[numbered(stem[:_LONGEST_NAME], named)] = setup
    return named


def _with_name(text: str) -> tuple[str | None, str]:
    """The name that stands before a set-up, if there is one, and the set-up."""
    found = _NAMED.fullmatch(text.strip())
    return (found[1], found[2]) if found is not None and found[1] not in _DSN_KEYS else (None, text)


def parse_setup(text: str) -> dict[str, Any]:
    """One set-up of the command line as keys of a study file. Raises StudyError."""
    text = text.strip()
    if text in ("", _DEFAULT):
        return {}
    if re.match(r"postgres(ql)?://", text) or text.partition("=")[0].strip() in _DSN_KEYS:
        return {"dsn": text}
    setup: dict[str, Any] = {}
    for part in _NEXT_KEY.split(text):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise StudyError(
                f"{part.strip()!r} is no set-up; "
                f"write NAME=VALUE, postgres=VERSION, a connection string, or {_DEFAULT!r}"
            )
        match key:
            case "postgres" | "reset":
                setup[key] = value
            case "initdb":
                setup[key] = value.split()
            case _:
                setup.setdefault("settings", {})[key] = value
    return setup


def _merged(texts: Sequence[str]) -> dict[str, Any]:
    shared: dict[str, Any] = {}
    for setup in map(parse_setup, texts):
        settings = {**shared.get("settings", {}), **setup.get("settings", {})}
        shared = {**shared, **setup, **({"settings": settings} if settings else {})}
    return shared


def _server_names(dsns: Sequence[str]) -> dict[str, str]:
    """By connection string the shortest text that distinguishes it: host, port, database or user."""
    for names in zip(*map(_short_names, dsns), strict=True):
        if len(names) > 1 and all(names) and len(set(names)) == len(names):
            return dict(zip(dsns, names, strict=True))
    return {dsn: _server_name(dsn) for dsn in dsns}


def _short_names(dsn: str) -> tuple[str, ...]:
    """What may distinguish a server from others, the shortest first."""
    parts = parts_of(dsn)
    host = _host(parts)
    # the first label of a host's name; an address or a socket's directory as it is
    short = host if re.match(r"[/@]|[\d.]+$|.*:", host) else host.partition(".")[0]
    return short, host, f"port {parts.get('port', '5432')}", parts.get("dbname", ""), parts.get("user", "")


def _host(parts: Mapping[str, str]) -> str:
    return parts.get("host") or parts.get("hostaddr") or parts.get("service") or "local"


def _server_name(dsn: str) -> str:
    parts = parts_of(dsn)
    if not parts:
        # said properly when the study is checked, without the password
        return "server"
    port = f":{parts['port']}" if "port" in parts else ""
    return f"{_host(parts)}{port}/{parts.get('dbname', '')}".rstrip("/")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _numbers(option: str, text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(word) for word in _words(text) or []]
    except ValueError:
        raise StudyError(
            f"{option} {text!r} is not a list of whole numbers; write for example {option} 1,8,32"
        ) from None
