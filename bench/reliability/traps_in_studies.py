"""Attacks by files that a victim gets from somebody else: bundles, folders of studies, archives and histories."""

from __future__ import annotations

import io
import json
import lzma
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.histories import levels
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run

from bench.reliability.ground import Ground, Trap, by_command
from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.study.load_section import LoadSection
from pgtrial.store import bundle, directory
from pgtrial.store.histories.directory import HistoryDirectory

ARCHIVE = "b.tar.xz"
_MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;evil\x07\x1b[2J\u202etxt"
"""A text that attacks pages, terminals and readers of text."""


@dataclass(frozen=True)
class Study:
    """A study of somebody else: its effect, and the word that would allow it."""

    what: str
    kind: str
    arm: Mapping[str, object] = field(default_factory=dict)
    load: Mapping[str, object] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)


_SH = "sh -c 'id > {mark}'"
_STUDIES = (
    Study("runs a command", "commands", {"command": f"{_SH} old", "command_directory": "/"}),
    Study("archives by a command", "commands", {"settings": {"archive_mode": "on", "archive_command": "id > {mark}"}}),
    Study("restores by a command", "commands", {"settings": {"restore_command": "id > {mark}"}}),
    Study("asks for a passphrase by a command", "commands", {"settings": {"ssl_passphrase_command": "id > {mark}"}}),
    Study("loads a library of its own", "commands", {"settings": {"shared_preload_libraries": "{enemy}/evil.so"}}),
    Study("loads libraries from a folder", "commands", {"settings": {"dynamic_library_path": "{enemy}"}}),
    Study("writes the server's log elsewhere", "commands", {"settings": {"log_directory": "{victim}"}}),
    Study("has a library in the environment", "commands", {"environment": {"LD_PRELOAD": "{enemy}/evil.so"}}),
    Study("runs the programs of a folder", "commands", {"postgres": "{enemy}/bin"}),
    Study("gives initdb an option", "commands", {"initdb": ["--pwfile={victim}/secret"]}),
    Study("runs a program by SQL", "commands", {"setup_sql": ["COPY (SELECT 1) TO PROGRAM 'cat > {mark}'"]}),
    Study("runs a program by a script", "commands", scripts={"a.sql": "COPY (SELECT 1) TO PROGRAM 'cat > {mark}';"}),
    Study("has a shell in a script", "commands", scripts={"a.sql": "\\shell id > {mark}\nSELECT 1;\n"}),
    Study("sets a variable by a shell", "commands", scripts={"a.sql": "\\setshell x id > {mark}\nSELECT :x;\n"}),
    Study("has a script in Lua", "commands", scripts={"a.lua": "os.execute('id > {mark}')"}),
    Study("is a job by a command", "commands", load={"workload": "job:", "job": {"command": _SH}}),
    Study("connects to the server of the environment", "servers", {"dsn": "env"}),
    Study("connects to a server by name", "servers", {"dsn": "host=127.0.0.1 port=1 user=postgres"}),
    Study("connects by a service file", "servers", {"dsn": "service=production"}),
    Study("logs in on a host", "servers", {"ssh": "root@127.0.0.1", "data": "/var/lib/x"}),
    Study("asks the provider's monitoring", "servers", {"dsn": "env", "monitoring": {"cloudwatch": "production"}}),
    Study("copies a database", "servers", load={"workload": "./a.sql", "data": ["host=127.0.0.1 port=1 dbname=x"]}),
    Study("reads a file of the machine", "files", load={"workload": "./a.sql", "data": ["{victim}/secret"]}),
    Study("reads a script of the machine", "files", load={"workload": "{victim}/secret.sql"}),
    Study("formats a device", "machine", {"storage": {"fs": "ext4", "on": "/dev/loop0", "overwrite": True}}),
    Study("writes below a directory", "machine", {"storage": {"fs": "ext4", "on": "{victim}", "size": "300MB"}}),
    Study("sets a kernel parameter", "machine", {"sysctl": {"kernel.core_pattern": "|{mark}"}}),
    Study("reserves huge pages", "machine", {"huge_pages": "2MB"}),
    Study("builds a source", "sources", {"postgres": "git:https://127.0.0.1:1/pg@" + "1" * 40}),
    Study(
        "builds with a compiler of its own",
        "sources",
        {"postgres": "git:https://127.0.0.1:1/pg@" + "1" * 40, "compiler": "{enemy}/program"},
    ),
    Study("builds an extension", "sources", {"extensions": ["git:https://127.0.0.1:1/x@" + "1" * 40]}),
)


def studies() -> Iterator[Trap]:
    """Yields an attack for each thing that a study of somebody else may do; the victim says --trust and allows
    nothing.
    """
    for one in _STUDIES:
        yield Trap(f"a bundle that {one.what}", lambda ground, one=one: _untrusted(ground, one))  # type: ignore[misc]
    yield Trap("the unpacked folder of a bundle that runs a command", _unpacked)
    yield Trap("a bundle with the mark of a study of this account", _marked)
    yield Trap("a bundle with a script of SQL, without a terminal", _unasked)
    yield Trap("a bundle whose plan names one of its trials as a script", _forged)


def _untrusted(ground: Ground, one: Study) -> Iterator[str]:
    archive = stranger(ground, one)
    ended = ground.pgtrial("rerun", archive, "--trust", "--budget", "20s")
    yield from ground.failures(ended)
    if f"unless you allow it: {one.kind}" not in ended.output:
        yield f"it was not refused for what it does: status {ended.status}, {ended.output[-300:]}"


def _unpacked(ground: Ground) -> Iterator[str]:
    stranger(ground, _STUDIES[0])
    for words in (("run", "study", "--trust"), ("run", "study/study.toml"),
                  ("plan", "study/study.toml"), ("facts", "study/study.toml"), ("verdict", "study"),
                  ("report", "study"), ("bundle", "study", "-o", "again.tar.xz"), ("stop", "study")):  # fmt: skip
        yield from ground.failures(ground.pgtrial(*words))


def _marked(ground: Ground) -> Iterator[str]:
    """Copies the seal of a study that the victim made into another study, which must not count as made by the
    victim."""
    mine = ground.work / "mine"
    _written(mine, Study("", ""), ground)
    stranger(ground, _STUDIES[0])
    plan = json.loads((ground.work / "study" / "plan.json").read_text())
    plan["sha256"]["made here"] = json.loads((mine / "plan.json").read_text())["sha256"]["made here"]
    (ground.work / "study" / "plan.json").write_text(json.dumps(plan))
    yield from ground.failures(ground.pgtrial("run", "study", "--trust"))


def _unasked(ground: Ground) -> Iterator[str]:
    ended = ground.pgtrial("rerun", stranger(ground, Study("", "sql", scripts={"a.sql": "SELECT 1;\n"})))
    yield from ground.failures(ended)
    if "there is no terminal to ask at" not in ended.output:
        yield f"it was not asked for: status {ended.status}, {ended.output[-300:]}"


def _forged(ground: Ground) -> Iterator[str]:
    """Names a trial of the bundle as a script of its plan. A rerun must not copy it into its own study, where it would
    count as a trial that ran."""
    archive = ground.work / ARCHIVE
    with _elsewhere(ground.work / "theirs"):
        made = _written(ground.work / "study", Study("", "sql", scripts={"a.sql": "SELECT 1;\n"}), ground)
        trial = min((made.path / "trials").iterdir()) / "trial.json"
        scripts = {f"../trials/{trial.parent.name}/trial.json": directory.digest(trial.read_text())}
        plan = made.plan.model_copy(update={"scripts": {**made.plan.scripts, **scripts}})
        directory._write_plan(made.path, plan, (made.path / "study.toml").read_text(), made_here=True)
        with archive.open("wb") as file:
            bundle.write_bundle(directory.StudyDirectory(made.path, made.spec, plan), file, everything=False)
    for words in (("rerun", archive, "--trust", "--budget", "20s"), ("run", "study", "--trust"), ("verify", archive)):
        ended = ground.pgtrial(*words)
        yield from ground.failures(ended)
        if "is not the name of a script of the study" not in ended.output:
            yield f"it was not refused: status {ended.status}, {ended.output[-300:]}"


def stranger(ground: Ground, one: Study, **more: str) -> Path:
    """Returns a bundle as somebody else makes it on a machine of theirs; its folder is beside it."""
    with _elsewhere(ground.work / "theirs"):
        made = _written(ground.work / "study", one, ground, **more)
        bundle_path = ground.work / ARCHIVE
        with bundle_path.open("wb") as file:
            bundle.write_bundle(made, file, everything=False)
    return bundle_path


@contextmanager
def _elsewhere(state: Path) -> Iterator[None]:
    """Lets the context be another machine: its state directory has another key."""
    before = os.environ["PGTRIAL_STATE"]
    state.mkdir(mode=0o700, exist_ok=True)
    os.environ["PGTRIAL_STATE"] = str(state)
    try:
        yield
    finally:
        os.environ["PGTRIAL_STATE"] = before


def _written(path: Path, one: Study, ground: Ground, question: str = "Is off faster?", finding: str = "") -> Any:
    """Writes a study directory with synthetic trials and the keys of `one` in its second arm and its load."""
    plan = make_plan()
    audit = Audit(
        findings=[Finding(rule="settings", severity="warning", arms=["off"], message=finding, cure=finding)]
        if finding
        else []
    )
    made = write_study(path, plan, run(plan, noisy({"off": 1.4}, sd=0.01)), audit, question)
    arms, load, scripts = (_filled(part, ground) for part in (one.arm, one.load, one.scripts))
    spec = made.spec
    off = spec.arms["off"]
    changed: dict[str, Any] = {}
    if arms:
        off = off.model_validate({**off.model_dump(exclude_unset=True), **arms})
        changed["arms"] = {**spec.arms, "off": off}
    if load:
        changed["load"] = LoadSection.model_validate(load)
    frozen = directory.freeze(spec.model_copy(update=changed))
    (path / "study.toml").write_text(frozen)
    if scripts:
        (path / "scripts").mkdir()
        for name, text in scripts.items():
            (path / "scripts" / name).write_text(text)
        plan = plan.model_copy(update={"scripts": {name: directory.digest(text) for name, text in scripts.items()}})
    directory._write_plan(path, plan, frozen, made_here=True)
    return directory.StudyDirectory.open(path)


def _filled(part: Any, ground: Ground) -> Any:
    """Returns the keys of a study with `{mark}`, `{enemy}` and `{victim}` replaced by the paths of this attack."""
    if isinstance(part, Mapping):
        return {name: _filled(value, ground) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_filled(value, ground) for value in part]
    if isinstance(part, str):
        places = {"{mark}": ground.mark, "{enemy}": ground.enemy, "{victim}": ground.victim}
        for word, place in places.items():
            part = part.replace(word, str(place))
    return part


# ---- archives


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, size
    return member


_MEMBERS: Mapping[str, Callable[[Ground], tarfile.TarInfo]] = {
    "an absolute name": lambda ground: _member(str(ground.mark), size=1),
    "a name with ..": lambda ground: _member(f"study/../../../{ground.mark}", size=1),
    "a link to a file": lambda ground: _member("study/report.md", tarfile.SYMTYPE, str(ground.victim / "secret")),
    "a link to a directory": lambda ground: _member("study/trials", tarfile.SYMTYPE, str(ground.victim)),
    "a hard link": lambda ground: _member("study/report.md", tarfile.LNKTYPE, str(ground.victim / "secret")),
    "a pipe": lambda ground: _member("study/report.md", tarfile.FIFOTYPE),
    "a device": lambda ground: _member("study/report.md", tarfile.CHRTYPE),
    "a name with control characters": lambda ground: _member("study/scripts/\x1b]0;evil\x07\n.sql", size=1),
    "a size beyond all measure": lambda ground: _member("study/report.md", size=(1 << 33) - 1),
    "a sparse file": lambda ground: _member("study/report.md", tarfile.GNUTYPE_SPARSE),
}


def archives() -> Iterator[Trap]:
    """Yields an attack for each hostile member of an archive, after a whole bundle and in its place."""
    for what, make in _MEMBERS.items():
        yield by_command(f"a bundle with {what}", lambda ground, make=make: _spoiled(ground, make))  # type: ignore[misc]
    yield by_command("a bundle that unpacks to gigabytes", _bomb)
    yield Trap("a bundle and a history whose texts are markup and sequences for terminals", _shown)


def _spoiled(ground: Ground, make: Callable[[Ground], tarfile.TarInfo]) -> Iterator[tuple[object, ...]]:
    archive = stranger(ground, Study("", ""))
    whole = lzma.decompress(archive.read_bytes())
    header = make(ground).tobuf(tarfile.GNU_FORMAT)
    spoiled = whole.rstrip(b"\0")
    spoiled += bytes(-len(spoiled) % 512) + header + b"x".ljust(512, b"\0") + bytes(1024)
    archive.write_bytes(lzma.compress(spoiled, preset=0))
    yield "verify", archive
    yield "report", archive, "-o", ground.work / "r.html"
    alone = io.BytesIO(header + b"x".ljust(512, b"\0") + bytes(1024)).getvalue()
    archive.write_bytes(lzma.compress(alone, preset=0))
    yield "rerun", archive, "--trust"


def _bomb(ground: Ground) -> Iterator[tuple[object, ...]]:
    archive = ground.work / ARCHIVE
    size = 1 << 29
    with lzma.open(archive, "wb", preset=0) as file:
        file.write(_member("bundle.json", size=size).tobuf(tarfile.USTAR_FORMAT))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    yield "verify", archive
    yield "rerun", archive, "--trust"


def _shown(ground: Ground) -> Iterator[str]:
    """Checks that pages escape the texts that they show, and that a terminal gets no sequence of somebody else's."""
    archive = stranger(ground, Study("", ""), question=_MARKUP, finding=_MARKUP)
    entries = [one.model_copy(update={"commit": f"{_MARKUP}{number}", "machine": _MARKUP})
               for number, one in enumerate(levels(0.0, -0.05))]  # fmt: skip
    with _elsewhere(ground.work / "theirs"):
        HistoryDirectory(ground.work / "history").add("s", entries)
    commands: tuple[tuple[object, ...], ...] = (
        ("verdict", archive),
        ("report", archive, "-o", "r.html"),
        ("publish", archive, "-o", "site"),
        ("history", "show"),
        ("history", "page", "-o", "h.html"),
        ("rerun", archive),
        ("sql", "SELECT * FROM studies", archive),
    )
    for words in commands:
        yield from ground.failures(ground.pgtrial(*words))
    pages = [path for path in ground.work.rglob("*.html") if "study" not in path.parts]
    for path in pages:
        text = path.read_text()
        for word in ("<script>alert(1)", "<img src=x", "\x1b"):
            if word in text:
                yield f"{path.name} holds {word!r} as it was written"
    if len(pages) < 2:
        yield f"{len(pages)} pages were written, so that this attack shows nothing"


# ---- histories

_SETUPS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "a command": ("commands", {"command": f"{_SH} 0", "command_directory": "/"}),
    "the server of the environment": ("servers", {"dsn": "env"}),
    "a device": ("machine", {"storage": {"fs": "ext4", "on": "/dev/loop0", "overwrite": True}}),
    "the programs of a folder": ("commands", {"postgres": "{enemy}/bin"}),
    "a source elsewhere": ("sources", {"postgres": "git:https://127.0.0.1:1/pg@" + "1" * 40}),
    "a library": ("commands", {"environment": {"LD_PRELOAD": "{enemy}/evil.so"}}),
}


def histories() -> Iterator[Trap]:
    """Yields an attack for each set-up in the line of a history."""
    for what, (kind, setup) in _SETUPS.items():
        yield Trap(
            f"a history with {what}",
            lambda ground, kind=kind, setup=setup: _confirmed(ground, kind, setup),  # type: ignore[misc]
        )


def _confirmed(ground: Ground, kind: str, setup: Mapping[str, object]) -> Iterator[str]:
    (ground.work / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    entries = [one.model_copy(update={"setup": _filled(setup, ground)}) for one in levels(0.0, -0.05)]
    HistoryDirectory(ground.work / "history").add("s", entries)
    ended = ground.pgtrial("history", "confirm", "--study", "s.toml", "--trust", "--budget", "20s")
    yield from ground.failures(ended)
    if f"unless you allow it: {kind}" not in ended.output:
        yield f"it was not refused for what it does: status {ended.status}, {ended.output[-300:]}"
