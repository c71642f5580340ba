"""Provides a secret key of this account on this machine. pgtrial uses it to sign files that it has written here, so
that it recognises them later, and to compute digests of values that must not be disclosed. The key is a file in the
state directory and never leaves it."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

from pgtrial.files.writing import new_beside
from pgtrial.store.state import is_own, own_directory, state_root


def seal(text: str) -> str:
    """Returns a signature of a text, which only this account on this machine can compute, since it needs the secret
    key."""
    return _digest("seal", text)


def is_sealed(text: str, mark: object) -> bool:
    """True if `mark` is the signature that this account on this machine computes for the text (`seal`)."""
    return isinstance(mark, str) and hmac.compare_digest(mark.encode(), seal(text).encode())


def not_shown(name: str, text: str) -> str:
    """Returns the text that is stored in place of a value that may be a secret. The text contains a digest of the
    value. On one machine, equal values have equal digests, so pgtrial still sees whether two values differ.

    Somebody who knows only the digest cannot find the value by trying words, since that needs the key.
    """
    return f"set, not shown (digest {_digest(name, text)[:8]})"


def digest_here(name: str, text: str) -> str:
    """Returns a digest of a text that must not be disclosed. Only this account on this machine could find out the text
    by trying words, since the digest needs the secret key of this account."""
    return _digest(name, text)[:16]


def _digest(of: str, text: str) -> str:
    return hmac.new(
        _key(state_root() / "machine.key"), f"{of}\0{text}".encode(errors="surrogatepass"), "sha256"
    ).hexdigest()


@cache
def _key(path: Path) -> bytes:
    """Returns the key, and creates it if it does not exist. If the state directory cannot be written, the key is valid
    only in this process."""
    new = secrets.token_bytes(32)
    with suppress(OSError):
        own_directory(path.parent)
        with new_beside(path) as file:
            os.fchmod(file.file.fileno(), 0o600)
            file.file.write(new)
            file.file.flush()
            with suppress(FileExistsError):
                os.link(file.path, path)
        if is_own(path):
            return path.read_bytes()
    return new
