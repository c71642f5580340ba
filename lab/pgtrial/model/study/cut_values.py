"""Removes values that may be secrets from a study before it is stored in a bundle, and fills them in again from
environment variables before the study of a bundle runs. In the bundle, a mark such as `(cut: PGTRIAL_SECRET_1)` stands
in place of each value.

A study file does not say which values are secret. The following values of its servers are cut: settings for which the
facts store only a digest, `options` of connection strings, environment variables with names such as API_KEY, and texts
in which a password or a token is found. Values of the load and of metrics are not cut, because the plan contains them
too, and neither are scripts, which are files of their own. pgtrial tells the person who makes a bundle about these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgtrial.model.errors import StudyError
from pgtrial.model.known_settings import KNOWN
from pgtrial.model.records import Record
from pgtrial.model.study.servers import conninfo_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.tokens import without_tokens

_SECRET_NAME = re.compile(r"pass|token|secret|key|credential|dsn|conninfo", re.IGNORECASE)
_PLAIN = re.compile(r"|on|off|true|false|yes|no|[+-]?[\d.]+ *[a-z]{0,3}", re.IGNORECASE)
"""Matches values of settings that are switches or quantities, which cannot be secrets."""

_VARIABLE = "PGTRIAL_SECRET_"
_MARK = re.compile(rf"\(cut: ({_VARIABLE}\d+)\)")

_OPTION = re.compile(r"(?:-c\s*|--)([\w.]+)=((?:[^\s\\]|\\.)*)")
"""Matches a setting in the `options` of a connection string."""

Change = Callable[[str, str], str]
"""A function that returns the replacement for a value. Its arguments are the place of the value in the study, such as
`arms.new.settings.app.key`, and the value."""


def cut(spec: StudySpec) -> tuple[StudySpec, dict[str, list[str]]]:
    """Returns the study with a mark such as `(cut: PGTRIAL_SECRET_1)` in place of each value that may be a secret. Each
    mark names an environment variable. Also returns, for each of these variables, the paths of the values that the
    variable must provide, such as `arms.new.settings.app.key`.

    Equal values get the same variable, so that arms with equal values stay equal.
    """
    taken = _variables_in(spec)
    unused = (name for number in count(1) if (name := f"{_VARIABLE}{number}") not in taken)
    variables: dict[str, str] = {}
    paths: dict[str, list[str]] = {}

    def mark(path: str, text: str) -> str:
        earlier = _MARK.fullmatch(text)
        if earlier is None and text not in variables:
            variables[text] = next(unused)
        name = earlier[1] if earlier is not None else variables[text]
        paths.setdefault(name, []).append(path)
        return _mark(name)

    return _changed(spec, mark), paths


def filled(spec: StudySpec, environment: Mapping[str, str]) -> StudySpec:
    """Returns the study in which each mark such as `(cut: PGTRIAL_SECRET_1)` is replaced by the value of the
    environment variable that it names. Raises StudyError if a variable is missing."""
    wanted = _variables_in(spec)
    missing = [f"{name} ({', '.join(paths)})" for name, paths in wanted.items() if name not in environment]
    if missing:
        raise StudyError(
            "the study comes from a bundle without the values that may be secrets; set the environment variables "
            f"{' and '.join(missing)} to the values that the study must use"
        )
    marks = {_mark(name): environment[name] for name in wanted}
    return _changed(spec, lambda _, text: marks.get(text, text)) if marks else spec


def _mark(variable: str) -> str:
    return f"(cut: {variable})"


def _variables_in(spec: StudySpec) -> dict[str, list[str]]:
    """Returns the environment variables that the marks in a study, such as `(cut: PGTRIAL_SECRET_1)`, name. Each has
    the paths of its marks in the study."""
    paths: dict[str, list[str]] = {}

    def note(path: str, text: str) -> str:
        if (mark := _MARK.fullmatch(text)) is not None:
            paths.setdefault(mark[1], []).append(path)
        return text

    _changed(spec, note)
    return paths


def kept(spec: StudySpec) -> list[str]:
    """Returns the paths, such as `load.job.command`, of values in `[load]` and `[metrics.NAME]` that may be secrets.
    They are not cut, because the plan contains them too."""
    paths: list[str] = []

    def note(path: str, text: str) -> str:
        paths.append(path)
        return text

    _walked(spec.load, "load", note)
    _walked(spec.metrics, "metrics", note)
    return paths


def _changed(spec: StudySpec, change: Change) -> StudySpec:
    """Returns the study in which each text of its servers that may be a secret is replaced by the result of
    `change`."""
    arms = {arm: _walked(keys, f"arms.{arm}", change) for arm, keys in spec.arms.items()}
    return spec.model_copy(update={"server": _walked(spec.server, "server", change), "arms": arms})


def _walked(value: Any, path: str, change: Change) -> Any:
    match value:
        case Record():
            fields = type(value).model_fields
            parts = {
                name: (getattr(value, name), _walked(getattr(value, name), f"{path}.{name}", change)) for name in fields
            }
            update = {name: new for name, (old, new) in parts.items() if new != old}
            return value.model_copy(update=update) if update else value
        case dict():
            return {key: _walked(item, f"{path}.{key}", change) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_walked(item, path, change) for item in value)
        case str() if path.endswith(".dsn"):
            return _with_options(value, f"{path} options", change)
        case str() if _MARK.fullmatch(value) or _may_be_secret(path, value):
            return change(path, value)
    return value


def _may_be_secret(path: str, text: str) -> bool:
    _, of_settings, setting = path.partition(".settings.")
    if of_settings:
        return not _may_be_shown(setting, text)
    _, of_variables, name = re.sub(r"\.variables\.", ".environment.", path).partition(".environment.")
    return bool(of_variables and _SECRET_NAME.search(name)) or without_tokens(text) != text


def _may_be_shown(name: str, value: str) -> bool:
    """True if the value of a setting is unlikely to be a secret, judged by its name and its form. The facts also use
    the type of the setting, which a study file does not contain."""
    if _PLAIN.fullmatch(value) or name in KNOWN.texts_that_are_shown:
        return True
    return "." not in name and not name.endswith(("_command", "conninfo")) and without_tokens(value) == value


def _with_options(dsn: str, path: str, change: Change) -> str:
    """Returns a connection string whose `options` are replaced by the result of `change`; unchanged if no option may be
    a secret."""
    try:
        parts = conninfo_to_dict(conninfo_of(dsn))
    except ProgrammingError:
        return dsn
    former = str(parts.get("options", ""))
    settings = _OPTION.findall(former)
    if not _OPTION.sub("", former).strip() and all(_may_be_shown(name, text) for name, text in settings):
        return dsn
    options = change(path, former)
    return dsn if options == former else make_conninfo("", **{**parts, "options": options})
