"""Decides, for each statement of a dump, whether a role without superuser rights runs it as it is, runs another
statement in its place, or leaves it out.

Before the first statement of a dump runs, while the database has no function of the dump yet, a superuser creates its
extensions, languages and roles (`DumpNeeds`). Other statements that need a superuser are left out, with a notice, if
the rows do not depend on them. The role that owns the database runs all remaining statements; PostgreSQL rejects those
for which it lacks the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)'
_NAMES = rf"{_NAME}(?:\s*,\s*{_NAME})*"


def _pattern(text: str) -> re.Pattern[str]:
    """Returns a pattern in which a space matches any white space, and {name} and {names} match SQL identifiers."""
    filled = text.replace("{names}", _NAMES).replace("{name}", _NAME)
    return re.compile(filled.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)


_EXTENSION = _pattern(r"CREATE EXTENSION (?:IF NOT EXISTS )?({name})(.*)\Z")
_IN_SCHEMA = _pattern(r".*\bSCHEMA ({name})")
_OF_VERSION = _pattern(r".*\bVERSION ('[^']*'|{name})")
_LANGUAGE = _pattern(r"CREATE (?:OR REPLACE )?(?:TRUSTED )?(?:PROCEDURAL )?LANGUAGE ({name})\Z")
_SCHEMA = _pattern(r"CREATE SCHEMA ({name})(?: AUTHORIZATION ({name}))?\Z")
_OWNER = _pattern(r"ALTER .* OWNER TO ({name})\Z")
_ROLE = _pattern(r"CREATE (?:ROLE|USER|GROUP) (?!MAPPING\b)({name})")
_BLOCK = _pattern(r"DO\b")
_ROLE_IN_BLOCK = _pattern(r"\bCREATE (?:ROLE|USER|GROUP) (?!MAPPING\b)({name})")
"""Finds the roles that a block of PL/pgSQL makes unless they exist: `DO $$ ... IF NOT EXISTS ... CREATE ROLE app`."""
_OF_ROLES = _pattern(r"(?:(?:ALTER|DROP) (?:ROLE|USER|GROUP) (?!MAPPING\b)|SET SESSION AUTHORIZATION|RESET SESSION)")
_MEMBERS = _pattern(r"GRANT ({names}) TO ({names})(?: WITH .*| GRANTED BY .*)?\Z")
_NO_MEMBERS = _pattern(r"REVOKE (?:(?:GRANT|ADMIN|INHERIT|SET) OPTION FOR )?{names} FROM {names}")
_PRIVILEGES = _pattern(
    r"(?:GRANT|REVOKE|ALTER DEFAULT PRIVILEGES) .*(?:TO|FROM) ({names})"
    r"(?: WITH GRANT OPTION)?(?: GRANTED BY .*)?(?: CASCADE| RESTRICT)?\Z"
)
_FOR_ROLES = _pattern(r"ALTER DEFAULT PRIVILEGES FOR (?:ROLE|USER) ({names}) ")
_POLICY = _pattern(r"(?:CREATE|ALTER) POLICY {name} ON .*? TO ({names})(?= (?:USING|WITH)\b|\s*\Z)")
_SET_ROLE = _pattern(r"SET (?:LOCAL |SESSION )?ROLE ({name})\Z")
_AUTHORIZATION = _pattern(r"CREATE SCHEMA .*\bAUTHORIZATION ({name})")
_ICU = _pattern(r"CREATE COLLATION ({name}(?:\s*\.\s*{name})?).*\bprovider\s*=\s*'?icu\b")
_LZ4 = _pattern(
    r"(?:CREATE .*?\bTABLE|ALTER .*?\bTABLE|SET) .*\b(?:COMPRESSION |default_toast_compression\s*(?:=|TO)\s*'?)lz4\b"
)
_TRIGGERS = _pattern(r"ALTER TABLE .* (DISABLE|ENABLE) TRIGGER ALL\Z")
_NOT_KNOWN_BEFORE_17 = _pattern(r"SET transaction_timeout\s*(?:=|TO)\s*'?0'?\Z")
_TABLESPACE = _pattern(r"SET default_tablespace\s*(?:=|TO)|(?:CREATE|ALTER|DROP|COMMENT ON) TABLESPACE ")
_DATABASE = _pattern(r"(?:ALTER|COMMENT ON) DATABASE ")
_COMMENT = _pattern(
    r"COMMENT ON (?:EXTENSION|LANGUAGE|PROCEDURAL|ROLE|SUBSCRIPTION|PUBLICATION|EVENT) |SECURITY LABEL "
)
_KEPT_EXTENSION = _pattern(r"(?:ALTER|DROP) EXTENSION ")
_DROPPED_SCHEMA = _pattern(r"DROP SCHEMA (?:IF EXISTS )?({name})(?: CASCADE| RESTRICT)?\Z")
_EVENT = _pattern(r"(?:CREATE|ALTER|DROP) (EVENT TRIGGER) ({name})")
_SUBSCRIPTION = _pattern(r"(?:CREATE|ALTER|DROP) (SUBSCRIPTION) ({name})")
_PUBLICATION = _pattern(r"CREATE (PUBLICATION) ({name}) FOR (?:ALL TABLES|TABLES IN SCHEMA)\b")

_LOOKED_AT = frozenset(("create", "alter", "drop", "comment", "grant", "revoke", "set", "reset", "security", "do"))
"""The first words of the statements that pgtrial examines. Statements that insert rows begin with other words, and are
run unchanged."""

_NO_ROLES = frozenset(("public", "current_user", "session_user", "current_role", "none"))
"""Words that SQL accepts in place of a role's name, but that are not the name of a role."""


def is_looked_at(words: list[str]) -> bool:
    """True if a statement with these first words may have to be changed, left out or prepared for."""
    return bool(words) and words[0] in _LOOKED_AT


def name_in(token: str) -> str:
    """Returns the name that an SQL identifier stands for: without its quotes, or in lower case if it has none."""
    return token[1:-1].replace('""', '"') if token.startswith('"') else token.lower()


def _names_in(tokens: str) -> list[str]:
    return [name_in(token) for token in re.findall(_NAME, tokens)]


@dataclass(frozen=True)
class Extension:
    """An extension that a dump creates."""

    name: str
    schema: str | None = None
    version: str | None = None


@dataclass
class DumpNeeds:
    """The objects and features that dumps need: what a superuser creates, and what the server must support, before
    their statements run."""

    extensions: dict[str, Extension] = field(default_factory=dict)
    """The extensions by their names. A procedural language counts as the extension of the same name."""
    roles: dict[str, None] = field(default_factory=dict)
    """The roles that occur in the dump's policies, privileges and owners, in the order in which they occur."""
    members: list[tuple[str, str]] = field(default_factory=list)
    """Memberships: pairs of a role that is granted and the role that gets it."""
    icu_collations: list[str] = field(default_factory=list)
    lz4: bool = False
    """True if a statement asks for compression of columns by lz4."""

    def look_at(self, text: str) -> None:
        """Adds the extensions, roles and features that a statement needs to this object. The caller must pass each
        statement of the dump for whose first words `is_looked_at` returns true."""
        if (match := _EXTENSION.match(text)) is not None:
            schema, version = _IN_SCHEMA.match(match[2]), _OF_VERSION.match(match[2])
            name = name_in(match[1])
            self.extensions.setdefault(
                name, Extension(name, schema and name_in(schema[1]), version and version[1].strip("'\""))
            )
        elif (match := _LANGUAGE.match(text)) is not None:
            self.extensions.setdefault(name_in(match[1]), Extension(name_in(match[1])))
        elif (match := _ICU.match(text)) is not None:
            self.icu_collations.append("".join(match[1].split()))
        elif (match := _MEMBERS.match(text)) is not None:
            groups, members = _names_in(match[1]), _names_in(match[2])
            self.members += [(group, member) for group in groups for member in members]
            self._add_roles([*groups, *members])
        elif _BLOCK.match(text) is not None:
            self._add_roles(name_in(found) for found in _ROLE_IN_BLOCK.findall(text))
        else:
            for pattern in (_OWNER, _ROLE, _PRIVILEGES, _FOR_ROLES, _POLICY, _SET_ROLE, _AUTHORIZATION):
                if (match := pattern.match(text)) is not None:
                    self._add_roles(_names_in(match[1]))
        self.lz4 = self.lz4 or _LZ4.match(text) is not None

    def _add_roles(self, names: Iterable[str]) -> None:
        self.roles |= dict.fromkeys(name for name in names if name not in _NO_ROLES and not name.startswith("pg_"))


@dataclass(frozen=True)
class Treated:
    """The statement that the role that owns the database runs in place of one statement of the dump."""

    text: str
    """The text of the statement; empty if the statement is left out."""
    may_fail: bool = False
    """True for statements about privileges, which fail for objects that the owner of the database does not own, such as
    the functions of an extension."""
    left_out: str = ""
    """A phrase, for messages, for the object that the database lacks because the statement is left out: `the event
    trigger guard`."""


def treated(text: str, schemas: Iterable[str]) -> Treated:
    """Returns the statement that the owner of the database runs in place of a statement of the dump. `schemas` are the
    schemas that exist already.

    The owners that the dump names are not restored: all its objects belong to the role that owns the database.
    """
    for pattern in (_EVENT, _SUBSCRIPTION, _PUBLICATION):
        if (match := pattern.match(text)) is not None:
            what = " ".join(match[1].lower().split())
            return Treated("", left_out=f"the {what} {name_in(match[2])}")
    if (match := _EXTENSION.match(text)) is not None:
        return Treated(f"CREATE EXTENSION IF NOT EXISTS {match[1]}{match[2]}")
    for pattern in (_SCHEMA, _DROPPED_SCHEMA):
        if (match := pattern.match(text)) is not None and name_in(match[1]) in schemas:
            return Treated("")
    if (match := _TRIGGERS.match(text)) is not None:
        # only a superuser can disable the triggers of foreign keys, but a session can disable all of its triggers
        role = "replica" if match[1].upper() == "DISABLE" else "origin"
        return Treated(f"SET session_replication_role = {role}")
    made_before = (_LANGUAGE, _KEPT_EXTENSION, _OWNER, _ROLE, _OF_ROLES, _MEMBERS, _NO_MEMBERS)
    without_effect = (_NOT_KNOWN_BEFORE_17, _TABLESPACE, _DATABASE, _COMMENT)
    if any(pattern.match(text) for pattern in (*made_before, *without_effect)):
        return Treated("")
    return Treated(text, may_fail=_PRIVILEGES.match(text) is not None)
