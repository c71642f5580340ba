"""Rewords messages for studies that are made from command-line options, so that a message names the option
(`--clients`) where it would otherwise name the key of the study file (`[load] clients`).

Each command has a table of its options, by the paths of the keys that they set, such as `load.clients`. For any other
key the message names `--set PATH` if the command has `--set`, and otherwise the key itself.

Most messages name keys by marks (`pgtrial.model.marks`), which are replaced. Two kinds of sentences are stored in study
directories without marks: the findings of `pgtrial.verdict.rules`, and the reasons of failed trials. Only in these,
regular expressions find the keys.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from pgtrial.model.marks import Mention, Words, in_words
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.set_keys import toml_or_text

Reword = Callable[[str], str]
"""A function that returns a message in the words of the command that the user called."""

SET = "--set"
"""The option that sets every key of the study file for which a command has no option of its own."""

_SERVER = "--server"
_FORM_OF_ARMS = frozenset(
    (
        "postgres",
        "reset",
        "price",
        "compiler",
        "workload",
        "initdb",
        "build",
        "extensions",
        "patches",
        "dsn",
        "command",
        "command_directory",
        "query",
        "setup_sql",
    )
)
"""The keys of a server that can be written in the set-up of an arm on the command line. `--server` takes the same form
as an arm, so it accepts these keys too."""

_WITH_OWN_NAMES = ("load.job.reads.", "metrics.")
"""Beginnings of key paths below which the user chooses the names, such as the name of a metric."""

_SECTION = r"(?<!\w)\[((?:study|load|server|verdict|fleet)(?:\.\w+)?)\]"
_KEY = r"[a-z]\w*(?:\.\w+)*"
_VALUE = r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|[^\s;,()]+'
_MENTION = re.compile(rf"{_SECTION}(?: ({_KEY})\b(?: = ({_VALUE}))?)?")
_INSIDE = re.compile(rf"({_KEY}) = ({_VALUE}) in {_SECTION}")
"""Matches a setting with its value and section, such as `jit = off in [server.settings]`."""
_SHARED = re.compile(r"\bin \[server(?:\.settings)?\]")
"""Matches the section in which a setting is mentioned without its value, such as `in [server.settings]`."""
_SET_SET = re.compile(r"\b([Ss])et (?=--set )")


@cache
def paths_of_keys() -> frozenset[str]:
    """Returns the paths of all keys of a study file, such as `load.suite.cache`, except the keys of arms."""
    return frozenset(path for path in _paths(StudySpec, "") if not path.startswith("arms"))


def _paths(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, declared in model.model_fields.items():
        yield f"{before}{name}"
        for nested in _models(declared.annotation):
            yield from _paths(nested, f"{before}{name}.")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yields the record types that occur in a type annotation. A key of the study file with such a type is a table of
    further keys."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


@dataclass(frozen=True)
class _Options(Words):
    """The options of a command, and which keys of a study file they set."""

    named: Mapping[str, str]
    """The option for each key, by the path of the key. An option for a table of keys, such as `--capacity` for
    `load.capacity`, also sets the keys in this table."""
    flags: Collection[str] = ()
    """The paths of the keys whose options take no value."""
    sets: bool = field(default=False, kw_only=True)
    """True if the command has `--set` and `--server`. These two options can set every key for which `named` has no
    option."""

    def of(self, path: str, value: str | None = None) -> str | None:
        """Returns the option that sets a key, followed by the value if one is given. Returns None if the command has no
        option for the key, or if the study file has no such key."""
        if path not in paths_of_keys() and not path.startswith(_WITH_OWN_NAMES):
            return None
        above = path
        while above not in self.named and above.count(".") > 1:
            above = above.rpartition(".")[0]
        if (option := self.named.get(above)) is not None:
            return option if value is None or path in self.flags else f"{option} {shlex.quote(_listed(value, ','))}"
        if not self.sets:
            return None
        section, _, key = path.partition(".")
        if section == "server" and key in _FORM_OF_ARMS:
            return _with_value(_SERVER, key, value and _listed(value, " "))
        if path == "server.settings" and value is None:
            return _SERVER
        return _with_value(SET, path, value and _bare(value))

    def reword(self, message: str) -> str:
        """Returns the message with options in place of the keys that it names."""
        return in_words(message, self)

    def key(self, mention: Mention) -> str:
        option = self.of(mention.path, mention.value or None)
        # --fleet sets the section [fleet] as a whole, and does not set single keys of it
        named = option if mention.name or "." in mention.section else self.named.get(mention.section)
        return named or super().key(mention)

    def set_key(self, mention: Mention) -> str:
        named = self.key(mention)
        return f"{'add' if named.startswith(f'{SET} ') else 'set'} {named}"

    def short_key(self, mention: Mention) -> str:
        return self.of(mention.path, mention.value or None) or super().short_key(mention)

    def key_in(self, mention: Mention) -> str:
        return self.of(mention.path, mention.value or None) or super().key_in(mention)

    def file_key(self, mention: Mention) -> str:
        return "" if self.of(mention.path) is not None else super().file_key(mention)

    def section(self, mention: Mention) -> str:
        return mention.section if self.sets else super().section(mention)

    def heading(self, mention: Mention) -> str:
        return "" if self.sets else super().heading(mention)

    def arm(self, mention: Mention) -> str:
        return mention.section

    def at_arm(self, mention: Mention) -> str:
        return f"{mention.section}: "

    def stored(self, mention: Mention) -> str:
        text = mention.section
        if self.sets:
            text = _SHARED.sub(f"by {_SERVER}", _INSIDE.sub(self._setting, text))
        text = _MENTION.sub(self._key_or_table, text)
        return _SET_SET.sub(lambda found: "Add " if found[1] == "S" else "add ", text)

    def _setting(self, found: re.Match[str]) -> str:
        """Returns the option `--server` with its value for a setting that a message names, such as `jit = off in
        [server.settings]`."""
        key, value, section = found.groups()
        return _with_value(_SERVER, key, _listed(value, ",")) if section.startswith("server") else found[0]

    def _key_or_table(self, found: re.Match[str]) -> str:
        """Returns the option for a key that a message names, such as `[load] rate`, or for a whole table of keys such
        as `[load.capacity]`. If there is no such option, returns the text of the message unchanged."""
        section, key, value = found.groups()
        if key is not None and (option := self.of(f"{section}.{key}", value)) is not None:
            return option
        table = self.of(section) if "." in section else None
        return found[0] if table is None else found[0].replace(f"[{section}]", table)


def _with_value(option: str, key: str, value: str | None) -> str:
    return f"{option} {key}" if value is None else f"{option} {shlex.quote(f'{key}={value}')}"


def _listed(value: str, separator: str) -> str:
    """Returns a TOML value in the form that options take: a string without quotes, a list with its items joined by the
    separator, or a table such as `p99=20ms`."""
    match toml_or_text(value):
        case list() as items:
            return separator.join(map(str, items))
        case dict() as pairs:
            return separator.join(f"{name}={text}" for name, text in pairs.items())
        case str() as text:
            return text
    return value


def _bare(value: str) -> str:
    """Returns a TOML value in the form that `--set` takes: a string without its quotes, unless it would then be read as
    another type, such as a number."""
    text = toml_or_text(value)
    return text if isinstance(text, str) and toml_or_text(text) == text else value


def by_options(named: Mapping[str, str], flags: Collection[str] = (), *, sets: bool = False) -> Reword:
    """Returns a function that rewords messages for a command with these options. `named` maps the path of each key to
    the option that sets it.

    `flags` are the paths of the keys whose options take no value. `sets` is true if the command has --set and --server,
    which can set every key that is not in `named`.
    """
    return _Options(named, flags, sets=sets).reword
