"""The sources of a server or an extension, as a study file writes them: `git:PATH@REF`, `git:URL@REF`,
`source:DIRECTORY`.

When pgtrial stores (freezes) a study, it writes a commit in place of a branch or tag. For a directory, it adds a digest
of the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from pgtrial.model.tokens import without_tokens

_GIT, _DIRECTORY = "git:", "source:"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_FROZEN = re.compile(r"(.+)@sha256:([0-9a-f]{16})")
_AT = re.compile(r"@(?!\{)")
_HOST = re.compile(r"[^/:]+:(?!/?$)[^:]")
"""Matches a repository on another host in the notation of ssh, `user@host:path`."""


@dataclass(frozen=True)
class GitSource:
    """A commit of a git repository as the source of a build."""

    repository: str
    """The repository: a directory, a URL, or `user@host:path` as ssh writes it."""
    ref: str
    """The name of the commit: a branch, a tag or a commit. In a study that pgtrial has stored (a frozen study), it has
    all digits of the commit."""

    @property
    def text(self) -> str:
        """Returns the source as a study file writes it."""
        return f"{_GIT}{self.repository}@{self.ref}"

    @property
    def is_fixed(self) -> bool:
        """True if the source names a commit by all of its digits, so that it always means the same files."""
        return is_commit(self.ref)

    @property
    def is_remote(self) -> bool:
        """True if the repository is named by a URL or an ssh address, and not by a directory of this machine."""
        return "://" in self.repository or bool(_HOST.match(self.repository))

    @property
    def short(self) -> str:
        """Returns a short name of the source for reports: `postgres@1a2b3c4d5e`."""
        name = re.split(r"[/:]", self.repository.rstrip("/"))[-1].removesuffix(".git")
        return f"{name or self.repository}@{self.ref[:10] if self.is_fixed else self.ref}"

    def at(self, ref: str) -> GitSource:
        """Returns the source with another ref of the same repository."""
        return GitSource(self.repository, ref)


@dataclass(frozen=True)
class DirectorySource:
    """The files of a directory as the source of a build. What counts is their content at the moment when pgtrial stores
    (freezes) the study."""

    directory: str
    digest: str = ""
    """The first 16 hexadecimal digits of the SHA-256 of the files; empty before pgtrial has stored (frozen) the
    study."""

    @property
    def text(self) -> str:
        """Returns the source as a study file writes it."""
        return f"{_DIRECTORY}{self.directory}" + (f"@sha256:{self.digest}" if self.digest else "")

    @property
    def is_fixed(self) -> bool:
        """True if the source has the digest of its files, so that it always means the same files."""
        return bool(self.digest)

    @property
    def short(self) -> str:
        """Returns a short name of the source for reports: `postgres with files 1a2b3c4d5e`."""
        return f"{self.directory.rstrip('/').rpartition('/')[2]} with files {self.digest[:10]}"


Source = GitSource | DirectorySource


def is_source(text: str) -> bool:
    """True if the text names a source to build from, and not a version or a directory of programs."""
    return text.startswith((_GIT, _DIRECTORY))


def is_commit(ref: str) -> bool:
    """True if the name of a commit has all of its digits."""
    return _COMMIT.fullmatch(ref) is not None


def source_of(text: str) -> Source:
    """Returns the source that a text of the study file names. Raises ValueError, whose message is the rest of a
    sentence that begins with the text."""
    if text.startswith(_DIRECTORY):
        return _directory(text.removeprefix(_DIRECTORY))
    if not text.startswith(_GIT):
        raise ValueError("is not a source; write git:PATH@REF, git:URL@REF or source:DIRECTORY")
    rest = text.removeprefix(_GIT)
    positions = [match.start() for match in _AT.finditer(rest)]
    repository, ref = (rest[: positions[-1]], rest[positions[-1] + 1 :]) if positions else (rest, "")
    if not repository or not ref:
        raise ValueError("names no commit; write a branch, tag or commit behind @, such as git:PATH@master")
    _check_words(repository, ref)
    return GitSource(repository, ref)


def source_in_key(text: str, noun: str = "source") -> Source:
    """Returns the source that a key of the study file names. Raises ValueError, whose message begins with `the` and the
    noun. It does not quote the text, since a URL may hold a password."""
    try:
        return source_of(text)
    except ValueError as error:
        raise ValueError(f"the {noun} {error}") from None


def _directory(text: str) -> DirectorySource:
    frozen = _FROZEN.fullmatch(text)
    directory, digest = (frozen[1], frozen[2]) if frozen else (text, "")
    if not directory or not directory.isprintable():
        raise ValueError("names no directory; write source:DIRECTORY")
    return DirectorySource(directory, digest)


def _check_words(repository: str, ref: str) -> None:
    """Raises ValueError for texts that git would take for an option or a command, and for texts with passwords or
    tokens."""
    for word in (repository, ref):
        if word.startswith("-") or not word.isprintable() or " " in ref:
            raise ValueError(
                "has a repository or ref that git would take for an option, or that has spaces or control "
                "characters; correct it"
            )
    if "::" in repository:
        raise ValueError("names a transport of git that runs a command; write a path, or a URL of https or ssh")
    if "://" in repository:
        scheme, _, _ = repository.partition("://")
        if scheme not in ("https", "http", "ssh", "git", "file"):
            raise ValueError(
                f"has a URL of {scheme}, which pgtrial does not use; write a URL of https, ssh, http, git or file"
            )
        try:
            user, password = urlsplit(repository).username, urlsplit(repository).password
        except ValueError:
            raise ValueError(
                "has a URL that cannot be parsed; write it as https://HOST/PATH or ssh://USER@HOST/PATH"
            ) from None
        if "@" not in repository and scheme != "file" and not urlsplit(repository).path.strip("/"):
            # in https://TOKEN@HOST/PATH without a ref, the text after the login was taken for the ref
            raise ValueError("names no commit; write a branch, tag or commit behind @, such as git:URL@master")
        # a user name without a password is often a token
        if password is not None or (user is not None and scheme in ("https", "http")):
            raise ValueError("has a login in its URL; leave the login out, and let git's credential helper give it")
        if without_tokens(text := f"{repository}@{ref}") != text:
            raise ValueError("has a token in its URL; leave the token out, and let git's credential helper give it")
