"""The frozen study file: a spec written out as TOML with every default, without secrets, and read back."""

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
"""The parameters of a connection string that are never written down."""


def freeze(spec: StudySpec) -> str:
    """Returns the spec as TOML text: every default is written out, values that are not set are left out, passwords are
    never written.

    A scale that is not set is left out where scripts or programs may then do without pgbench's tables.
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
    """Returns the spec of a frozen study file. Raises ValueError (TOML or pydantic) when it is damaged.

    Studies that were frozen before the key `statistics` existed get its value `once`, which is how they ran.
    """
    data = with_names_of_today(tomllib.loads(text))
    if isinstance(load := data.setdefault("load", {}), dict):
        load.setdefault("statistics", "once")
    return StudySpec.model_validate(data)


def without_secrets(spec: StudySpec) -> StudySpec:
    """Returns the same spec without the passwords of its connection strings."""
    return spec.model_copy(
        update={
            "server": _strip(spec.server, marks.key("server", "dsn")),
            "arms": {name: _strip(keys, f"{marks.at_arm(name)}dsn") for name, keys in spec.arms.items()},
            "load": _stripped_load(spec.load),
        }
    )


def has_secrets(spec: StudySpec) -> bool:
    """True if a connection string of the study carries a password."""
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
    """Returns a connection string without secrets, or unchanged if it has none."""
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
