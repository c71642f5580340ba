"""Writes the reference of the study file, docs/study-file.md, from the types of the study file, so that page and types
always agree."""

from __future__ import annotations

import json
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.jobs import JobSection
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_metrics import JobRead, MetricSection
from pgtrial.model.study.packs import PackSection
from pgtrial.model.study.replay import ReplaySection
from pgtrial.model.study.setup import ProviderMetrics, SetUp
from pgtrial.model.study.spec import StudySection, VerdictSection
from pgtrial.model.study.storage import Storage
from pgtrial.model.study.suites import SuiteSection
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.study.tasks import TasksSection

_INTRODUCTION = """\
# The study file
For authors of studies: one question in one TOML file, with all its keys.

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

This study compares two servers that differ in one setting, under two workloads and three numbers of clients. Only
`[arms]` is required, with at least two arms. The first one is the *baseline*, with which the others are compared.
[The words of a study](concepts.md) explains the other terms.

In the lists below, the type of each key is in parentheses, followed by "=" and the default if there is one. A key
without "=" can be left out; its text says what pgtrial does then. Where a number is expected, a text with a unit is
possible: `"500ms"`, `"1h 30min"`, `"20GB"`, `"1%"`. Times without a unit are seconds, sizes are bytes. Where a list is
expected, a single value is possible. `pgtrial plan STUDY` checks the file, and shows what the study would do and how
long it would take.
"""

_SECTIONS: dict[str, type[BaseModel]] = {
    "`[study]`": StudySection,
    "`[load]`": LoadSection,
    "`[load.sysbench]`": SysbenchSection,
    "`[load.tasks]`": TasksSection,
    "`[load.pack]`": PackSection,
    "`[load.replay]`": ReplaySection,
    "`[load.suite]`": SuiteSection,
    "`[load.job]`": JobSection,
    "`[load.job.reads.NAME]`": JobRead,
    "`[server]` and `[arms.NAME]`": SetUp,
    "`storage`": Storage,
    "`monitoring`": ProviderMetrics,
    "`[fleet]`": FleetSection,
    "`[verdict]`": VerdictSection,
    "`[metrics.NAME]`": MetricSection,
}
"""The sections of the page by their titles. The text of a section is the docstring of its type."""

_FACTORS = """
## `[factors]`
The settings that a [screening study](screen.md) tries at once, each with its two levels, the present one first. They
take the place of the arms. A factor is a setting of PostgreSQL, or one of the keys `postgres` (major versions),
`huge_pages`, `thp`, `governor`, `io_scheduler`, `numa` and `cpus`.

```toml
[factors]
shared_buffers  = ["128MB", "1GB"]
jit             = ["on", "off"]
wal_compression = ["off", "lz4"]
```
"""

_PROFILES = """
## `[profiles.NAME]`
Profiles are variants of one study, such as a quick one and a full one. The keys of `[profiles.NAME.SECTION]` override
those of `[SECTION]`. Tables are merged key by key; all other values, lists included, replace the shared ones. If a
profile has arms, it must have all of them. `pgtrial run STUDY --profile NAME` chooses the profile; the default is the
first one.

```toml
[load]
scale    = 5000
duration = "30min"

[profiles.quick.load]
scale    = 20
duration = "4s"

[profiles.full]                # changes nothing
```
"""


def markdown() -> str:
    """Returns the whole page as Markdown."""
    parts = [_INTRODUCTION]
    for title, model in _SECTIONS.items():
        text = " ".join((model.__doc__ or "").split())
        keys = [_item(name, field) for name, field in model.model_fields.items()]
        parts.append("\n".join([f"\n## {title}", text, "", *keys]))
    return "\n".join([*parts, _FACTORS, _PROFILES])


def _item(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = {}
    shown = "" if default in (PydanticUndefined, None, {}, []) else f" = `{json.dumps(default)}`"
    return f"- **`{name}`** ({_type_name(field.annotation)}{shown}): {field.description or ''}"


def _type_name(annotation: Any) -> str:
    """Returns the name of a type as the page shows it, in the words of TOML."""
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if origin is list:
        return f"{_type_name(arguments[0])}s"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "table"
    if str(origin) == "typing.Literal":
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin in (Union, UnionType):
        return ", ".join(dict.fromkeys(_type_name(argument) for argument in arguments))
    if arguments:
        return _type_name(arguments[0])
    return {str: "text", int: "integer", float: "number", bool: "boolean"}.get(annotation, "text")
