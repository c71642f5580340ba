"""A secret key of this account on this machine. pgtrial uses it to mark what it has written here, and to make digests
of values that must not be disclosed. The key is a file of the state directory and never leaves it."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

from pgtrial.store.state import is_own, own_directory, state_root


def seal(text: str) -> str:
    """Returns a mark of a text that only this account on this machine can make."""
    return _digest("seal", text)


def is_sealed(text: str, mark: object) -> bool:
    """True if this account made the mark of this text on this machine."""
    return isinstance(mark, str) and hmac.compare_digest(mark.encode(), seal(text).encode())


def not_told(name: str, text: str) -> str:
    """Returns the text that is stored in place of one that may be a secret. Equal texts have equal digests on this
    machine.

    Nobody who has only the digest can find the text by trying words, since that needs the key.
    """
    return f"set, not shown (digest {_digest(name, text)[:8]})"


def digest_here(name: str, text: str) -> str:
    """Returns a digest of a text that must not be disclosed. Only this account on this machine can find the text by
    trying words."""
    return _digest(name, text)[:16]


def _digest(of: str, text: str) -> str:
    return hmac.new(
        _key(state_root() / "machine.key"), f"{of}\0{text}".encode(errors="surrogatepass"), "sha256"
    ).hexdigest()


@cache
def _key(path: Path) -> bytes:
    """Returns the key, and makes it if it is missing. If no state directory can keep it, the key holds for this process
    only."""
    new = secrets.token_bytes(32)
    with suppress(OSError):
        own_directory(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(new)
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        if is_own(path):
            return path.read_bytes()
    return new
