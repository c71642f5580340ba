"""Finds the ends of SQL statements by the rules of psql (psqlscan.l), which know quotes, comments, parentheses and
BEGIN ATOMIC.

A semicolon does not end a statement within parentheses (`CREATE RULE ... DO (a; b)`), nor within the body of a function
or procedure in standard SQL (`BEGIN ATOMIC ... END`). The text can be given in pieces, such as the lines of a large
file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BYTE_ORDER_MARK = "\ufeff"

_LETTER = r"[A-Za-z_\x80-\U0010ffff]"
_WORD = rf"{_LETTER}[\w$\x80-\U0010ffff]*"

_TOKEN = re.compile(
    rf"""(?P<line_comment>--[^\r\n]*)
      | (?P<comment>/\*)
      | (?P<escapes>\b[eE]')
      | (?P<quote>'|")
      | (?P<dollar>\$(?:{_LETTER}[\w\x80-\U0010ffff]*)?\$)
      | (?P<cast>::)
      | :'(?P<literal>[A-Za-z_]\w*)' | :(?P<name>[A-Za-z_]\w*)
      | (?P<number>\$?[0-9]+(?:{_WORD})?)
      | (?P<word>{_WORD})
      | (?P<open>\() | (?P<close>\)) | (?P<end>;)""",
    re.VERBOSE,
)
_SETS_ESCAPES = ["set", "standard_conforming_strings"]
_OFF = frozenset(("off", "false", "no"))
_ENDS = {
    "comment": re.compile(r"/\*|\*/"),
    "escapes": re.compile(r"\\.|''|'", re.DOTALL),
    "'": re.compile(r"''|'"),
    '"': re.compile(r'""|"'),
}

Kind = Literal["comment", "quoted", "literal", "name", "end", "other"]


@dataclass(frozen=True)
class Token:
    """A token of an SQL text. If a comment or quoted text extends over several pieces of the text, its part in each
    piece is a token.

    `name` is the name of a variable: the token is `:name`, or `:'name'` if its kind is `literal`.
    """

    kind: Kind
    start: int
    end: int
    name: str = ""


class Scanner:
    """Reads an SQL text piece by piece, and keeps its state between the pieces."""

    def __init__(self) -> None:
        self._inside: str | None = None
        """The kind of comment or quoted text that is still open at the end of the last piece; None if none is."""
        self._comments = 0
        """The number of block comments that are open at the end of the last piece; comments in SQL can be nested."""
        self._dollar = ""
        self._escapes = False
        """True if a backslash in plain quotes escapes the next character, since the text has SET
        standard_conforming_strings = off, as old dumps do."""
        self.ended: list[str] = []
        """The first words, in lower case, of the last statement whose end was found."""
        self._begin()

    def _begin(self) -> None:
        """Resets the state of the current statement, since a new statement begins."""
        self.under_way = False
        """True if the current statement has begun: it has more than white space and comments."""
        self._parentheses = 0
        self._bodies = 0
        """The number of words BEGIN and CASE in the body of a function for which no END has come yet. A semicolon ends
        the statement only when this number is 0."""
        self.words: list[str] = []
        """The first words of the current statement, at most four, in lower case."""

    @property
    def between(self) -> bool:
        """True if the scanner is between two statements, so that the next text begins a new one."""
        return not self.under_way and self._inside is None

    def tokens(self, text: str) -> Iterator[Token]:
        """Yields the tokens (words, quoted texts, comments and so on) of the next piece of the text. White space and
        operators between them are not yielded."""
        position = 0
        if self._inside is not None:
            kind: Kind = "comment" if self._inside == "comment" else "quoted"
            position = self._close(text, 0)
            yield Token(kind, 0, position)
        while (match := _TOKEN.search(text, position)) is not None:
            if text[position : match.start()].strip():
                self.under_way = True
            position = match.end()
            token = self._token(match)
            if self._inside is not None:
                position = self._close(text, position)
                token = Token(token.kind, token.start, position)
            yield token
        if text[position:].strip():
            self.under_way = True

    def _token(self, match: re.Match[str]) -> Token:
        """Returns the token for a match. For a block comment or quoted text, the token covers only its first
        characters, such as `/*` or `$$`, and `_inside` is set to its kind."""
        start, end = match.span()
        group = match.lastgroup or ""
        if group in ("line_comment", "comment"):
            if group == "comment":
                self._inside, self._comments = "comment", 1
            return Token("comment", start, end)
        self.under_way = True
        match group:
            case "escapes" | "quote" | "dollar":
                escapes = self._escapes and match[0] == "'"
                self._inside = "escapes" if escapes else match[0] if group == "quote" else group
                self._dollar = match[0]
                return Token("quoted", start, end)
            case "literal" | "name":
                return Token("literal" if group == "literal" else "name", start, end, match[group])
            case "end" if not self._parentheses and not self._bodies:
                if self.words[:2] == _SETS_ESCAPES:
                    self._escapes = not _OFF.isdisjoint(self.words)
                self.ended = self.words
                self._begin()
                return Token("end", start, end)
            case "word":
                self._word(match[0].lower())
            case "open":
                self._parentheses += 1
            case "close":
                self._parentheses = max(0, self._parentheses - 1)
        return Token("other", start, end)

    def _word(self, word: str) -> None:
        self.words = [*self.words, word][:4]
        if self._parentheses or not _creates_routine(self.words):
            return
        if word == "begin" or (word == "case" and self._bodies):
            self._bodies += 1
        elif word == "end" and self._bodies:
            self._bodies -= 1

    def _close(self, text: str, position: int) -> int:
        """Returns the offset behind the end of the comment or quoted text that is open; if it does not end in this
        piece, the length of the piece."""
        if self._inside == "dollar":
            at = text.find(self._dollar, position)
            if at < 0:
                return len(text)
            self._inside = None
            return at + len(self._dollar)
        for mark in _ENDS[self._inside or ""].finditer(text, position):
            if self._inside == "comment":
                self._comments += 1 if mark[0] == "/*" else -1
            if (self._inside == "comment" and not self._comments) or mark[0] in ("'", '"'):
                self._inside = None
                return mark.end()
        return len(text)


def first_words(statement: str) -> list[str]:
    """Returns the first words of a statement, at most four, in lower case. The statement must not have its semicolon at
    the end."""
    scanner = Scanner()
    for _ in scanner.tokens(statement):
        pass
    return scanner.words


def _creates_routine(words: list[str]) -> bool:
    """True if a statement that begins with these words is CREATE [OR REPLACE] FUNCTION or PROCEDURE."""
    rest = words[3:] if words[1:3] == ["or", "replace"] else words[1:]
    return words[:1] == ["create"] and rest[:1] in (["function"], ["procedure"])
