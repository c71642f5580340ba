"""Cuts passwords and tokens from a text before it is printed or stored. They are found in URLs, connection strings, SQL
and headers, and by the shapes of the tokens of known services."""

from __future__ import annotations

import re

CUT = "***"
"""The text that replaces a secret."""

_NAMES = (
    r"(?:access|private|auth|refresh|id|job|deploy|personal_access)[_-]?token|token|api[_-]?key|secret|client_secret"
    r"|password|passwd|sslpassword|oauth_client_secret|scram_(?:client|server)_key|sig|signature|x-amz-[a-z-]+"
)
# the patterns never cut a quote or a backslash, so that a JSON text stays valid
_FORMS = (
    # a login in a URL; with http all of it is cut, since a user name without a password is often a token
    (re.compile(r"\b(https?://)[^\s/@'\"\\]*(?:@[^\s/@'\"\\]+)*@(?=[^\s/@])", re.IGNORECASE), rf"\1{CUT}@"),
    (re.compile(r"\b([a-z][a-z0-9+.-]{0,20}://[^\s/@:'\"\\]*:)[^\s@/'\"\\]+@", re.IGNORECASE), rf"\1{CUT}@"),
    # a parameter of a URL or of a connection string, or a variable
    (
        re.compile(rf"(?<![a-z0-9])((?:{_NAMES})=)(?![$:*])(?:'(?:[^'\\\"\n]|\\.)*'|[^\s&;'\"#@\\]+)", re.IGNORECASE),
        rf"\1{CUT}",
    ),
    # a password in SQL, as in CREATE ROLE ... PASSWORD '...' and OPTIONS (password '...'), or in a connection string; a
    # JSON text has line ends as \n
    (
        re.compile(
            r"(?<![a-z0-9])((?:ssl)?passw(?:or)?d(?:(?:\s|\\[nrt])+(?:e|u&)?|\s*=\s*)')(?:[^'\\\"\n]|''|\\.)+",
            re.IGNORECASE,
        ),
        rf"\1{CUT}",
    ),
    (re.compile(r"\b(PGPASSWORD=|AWS_[A-Z_]*(?:KEY|TOKEN)=)[^\s'\"\\]+"), rf"\1{CUT}"),
    # headers of HTTP
    (re.compile(r"\b((?:proxy-)?authorization\s*:\s*\w+\s+)[^\s'\"\\]+", re.IGNORECASE), rf"\1{CUT}"),
    (re.compile(r"\b((?:private|job|deploy|x-auth|x-vault)-token\s*:\s*)[^\s'\"\\]+", re.IGNORECASE), rf"\1{CUT}"),
    # tokens of GitHub, GitLab, Slack and AWS, and JSON Web Tokens
    (
        re.compile(
            r"\b(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl[a-z]{2,5}-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
            r"|AKIA[A-Z0-9]{16}|eyJ[\w-]{8,2000}\.[\w-]{8,}\.[\w-]*)"
        ),
        CUT,
    ),
)


_SHORTEST = 20
"""The length in characters from which a text may hold a token of a known shape. A shorter text can hold a secret only
if it has one of `_SIGNS`."""
_SIGNS = frozenset("=@:'")


def without_tokens(text: str) -> str:
    """Returns the text with `***` in place of every password and token that the patterns find in it."""
    if len(text) < _SHORTEST and not _SIGNS.intersection(text):
        return text
    for form, cut in _FORMS:
        text = form.sub(cut, text)
    return text
