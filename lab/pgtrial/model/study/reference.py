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

_SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("`[study]`", "What is asked.", StudySection),
    ("`[load]`", "What every arm has to serve.", LoadSection),
    (
        "`[load.sysbench]`",
        "For workloads that are tests of sysbench. Each is prepared once, like pgbench's tables, and tests that need "
        "the same tables share them. They are load points of their own beside pgbench's: crossed with `clients` and "
        "`rate`, not with `scale`; `fillfactor` and `foreign_keys` are not for them, and `warmup` is whole seconds. Of "
        "a Lua script, the modules that lie beside it and that it requires by name are kept with it.",
        SysbenchSection,
    ),
    (
        "`[load.tasks]`",
        'For `workload = "app-tasks"`: [tasks on pools of connections](tasks.md). A trial is one run of all tasks to '
        "their end, and the verdict is about their mean response time; a task that failed counts with the time until "
        "it did. There is no warm-up and no duration, and `scale`, `clients`, `rate`, `fillfactor`, `foreign_keys`, "
        "`max_tries`, `latency_limit` and `on_server_loss` are not for it. Each server needs `max_connections` for "
        "`apps` x `pool`.",
        TasksSection,
    ),
    (
        "`[load.pack]`",
        "For workloads that are [packs](packs.md), all of the study alike. Packs bring their own tables, at each "
        "`scale` of the study; `fillfactor` and `foreign_keys` are not for them. Where all workloads are one pack, "
        "its defaults for `scale`, `clients`, `protocol` and `max_tries` hold unless the study says another.",
        PackSection,
    ),
    (
        "`[load.replay]`",
        'For `workload = "replay:DIRECTORY"`: a [replay](replay.md#in-a-study). A trial is one replay of the whole '
        "capture, or of a sample of its sessions, on a fresh copy of `data`. There is no warm-up and no duration, "
        "trials do not alternate, and `scale`, `clients`, `rate`, `protocol`, `fillfactor`, `foreign_keys`, "
        "`max_tries`, `latency_limit` and `on_server_loss` are not for it.",
        ReplaySection,
    ),
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
    (
        "`metrics`",
        "What the provider of a given server knows of it, e.g. "
        '`metrics = { cloudwatch = "my-db", region = "eu-west-1" }`. Needs the extra `pgtrial[aws]` and credentials of '
        "AWS that may read metrics; without them the study runs, and `pgtrial metrics DIRECTORY` imports them later.",
        ProviderMetrics,
    ),
    (
        "`[fleet]`",
        "The machines that make the load, in place of the lab's own: [many machines](many-machines.md). Needs the "
        "extra `pgtrial[ray]`. `--fleet ADDRESS`, `--machines N` and `--pack` of `pgtrial run`, `plan` and `compare` "
        "say the same. Each machine has one engine, which makes its part of the clients and of the rate; all begin at "
        "one instant. Data of servers elsewhere is loaded by them together as well.",
        FleetSection,
    ),
    ("`[verdict]`", "The rule, fixed before the first trial.", VerdictSection),
)

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
    for title, text, model in _SECTIONS:
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
