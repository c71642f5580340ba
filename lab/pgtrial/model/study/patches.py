"""Patches of a server's source, such as `git format-patch` and `diff -u` write them, or a mailing list has them.

A study file names the files of patches. When pgtrial stores (freezes) a study, it writes the text of each patch in
place of its path, so that the stored study and its bundle need no other file.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_SUBJECT = re.compile(r"^Subject:[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_TAG = re.compile(r"^(\[[^\]]*\]\s*)+")
_FILE = re.compile(r"^\+\+\+ (?:[^/\s]+/)?([^\t\n\r]+)", re.MULTILINE)
_CHANGE = re.compile(r"^(diff --git |--- )", re.MULTILINE)


@dataclass(frozen=True)
class Patch:
    """A patch, whose text is known."""

    text: str

    @property
    def title(self) -> str:
        """The subject of the mail or commit without its tags, such as `[PATCH v3 1/2]`; for a plain difference, the
        first file that it changes."""
        header = self.text[: first.start()] if (first := _CHANGE.search(self.text)) is not None else self.text
        if (subject := _SUBJECT.search(header)) is not None:
            title = _TAG.sub("", " ".join(subject[1].split()))
            if title:
                return title
        return file[1] if (file := _FILE.search(self.text)) is not None else "a patch"

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The title and the digest, which tell this patch from other versions of it."""
        return f"{self.title} (SHA-256 {self.digest})"


def is_text(patch: str) -> bool:
    """True if an entry of the key `patches` is the text of a patch, as in a stored study, and not the path of a
    file."""
    return "\n" in patch


def changes_files(text: str) -> bool:
    """True if a text has the beginning of a change of a file, as each patch has."""
    return _CHANGE.search(text) is not None
