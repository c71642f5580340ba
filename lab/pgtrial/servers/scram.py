"""What PostgreSQL stores of a password, worked out here, so that the password itself never leaves the lab."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode

_ITERATIONS = 4096


def verifier(password: str, salt: bytes | None = None) -> str:
    """The SCRAM-SHA-256 verifier of an ASCII password (RFC 5803, as in pg_authid), with a random salt of 16 bytes."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${_ITERATIONS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
