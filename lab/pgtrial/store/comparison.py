"""Makes a study from set-ups on the command line. A set-up is a short text that describes an arm, such as
`shared_buffers=2GB`. `pgtrial compare` and the Python function `pgtrial.compare` use it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.query_forms import KEYS_OF_SCRIPTS, KEYS_OF_SQL, OBJECTS
from pgtrial.model.quoting import quoted
from pgtrial.model.study.connection_strings import SERVER_KEYS, names_server
from pgtrial.model.study.jobs import JOB, file_of, is_job
from pgtrial.model.study.servers import parts_of
from pgtrial.model.study.sources import is_source
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.tokens import without_tokens
from pgtrial.model.units import numbered
from pgtrial.store.sources import absolute
from pgtrial.store.study_file import Change, build_study

_NAMED = re.compile(r"([A-Za-z][\w.+-]*)=((?:postgres(?:ql)?://|job:|[A-Za-z_][\w.]*\s*=).*)", re.DOTALL)
"""Matches a set-up that begins with the name of the arm: `a=host=db1`, `old=postgres=14`."""

_NEXT_KEY = re.compile(r",(?=\s*[A-Za-z_][\w.]*\s*=)")
_TO_THE_END = ("command", *KEYS_OF_SQL)
"""The keys of a set-up whose value extends to the end of the text, since it may contain commas."""
_LAST = re.compile(rf"(?:(.*?),\s*)??({'|'.join(_TO_THE_END)})\s*=\s*(.*)", re.DOTALL)
"""Matches a set-up that ends with a key whose value extends to the end of the text (a client program or SQL)."""
_NAME_ALONE = re.compile(r"([A-Za-z][A-Za-z0-9+-]*)=")
"""Matches the name of an arm without any set-up, `plain=`, which means a server with all settings unchanged. The
pattern must not match a setting with an empty value, such as `search_path=`: settings of PostgreSQL that may be empty
have an underscore in their names, and settings of extensions a period, which the pattern excludes."""
_DEFAULT = "default"
_SQL = re.compile(
    r"(?:none|(?:[\w.-]+\s*=\s*)?(?:CREATE|DROP|ALTER|INSERT|UPDATE|DELETE|SELECT)\s.*)", re.I | re.DOTALL
)
"""Matches a text in which a user gave an SQL statement as a set-up without the key `query` or `setup`: the statement,
with or without the arm's name before it. Also matches `none`, which users write for "no SQL"."""
_LONGEST_NAME = 56
"""The largest length of an arm's name, in characters."""


def comparison(
    arms: Sequence[str],
    origin: str,
    question: str | None,
    seed: int | None,
    sections: Mapping[str, Mapping[str, Any]],
    *,
    change: Change = dict,
) -> StudySpec:
    """Returns the study that compares arms from the command line. `sections` are further sections of a study file, and
    `origin` is the source that messages name.

    `change` is a function that is applied to the keys of the study, as a study file would have them, before they are
    checked. Raises StudyError if the arms or keys are invalid.
    """
    named = name_arms(arms)
    given: dict[str, Any] = ({"question": question} if question else {}) | ({"seed": seed} if seed is not None else {})
    data = change({"study": given, "arms": named, **sections})
    if len(arms) < 2 and "capacity" not in data.get("load", {}):
        raise StudyError("a comparison needs at least two arms; name another set-up, such as `default`")
    study = {"question": _question(list(named)), "name": "compare", **data["study"]}
    return build_study({**data, "study": study}, origin)


def _question(arms: Sequence[str]) -> str:
    if len(arms) == 1:
        return f"What is the capacity of {arms[0]}?"
    return f"Which is faster: {' or '.join(arms)}?"


def name_arms(texts: Sequence[str], known: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Returns the arms by name, with the keys that they would have in a study file.

    An arm without a name is named by the text of its set-up; a server of the user is named by the part of its
    connection string that differs from the others. If a name occurs several times, a number is added. A text that is
    the name of an arm in `known` stands for that arm.
    """
    known = known or {}
    given = [(text, text) if text in known else _with_name(text) for text in texts]
    setups = [known[text] if text in known else parse_setup(text) for _, text in given]
    servers = _server_names(
        [setup["dsn"] for (name, _), setup in zip(given, setups, strict=True) if name is None and "dsn" in setup]
    )
    named: dict[str, dict[str, Any]] = {}
    for (name, text), setup in zip(given, setups, strict=True):
        # the text of a set-up becomes the name of the arm, and may contain a URL with a token
        stem = name or (servers[setup["dsn"]] if "dsn" in setup else " ".join(text.split()) or _DEFAULT)
        named[numbered(without_tokens(stem)[:_LONGEST_NAME], named)] = setup
    return named


def _refuse_colon(part: str) -> None:
    """Raises StudyError for a set-up such as `idx: jit=on`, in which the user meant to name an arm. The right form is
    `idx=jit=on`."""
    name, colon, rest = part.partition(":")
    if colon and ("=" in rest or not rest) and re.fullmatch(r"\s*[A-Za-z][\w. -]*", name):
        raise StudyError(
            f"{quoted(part.strip())}: an arm is named by NAME=..., such as "
            f"'{name.strip()}={rest.strip() or 'jit=off'}'; separate settings by commas"
        )


def _with_name(text: str) -> tuple[str | None, str]:
    """Returns the name of the arm at the beginning of a set-up (None if it has no name), and the rest of the set-up."""
    text = text.strip()
    no_names = {*SERVER_KEYS, *_TO_THE_END}
    if (alone := _NAME_ALONE.fullmatch(text)) is not None and alone[1] not in no_names:
        return alone[1], _DEFAULT
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match is not None and match[1] not in no_names else (None, text)


def parse_setup(text: str) -> dict[str, Any]:
    """Returns a set-up from the command line as the keys of an arm in a study file. Raises StudyError if the set-up
    cannot be understood."""
    text = text.strip()
    if text in ("", _DEFAULT):
        return {}
    if names_server(text):
        return {"dsn": text}
    if is_job(text):
        text = f"workload={text}"
    if _SQL.match(text) and text.partition("=")[0].strip() not in _TO_THE_END:
        raise StudyError(f"{quoted(text)} is not a set-up: {OBJECTS}")
    setup: dict[str, Any] = {}
    if (match := _LAST.fullmatch(text)) is not None:
        key = KEYS_OF_SQL.get(match[2], match[2])
        text, setup[key] = match[1], [match[3]] if key == "setup_sql" else match[3]
    for part in _NEXT_KEY.split(text) if text else ():
        _refuse_colon(part)
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise StudyError(
                f"{quoted(part.strip())} is not a set-up; write NAME=VALUE, postgres=VERSION, query=SQL, setup=SQL, "
                f"workload=FILE.sql, job:FILE.sql, data=FILE.sql, command=PROGRAM, a connection string, or "
                f"{quoted(_DEFAULT)}"
            )
        if (key in setup and key != "values") or key in setup.get("settings", ()):
            raise StudyError(f"{quoted(text)} has {key} more than once; leave one out")
        _add(setup, key, value)
    return setup


def _add(setup: dict[str, Any], key: str, value: str) -> None:
    """Adds one KEY=VALUE of a set-up to the keys of an arm. A key that pgtrial does not know is taken for a setting of
    PostgreSQL. Raises StudyError if the key is `values` and its value does not name a variable and a column."""
    match key:
        case "postgres" | "reset" | "price" | "compiler" | "workload" | "command_directory":
            setup[key] = value
        case "data":
            setup[key] = [value]
        case "values":
            name, _, column = (text.strip() for text in value.partition("="))
            if not name or not column:
                raise StudyError(
                    f"values={value} does not name a variable and a column; write for example values=id=orders.id"
                )
            setup.setdefault("values", {})[name] = column
        case "initdb" | "build" | "extensions" | "patches":
            setup[key] = value.split()
        case _:
            setup.setdefault("settings", {})[key] = value


def _server_names(dsns: Sequence[str]) -> dict[str, str]:
    """Returns, for each connection string, the shortest text that distinguishes it from the others: its host, port,
    database or user."""
    for names in zip(*map(_short_names, dsns), strict=True):
        if len(names) > 1 and all(names) and len(set(names)) == len(names):
            return dict(zip(dsns, names, strict=True))
    return {dsn: _server_name(dsn) for dsn in dsns}


def _short_names(dsn: str) -> tuple[str, ...]:
    """Returns the texts by which a server may be named, such as its host or port, in the order in which pgtrial tries
    whether they distinguish it from the other servers."""
    parts = parts_of(dsn)
    host = _host(parts)
    # of a host name only the first label; an IP address or a socket directory unchanged
    short = host if re.match(r"[/@]|[\d.]+$|.*:", host) else host.partition(".")[0]
    return short, host, f"port {parts.get('port', '5432')}", parts.get("dbname", ""), parts.get("user", "")


def _host(parts: Mapping[str, str]) -> str:
    return parts.get("host") or parts.get("hostaddr") or parts.get("service") or "local"


def _server_name(dsn: str) -> str:
    parts = parts_of(dsn)
    if not parts:
        # an invalid connection string is reported later, without its password, when the study is checked
        return "server"
    port = f":{parts['port']}" if "port" in parts else ""
    return f"{_host(parts)}{port}/{parts.get('dbname', '')}".rstrip("/")


def with_arms(texts: Sequence[str], *, again: bool = False) -> Change:
    """Returns a function that replaces the arms in the keys of a study file; the first new arm is the baseline. Each
    text is the name of an arm in the file, or a set-up from the command line, whose paths are relative to the current
    directory. With `again`, the baseline is added once more as the last arm, so that the study also compares it with
    itself."""

    def change(data: dict[str, Any]) -> dict[str, Any]:
        own = data.get("arms")
        known = own if isinstance(own, Mapping) else {}
        named = name_arms(texts, known)
        arms = {
            name: setup if text in known else _from_here(setup)
            for text, (name, setup) in zip(texts, named.items(), strict=True)
        }
        if again:
            baseline = next(iter(arms))
            arms[numbered(f"{baseline[: _LONGEST_NAME - len(_AGAIN)]}{_AGAIN}", arms)] = arms[baseline]
        return _asking(data, arms, len(texts))

    return change


_AGAIN = " again"


def with_setups(setups: Sequence[tuple[str, Mapping[str, Any]]]) -> Change:
    """Returns a function that replaces the arms in the keys of a study file by arms with these names and set-ups, which
    come from another study."""

    def change(data: dict[str, Any]) -> dict[str, Any]:
        arms: dict[str, Any] = {}
        for name, setup in setups:
            arms[numbered(name[:_LONGEST_NAME], arms)] = dict(setup)
        return _asking(data, arms, len(arms))

    return change


def _asking(data: dict[str, Any], arms: Mapping[str, Any], compared: int) -> dict[str, Any]:
    """Returns the keys of a study file with other arms, and with a question that names the first `compared` of them.

    Raises StudyError if the arms of the file contained the load of the study (scripts or queries), and the new arms do
    not.
    """
    own, load = data.get("arms"), data.get("load", {})
    if (
        _has_scripts(own)
        and not _has_scripts(arms)
        and not (isinstance(load, Mapping) and {*KEYS_OF_SCRIPTS} & {*load})
    ):
        raise StudyError(
            "each arm of the study has a query or a script of its own, but the arms that replace them have none; give "
            f"the new arms a query (NAME=query=SELECT ...), or write {marks.key('load', 'query')} or "
            f"{marks.short_key('load', 'workload')} in the study"
        )
    study = data.get("study")
    if isinstance(study, Mapping):
        study = {**study, "question": f"{_about(study)}: {' or '.join(list(arms)[:compared])}?"}
    return {**data, "study": study, "arms": arms}


def _has_scripts(arms: Any) -> bool:
    """True if an arm of a study file has a query or a script of its own."""
    tables = arms.values() if isinstance(arms, Mapping) else ()
    return any(isinstance(keys, Mapping) and {*KEYS_OF_SCRIPTS} & {*keys} for keys in tables)


def _from_here(setup: dict[str, Any]) -> dict[str, Any]:
    """Returns a set-up from the command line in which the paths of servers, scripts, data and sources are absolute. The
    user's relative paths are relative to the current directory, but in a study file they would be read as relative to
    the file."""
    changed = dict(setup)
    if "postgres" in changed:
        changed["postgres"] = absolute(changed["postgres"], Path())
    if (directory := changed.get("command_directory")) is not None:
        here = Path(directory).expanduser().absolute()
        changed["command_directory"] = absolute(directory, Path()) if is_source(directory) else str(here)
    if "workload" in changed:
        prefix = JOB if is_job(changed["workload"]) else ""
        changed["workload"] = f"{prefix}{Path(file_of(changed['workload'])).expanduser().absolute()}"
    if "data" in changed:
        changed["data"] = [str(Path(path).expanduser().absolute()) for path in changed["data"]]
    if "extensions" in changed:
        changed["extensions"] = [absolute(text, Path()) for text in changed["extensions"]]
    return changed


def _about(study: Mapping[str, Any]) -> str:
    """Returns the beginning of the question of a study whose arms were replaced. The caller adds the names of the new
    arms."""
    return str(study.get("question") or study.get("name") or "Which is faster").rstrip("?. ")
