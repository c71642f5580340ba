"""Writes a study as a frozen study file, which is TOML with every default written out and without passwords, and reads
such a file. pgtrial stores it in the study directory."""

from __future__ import annotations

import tomllib

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.former_keys import with_names_of_today
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.servers import conninfo_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.toml_values import toml_key, toml_value

SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""The parameters of a connection string that pgtrial never writes to a file."""


def freeze(spec: StudySpec) -> str:
    """Returns the study as TOML text. Every default is written out, keys without a value are left out, and passwords
    are never written.

    A scale that the user has not set is left out if the scripts or programs of the study may run without pgbench's
    tables.
    """
    data = without_secrets(spec).model_dump(exclude_none=True)
    if not spec.load.scale_is_set and spec.load.kind.may_do_without_tables(spec):
        del data["load"]["scale"]
    lines: list[str] = []
    for section, values in data.items():
        tables = (
            {f"{section}.{toml_key(name)}": keys for name, keys in values.items()}
            if section in ("arms", "metrics")
            else {section: values}
        )
        for name, keys in tables.items():
            lines += ["", f"[{name}]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in keys.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def thaw(text: str) -> StudySpec:
    """Returns the study of a frozen study file, in which every default is written out. Raises ValueError (of the TOML
    parser or of pydantic) if the file is damaged.

    Studies that were frozen before the key `statistics` existed get the value `once`, because that is how they ran.
    """
    data = with_names_of_today(tomllib.loads(text))
    if isinstance(load := data.setdefault("load", {}), dict):
        load.setdefault("statistics", "once")
    return StudySpec.model_validate(data)


def without_secrets(spec: StudySpec) -> StudySpec:
    """Returns the same study without the passwords of its connection strings."""
    return spec.model_copy(
        update={
            "server": _strip(spec.server, marks.key("server", "dsn")),
            "arms": {name: _strip(keys, f"{marks.at_arm(name)}dsn") for name, keys in spec.arms.items()},
            "load": _stripped_load(spec.load),
        }
    )


def has_secrets(spec: StudySpec) -> bool:
    """True if a connection string of the study contains a password."""
    return without_secrets(spec) != spec


def _stripped_load(load: LoadSection) -> LoadSection:
    if not load.data or not names_server(load.data[0]):
        return load
    return load.model_copy(update={"data": [_public(load.data[0], marks.key("load", "data"))]})


def _strip(setup: SetUp, where: str) -> SetUp:
    if setup.dsn is None:
        return setup
    return setup.model_copy(update={"dsn": [_public(dsn, where) for dsn in setup.dsn]})


def _public(dsn: str, where: str) -> str:
    """Returns a connection string without passwords and other secrets."""
    try:
        parts = conninfo_to_dict(conninfo_of(dsn))
    except ProgrammingError:
        # libpq's message may quote the string with its password
        raise StudyError(
            f"{where} is not a connection string; write for example "
            '"postgresql://user@host:5432/database" or "host=... dbname=..."'
        ) from None
    if not any(key in parts for key in SECRETS):
        return dsn
    public = {key: value for key, value in parts.items() if key not in SECRETS}
    return make_conninfo("", **public)
