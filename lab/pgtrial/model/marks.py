"""Placeholders, called marks, for the keys, sections and arms of a study file that a message names.

Code writes a message as `f"{marks.key('load', 'rate')} must be 1 or more"`. The mark stays in the text, even if another
message quotes it, until the message is shown. Then each mark is replaced by the words that fit the place where the
message appears: `in_toml` writes the key as it stands in the study file, `[load] rate`, and `pgtrial.cli.by_options`
writes it as an option of the command. `str(error)` of a PgtrialError uses `in_toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgtrial.model.toml_values import toml_value


def key(section: str, name: str = "", value: Any = None) -> str:
    """Returns the mark (the placeholder in a message) of a key, or of a whole table if no name is given.

    `section` is the table as it is named in the study file, such as `load` or `load.suite`; `name` is the key in the
    table, such as `clients`; `value` is a value that the message gives for the key.
    """
    return _mark(_Kind.KEY, section, name, value)


def set_key(section: str, name: str, value: Any = None) -> str:
    """Returns the mark (the placeholder in a message) of the verb "set" with a key, as in "set [load] rate". Where a
    command names the key by its option `--set`, the verb becomes "add"."""
    return _mark(_Kind.SET_KEY, section, name, value)


def short_key(section: str, name: str, value: Any = None) -> str:
    """Returns the mark (the placeholder in a message) of a key without its section, for a message that has named the
    section before."""
    return _mark(_Kind.SHORT_KEY, section, name, value)


def key_in(section: str, name: str, value: Any = None, *, preposition: str = "in") -> str:
    """Returns the mark (the placeholder in a message) of a key that is written before its section, as in `command in
    [load.job]`."""
    return _mark(_Kind.KEY_IN, section, name, value, preposition)


def file_key(section: str, name: str) -> str:
    """Returns the mark (the placeholder in a message) of a key that stands in parentheses after the option with the
    same meaning, as in `--data ([load] data)`. A message that names keys by options already has the option, so there
    the mark is replaced by an empty text. The mark includes the space before the parenthesis."""
    return _mark(_Kind.FILE_KEY, section, name)


def section(name: str) -> str:
    """Returns the mark (the placeholder in a message) of a section that is named within a sentence, such as "it belongs
    in [load]"."""
    return _mark(_Kind.SECTION, name)


def heading(section: str) -> str:
    """Returns the mark (the placeholder in a message) of a section that stands before the sentence which applies to it,
    as in "[load] clients must be 1 or more". The mark includes the space after the section."""
    return _mark(_Kind.HEADING, section)


def arm(name: str) -> str:
    """Returns the mark (the placeholder in a message) of an arm that is named within a sentence, such as "[arms.NAME]
    has no price"."""
    return _mark(_Kind.ARM, name)


def at_arm(name: str) -> str:
    """Returns the mark (the placeholder in a message) of an arm that stands before the sentence which applies to it, as
    in "[arms.new] a job changes the data". The mark includes the space after the arm."""
    return _mark(_Kind.AT_ARM, name)


def stored(sentence: str) -> str:
    """Returns a mark that contains a sentence which pgtrial stored earlier, such as a finding. Such a sentence names
    keys as the study file does, and has no marks of its own."""
    return _mark(_Kind.STORED, sentence)


@dataclass(frozen=True)
class Mention:
    """The content of a mark: the key, the table, the arm or the stored sentence for which the mark stands."""

    section: str
    """The table of the study file, the name of the arm, or the stored sentence."""
    name: str
    """The key in the table; empty for a whole table."""
    value: str
    """The value that the message gives to the key, as TOML writes it; empty if it gives none."""
    preposition: str
    """The word between a key and the section after it, such as `in` of `command in [load.job]`."""

    @property
    def path(self) -> str:
        """Returns the path of the key or of the table, such as `load.suite.cache`."""
        return f"{self.section}.{self.name}" if self.name else self.section


class Words:
    """Writes the text that replaces each kind of mark. This class names keys as the study file does; a subclass
    overrides the methods to name them otherwise, for example by options of a command."""

    def key(self, mention: Mention) -> str:
        """Returns the text for a key or a table, such as `[load] rate`."""
        return f"[{mention.section}]{f' {mention.name}' if mention.name else ''}{_with_value(mention)}"

    def set_key(self, mention: Mention) -> str:
        """Returns the text for a key that the user should set, with the verb: `set [load] rate`."""
        return f"set {self.key(mention)}"

    def short_key(self, mention: Mention) -> str:
        """Returns the text for a key whose section the same message has named before: `rate`."""
        return f"{mention.name}{_with_value(mention)}"

    def key_in(self, mention: Mention) -> str:
        """Returns the text for a key that is written before its section: `command in [load.job]`."""
        return f"{mention.name}{_with_value(mention)} {mention.preposition} [{mention.section}]"

    def file_key(self, mention: Mention) -> str:
        """Returns the text for a key after the option with the same meaning: ` ([load] data)`."""
        return f" ({self.key(mention)})"

    def section(self, mention: Mention) -> str:
        """Returns the text for a section within a sentence: `[load]`."""
        return f"[{mention.section}]"

    def heading(self, mention: Mention) -> str:
        """Returns the text for a section that stands before the sentence which applies to it: `[load] `, with the space
        after it."""
        return f"[{mention.section}] "

    def arm(self, mention: Mention) -> str:
        """Returns the text for an arm within a sentence: `[arms.new]`."""
        return f"[arms.{mention.section}]"

    def at_arm(self, mention: Mention) -> str:
        """Returns the text for an arm that stands before the sentence which applies to it: `[arms.new] `, with the
        space after it."""
        return f"[arms.{mention.section}] "

    def stored(self, mention: Mention) -> str:
        """Returns the stored sentence that the mark contains."""
        return mention.section


def in_words(text: str, words: Words) -> str:
    """Returns a message in which each mark is replaced by the text that `words` has for it."""
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
    """Returns a message in which each mark is replaced by the key, section or arm as the study file writes it."""
    return in_words(text, Words())


def keys_in(text: str) -> Iterator[str]:
    """Yields the paths of the keys and tables, such as `load.suite.cache`, for which the marks (placeholders) of a
    message stand."""
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

# Unicode reserves these noncharacters for internal use, so that no text of a user contains them
_BEGIN, _NEXT, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_PART = f"{_NEXT}([^{_BEGIN}{_NEXT}{_END}]*)"
_MARK = re.compile(f"{_BEGIN}({'|'.join(_Kind)}){4 * _PART}{_END}")


def _mark(kind: _Kind, section: str, name: str = "", value: Any = None, preposition: str = "") -> str:
    written = "" if value is None else toml_value(value)
    return f"{_BEGIN}{_NEXT.join((kind, section, name, written, preposition))}{_END}"


def _with_value(mention: Mention) -> str:
    return f" = {mention.value}" if mention.value else ""
