"""The reference of the study file, written from the spec itself so that the two cannot part."""

from __future__ import annotations

import json
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.packs import PackSection
from pgtrial.model.study.replay import ReplaySection
from pgtrial.model.study.setup import ProviderMetrics, SetUp
from pgtrial.model.study.spec import StudySection, VerdictSection
from pgtrial.model.study.storage import Storage
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.study.tasks import TasksSection

_INTRODUCTION = """\
# The study file

One question, one TOML file. This page is written from the program's own definition (`pgtrial.model.study.spec`).

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

_SECTIONS: dict[str, type[BaseModel]] = {
    "`[study]`": StudySection,
    "`[load]`": LoadSection,
    "`[load.sysbench]`": SysbenchSection,
    "`[load.tasks]`": TasksSection,
    "`[load.pack]`": PackSection,
    "`[load.replay]`": ReplaySection,
    "`[server]` and `[arms.NAME]`": SetUp,
    "`storage`": Storage,
    "`metrics`": ProviderMetrics,
    "`[fleet]`": FleetSection,
    "`[verdict]`": VerdictSection,
}
"""By title; the text of a section is the docstring of its type."""

_PROFILES = """
## `[profiles.NAME]`
Variants of one study in one file: `[profiles.NAME.SECTION]` holds what the profile changes of `[SECTION]`. Tables are
merged key by key, to any depth; any other value, a list too, replaces the shared one. Arms are the exception: a profile
that names arms names all of them. `pgtrial run STUDY --profile NAME` chooses; without it the first profile of the file
is taken, and the program says so. The study's directory holds the result, with the profile's name in `[study]`.

```toml
[load]
scale    = 5000
clients  = [1, 10, 50, 100]
duration = "30min"

[profiles.quick.load]          # everything else as above
scale    = 20
clients  = [1, 8]
duration = "4s"

[profiles.full]                # nothing changed
```
"""


def markdown() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, model in _SECTIONS.items():
        text = " ".join((model.__doc__ or "").split())
        rows = [_row(name, field) for name, field in model.model_fields.items()]
        parts.append(
            "\n".join([f"\n## {title}", text, "", "| key | type | default | meaning |", "|---|---|---|---|", *rows])
        )
    return "\n".join([*parts, _PROFILES])


def _row(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = {}
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
