"""The reference of the study file, written from the spec itself so that the two cannot part."""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pgtrial.study.spec import LoadSection, SetUp, StudySection, VerdictSection
from pgtrial.study.storage import Storage

_INTRODUCTION = """\
# The study file

One question, one TOML file. This page is written from the program's own definition (`pgtrial.study.spec`).

Every key has a default but `[arms]`, which names two arms or more; the first is the baseline. Unknown keys are an
error that names the nearest known key. Durations are numbers of seconds or text such as `500ms`, `90s`, `1h 30min`;
shares are numbers or text such as `1%`. Where a list is allowed, a single value may stand for a list of one.
`pgtrial plan STUDY` shows what a study would do; `pgtrial run STUDY` writes the file with every default filled in
into the study's directory.

```toml
[study]
question = "Does a larger shared_buffers raise throughput?"

[load]
workload = ["select-only", "tpcb-like"]
scale    = 50
clients  = [1, 8, 32]

[server]
postgres = "18"
settings = { max_wal_size = "8GB" }

[arms.128MB]
settings = { shared_buffers = "128MB" }

[arms.1GB]
settings = { shared_buffers = "1GB" }

[verdict]
margin = "1%"
budget = "1h"
```
"""

_SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("`[study]`", "What is asked.", StudySection),
    ("`[load]`", "What every arm has to serve.", LoadSection),
    (
        "`[server]` and `[arms.NAME]`",
        "How a server comes to be. `[server]` says what all arms share; an arm overrides it key by key, and its "
        "settings are added to the server's. Two arms that come out the same make an A/A study, a check of the "
        "method: the program says so and runs it.",
        SetUp,
    ),
    (
        "`storage`",
        "The volume of an arm's data, e.g. "
        '`storage = { fs = "ext4", size = "8GB", mount = ["noatime"] }`. It is made for each trial, its options are '
        "verified to be in force, and it is destroyed after it. `wal` is a table with the same keys.",
        Storage,
    ),
    ("`[verdict]`", "The rule, fixed before the first trial.", VerdictSection),
)


def markdown() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, text, model in _SECTIONS:
        rows = [_row(name, field) for name, field in model.model_fields.items()]
        parts.append(
            "\n".join([f"\n## {title}", text, "", "| key | type | default | meaning |", "|---|---|---|---|", *rows])
        )
    return "\n".join(parts) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    shown = "" if default is PydanticUndefined or default is None else f"`{json.dumps(default)}`"
    return f"| `{name}` | {_type_name(field.annotation)} | {shown} | {field.description or ''} |"


def _type_name(annotation: Any) -> str:
    """A type in the words of TOML."""
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if origin is list:
        return f"list of {_type_name(arguments[0])}"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "table"
    if str(origin) == "typing.Literal":
        return ", ".join(f"`{argument}`" for argument in arguments)
    if arguments:
        return _type_name(arguments[0])
    return {str: "text", int: "integer", float: "number or text", bool: "boolean"}.get(annotation, "text")
