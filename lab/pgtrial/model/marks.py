"""Messages that name parts of a study file as data.

A message is a text in which marks stand for the keys, sections and arms that it names, such as
`f"{marks.key('load', 'rate')} must be 1 or more"`. The marks survive whatever is done with a text, such as wrapping it
in another message. The surface that shows the message replaces them by its own words: by those of the study file
(`in_toml`), or by the options of a command (`pgtrial.cli.by_options`). An error does so by itself: `str(error)` has the
words of the study file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgtrial.model.toml_values import toml_value


def key(section: str, name: str = "", value: Any = None) -> str:
    """Returns the mark of a key, or of a whole table if no name is given.

    `section` is the table as the study file heads it, such as `load` or `load.suite`; `name` is the key in it, such as
    `clients`; `value` is a value that the message gives to the key.
    """
    return _mark(_Kind.KEY, section, name, value)


def set_key(section: str, name: str, value: Any = None) -> str:
    """Returns the mark of the verb "set" and a key. The verb becomes "add" where the option `--set` names the key."""
    return _mark(_Kind.SET_KEY, section, name, value)


def short_key(section: str, name: str, value: Any = None) -> str:
    """Returns the mark of a key without its section, which the message has named already."""
    return _mark(_Kind.SHORT_KEY, section, name, value)


def key_in(section: str, name: str, value: Any = None, *, preposition: str = "in") -> str:
    """Returns the mark of a key that is named before its section: `command in [load.job]`."""
    return _mark(_Kind.KEY_IN, section, name, value, preposition)


def file_key(section: str, name: str) -> str:
    """Returns the mark of a key after the option that stands for it: `--data ([load] data)`. A surface whose words are
    options leaves it out. The mark includes the space before the bracket."""
    return _mark(_Kind.FILE_KEY, section, name)


def section(name: str) -> str:
    """Returns the mark of a section that a sentence names, such as "it belongs in [load]"."""
    return _mark(_Kind.SECTION, name)


def heading(section: str) -> str:
    """Returns the mark of the section in which the sentence after it applies. The mark includes the space after it."""
    return _mark(_Kind.HEADING, section)


def arm(name: str) -> str:
    """Returns the mark of an arm that a sentence names: "[arms.NAME] has no price"."""
    return _mark(_Kind.ARM, name)


def at_arm(name: str) -> str:
    """Returns the mark of the arm to which the sentence after it applies. The mark includes the space after it."""
    return _mark(_Kind.AT_ARM, name)


def stored(sentence: str) -> str:
    """Returns the mark of a sentence that was stored, such as a finding, so that it has the words of the study file and
    no marks."""
    return _mark(_Kind.STORED, sentence)


@dataclass(frozen=True)
class Mention:
    """The content of a mark: the key, the table, the arm or the stored sentence for which it stands."""

    section: str
    """The table of the study file, the name of an arm, or a stored sentence."""
    name: str
    """The key; empty for a whole table."""
    value: str
    """The value that the message gives to the key, as TOML writes it; empty if it gives none."""
    preposition: str
    """The word between a key and the section after it."""

    @property
    def path(self) -> str:
        """Returns the path of the key or of the table, such as `load.suite.cache`."""
        return f"{self.section}.{self.name}" if self.name else self.section


class Words:
    """The words that replace marks: here those of the study file. Another surface overrides the methods."""

    def key(self, mention: Mention) -> str:
        """Returns the words for a key or a table."""
        return f"[{mention.section}]{f' {mention.name}' if mention.name else ''}{_with_value(mention)}"

    def set_key(self, mention: Mention) -> str:
        """Returns the words for a key that the user is told to set, with the verb."""
        return f"set {self.key(mention)}"

    def short_key(self, mention: Mention) -> str:
        """Returns the words for a key whose section was named before."""
        return f"{mention.name}{_with_value(mention)}"

    def key_in(self, mention: Mention) -> str:
        """Returns the words for a key that is named before its section."""
        return f"{mention.name}{_with_value(mention)} {mention.preposition} [{mention.section}]"

    def file_key(self, mention: Mention) -> str:
        """Returns the words for a key whose option was named before."""
        return f" ({self.key(mention)})"

    def section(self, mention: Mention) -> str:
        """Returns the words for a section within a sentence."""
        return f"[{mention.section}]"

    def heading(self, mention: Mention) -> str:
        """Returns the words for a section before the sentence that applies to it."""
        return f"[{mention.section}] "

    def arm(self, mention: Mention) -> str:
        """Returns the words for an arm within a sentence."""
        return f"[arms.{mention.section}]"

    def at_arm(self, mention: Mention) -> str:
        """Returns the words for an arm before the sentence that applies to it."""
        return f"[arms.{mention.section}] "

    def stored(self, mention: Mention) -> str:
        """Returns the words for a stored sentence."""
        return mention.section


def in_words(text: str, words: Words) -> str:
    """Returns a message with these words in place of its marks."""
    if _BEGIN not in text:
        return text
    of_kind: dict[str, Callable[[Mention], str]] = {
        _Kind.KEY: words.key,
        _Kind.SET_KEY: words.set_key,
        _Kind.SHORT_KEY: words.short_key,
        _Kind.KEY_IN: words.key_in,
        _Kind.FILE_KEY: words.file_key,
        _Kind.SECTION: words.section,
        _Kind.HEADING: words.heading,
        _Kind.ARM: words.arm,
        _Kind.AT_ARM: words.at_arm,
        _Kind.STORED: words.stored,
    }
    return _MARK.sub(lambda found: of_kind[found[1]](Mention(*found.groups()[1:])), text)


def in_toml(text: str) -> str:
    """Returns a message with the words of the study file in place of its marks."""
    return in_words(text, Words())


def keys_in(text: str) -> Iterator[str]:
    """Yields the paths of the keys and tables that a message names by marks, such as `load.suite.cache`."""
    for found in _MARK.finditer(text):
        if found[1] in _KINDS_OF_KEYS:
            yield Mention(*found.groups()[1:]).path


class _Kind(StrEnum):
    KEY = "key"
    SET_KEY = "set key"
    SHORT_KEY = "short key"
    KEY_IN = "key in"
    FILE_KEY = "file key"
    SECTION = "section"
    HEADING = "heading"
    ARM = "arm"
    AT_ARM = "at arm"
    STORED = "stored"


_KINDS_OF_KEYS = (_Kind.KEY, _Kind.SET_KEY, _Kind.SHORT_KEY, _Kind.KEY_IN, _Kind.FILE_KEY)

# noncharacters, which Unicode reserves for the internal use of a program
_BEGIN, _NEXT, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_PART = f"{_NEXT}([^{_BEGIN}{_NEXT}{_END}]*)"
_MARK = re.compile(f"{_BEGIN}({'|'.join(_Kind)}){4 * _PART}{_END}")


def _mark(kind: _Kind, section: str, name: str = "", value: Any = None, preposition: str = "") -> str:
    written = "" if value is None else toml_value(value)
    return f"{_BEGIN}{_NEXT.join((kind, section, name, written, preposition))}{_END}"


def _with_value(mention: Mention) -> str:
    return f" = {mention.value}" if mention.value else ""
