"""Messages of a study that was made by options name options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.main import get_command

import pgtrial
from pgtrial.cli import application, main, selftest
from pgtrial.cli.by_options import by_options, paths_of_keys
from pgtrial.cli.compare import FLAGS, OPTIONS, SHARED_OPTIONS
from pgtrial.cli.screen import OPTIONS as SCREEN
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.progress import BlockEnds, Preparing, ProgressEvent, reworded
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.report.brief import Brief, Headline, Line

REWORD = by_options(OPTIONS, FLAGS, sets=True)
OF_A_GATE = by_options({"verdict.budget": "--budget"})

STORED = {
    "raise [load] rate, or declare": "raise --rate, or declare",
    "more threads ([load] threads), lower": "more threads (--threads), lower",
    "[verdict] allow_busy_client = true gives the verdict": "--allow-busy-client gives the verdict",
    "a rate ([load] capacity.at_most), if": "a rate (at_most in --capacity), if",
    "Raise max_wal_size in [server] until": "Raise max_wal_size by --server until",
    "Set it in [server.settings] to compare": "Set it by --server to compare",
    '([load] interleave = "off")': "(--set load.interleave=off)",
    'write [load] answers = "may differ", and': "write --set 'load.answers=may differ', and",
    '[server] initdb = ["--locale=C", "--encoding=UTF8"].': "--server 'initdb=--locale=C --encoding=UTF8'.",
    'Set autovacuum = "off" in [server] for': "Set --server autovacuum=off for",
    "Set jit = off in [server.settings], or": "Set --server jit=off, or",
    "or set [load.pack] tolerance; then": "or add --set load.pack.tolerance; then",
    "a longer [load.suite] limit": "a longer --limit",
    "its limit ([load.job] limit)": "its limit (--limit)",
}


@pytest.mark.parametrize(("sentence", "expected"), STORED.items())
def test_a_key_of_a_stored_sentence_becomes_the_option_that_stands_for_it(sentence, expected):
    assert REWORD(f"no verdict: {marks.stored(sentence)}") == f"no verdict: {expected}"
    assert REWORD(sentence) == sentence


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ('set [verdict] budget = "10min" or more', "set --budget 10min or more"),
        ("[load] clients, [verdict] blocks", "[load] clients, [verdict] blocks"),
        ("Raise max_wal_size in [server] until", "Raise max_wal_size in [server] until"),
    ],
)
def test_a_command_without_set_leaves_other_keys_of_stored_sentences_as_they_are(sentence, expected):
    assert OF_A_GATE(marks.stored(sentence)) == expected


MARKED = {
    f"{marks.key('load', 'cpus')}: no such CPU": "--set load.cpus: no such CPU",
    f"{marks.key('load', 'max_tries')} and {marks.key('load.suite', 'cache', 'os')}": "--max-tries and --cache os",
    f"{marks.key('load', 'suite.limit')}: write 1s": "--limit: write 1s",
    f"{marks.key('load.pack')} is for packs": "--set load.pack is for packs",
    f"{marks.key('fleet')} asks for 2 machines": "--fleet asks for 2 machines",
    f"write {marks.key('verdict', 'budget', '10min')}": "write --budget 10min",
    f"{marks.key('verdict', 'allow_busy_client', True)} gives it": "--allow-busy-client gives it",
    f"write {marks.key('load', 'answers', 'may differ')}, and": "write --set 'load.answers=may differ', and",
    marks.key("load", "capacity", {"p99": "20ms"}): "--capacity p99=20ms",
    marks.key("server", "initdb", ["--locale=C", "--no-sync"]): "--server 'initdb=--locale=C --no-sync'",
    f"or {marks.set_key('fleet', 'machines', 2)}": "or set --machines 2",
    f"or {marks.set_key('load.pack', 'tolerance')}": "or add --set load.pack.tolerance",
    f"{marks.key('load', 'clients')} or {marks.short_key('load', 'threads')}": "--clients or --threads",
    f"{marks.key('load', 'clients')} or {marks.short_key('load', 'cpus')}": "--clients or --set load.cpus",
    f"or write {marks.short_key('load', 'workload', 'job:')} to": "or write --workload job: to",
    f"write {marks.key_in('load.job', 'command')}": "write --command",
    marks.key_in("load", "protocol", "simple"): "--protocol simple",
    f"load it by --data{marks.file_key('load', 'data')}, or": "load it by --data, or",
    f"it belongs in {marks.section('load')}": "it belongs in load",
    f"{marks.heading('load')}scale: the engine refuses it": "scale: the engine refuses it",
    f"{marks.arm('one')} has no price": "one has no price",
    f"a.toml: {marks.at_arm('one')}a job changes the data": "a.toml: one: a job changes the data",
    f"{marks.key('load', 'no_such_key')} is gone": "[load] no_such_key is gone",
}


@pytest.mark.parametrize(("message", "expected"), MARKED.items())
def test_a_marked_key_becomes_the_option_that_stands_for_it(message, expected):
    assert REWORD(message) == expected


def test_a_command_without_set_names_marked_keys_as_the_study_file_does():
    of_load = f"{marks.heading('load')}{marks.key('load', 'clients')}{marks.file_key('load', 'data')}"
    message = f"{of_load}; {marks.set_key('verdict', 'budget')}"
    assert OF_A_GATE(message) == "[load] [load] clients ([load] data); set --budget"


@pytest.mark.parametrize(
    ("command", "options"), [("compare", OPTIONS), ("capacity", SHARED_OPTIONS), ("screen", SCREEN)]
)
def test_each_option_that_a_message_may_name_is_one_of_the_command(command, options):
    known = {name for option in get_command(application(command)).commands[command].params for name in option.opts}
    assert {option.rpartition(" ")[2] for option in options.values()} <= known
    assert {"--set", "--server"} <= known
    assert options.keys() - {"load.capacity.at_most"} <= paths_of_keys() | {"fleet"}


PACKAGE = Path(pgtrial.__file__).parent
PAGES = {
    "cli/bisect.py",
    "cli/by_options.py",
    "model/marks.py",
    "model/study/machine_keys.py",
    "model/study/own_scripts.py",
    "model/study/setup.py",
    "model/study/load_keys.py",
    "model/study/reference.py",
    "model/study/servers.py",
}
"""The source files that may write sections out: those of the words for marks, and those with texts about study files
(pages of the documentation, help texts, examples), whose sections are in a study file for every reader."""
_SECTION = re.compile(r"(?<!\w)\[(?:(?:study|load|server|verdict|fleet)\b|arms\.)")
"""Matches a section that a text writes out."""


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yields the string literals of a module without its docstrings; in f-strings an X stands for each value."""
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= set(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


NAMING = {f"marks.{name}" for name in ("key", "set_key", "short_key", "key_in", "file_key")}
"""The functions of `pgtrial.model.marks` that name a key."""


def _named_keys() -> Iterator[str]:
    """Yields the path of each key that a message of the lab names literally."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in NAMING:
                words = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
                if len(words) == len(node.args[:2]):
                    yield ".".join(words)


def test_each_key_that_a_message_names_is_one_of_the_study_file():
    named = set(_named_keys())
    assert named
    assert named - paths_of_keys() == set()


def test_only_findings_write_sections_out():
    """Other messages name keys by marks; findings are stored with the words of the study file."""
    written_out = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if any(map(_SECTION.search, _texts(ast.parse(file.read_text()))))
    }
    assert {file for file in written_out if not file.startswith("verdict/rules/")} == PAGES


def test_no_finding_that_compare_shows_names_a_section():
    told = {
        text: REWORD(marks.stored(text))
        for file in (PACKAGE / "verdict" / "rules").glob("*.py")
        for text in _texts(ast.parse(file.read_text()))
        if _SECTION.search(text)
    }
    assert len(told) > 20
    assert [text for text in told.values() if _SECTION.search(text)] == []


def test_steps_and_the_verdict_in_short_are_reworded_too():
    heard: list[ProgressEvent] = []
    on_event = reworded(heard.append, REWORD)
    ends = BlockEnds(0, look=False, decided=False, running={}, intervals={}, precision=None)
    on_event(Preparing(f"raise {marks.key('load', 'threads')}", stays=True))
    on_event(ends)
    assert heard == [Preparing("raise --threads", stays=True), ends]
    headline = Headline("withheld", "off against on", [Line("because", "raise [load] threads")])
    short = Brief([headline], "goodput", "none", None, None, [], "more ([load] rate)")
    console = Console(width=200)
    with console.capture() as shown:
        console.print(in_short(short, REWORD))
        console.print(in_short(short))
    assert "raise --threads" in shown.get()
    assert "more (--rate)" in shown.get()
    assert "raise [load] threads" in shown.get()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["schema.sql"], "psql -f schema.sql CONNECTION"),
        (["schema.sql", "shop.dump"], "psql -f schema.sql CONNECTION; pg_restore -d CONNECTION shop.dump"),
        (["host=db2 dbname=shop"], "pg_dump SOURCE | psql CONNECTION"),
    ],
)
def test_data_for_a_given_server_is_answered_with_the_command_that_loads_it(
    tmp_path, monkeypatch, capsys, files, command
):
    monkeypatch.chdir(tmp_path)
    Path("schema.sql").write_text("CREATE TABLE t (n int);\n")
    Path("shop.dump").write_bytes(b"PGDMP" + bytes(600))
    data = [word for file in files for word in ("--data", file)]
    with pytest.raises(SystemExit) as ended:
        main(["compare", "one=jit=on", "two=jit=off", "--server", "host=db1", *data])
    assert ended.value.code == 3
    assert capsys.readouterr().err == (
        "pgtrial: error: the command line: one: pgtrial loads data only into servers that it starts itself, and this "
        f"server is yours; load the data there once ({command}) and remove --data, or let pgtrial start a server "
        "(postgres=18 in place of the connection string)\n"
    )


def test_a_selftest_names_its_options(capsys, monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise StudyError(f"raise {marks.key('verdict', 'budget')}, or change {marks.key('load', 'threads')}")

    monkeypatch.setattr(selftest, "run", refuse)
    with pytest.raises(SystemExit):
        main(["selftest"])
    assert capsys.readouterr().err == "pgtrial: error: raise --budget, or change [load] threads\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--latency-limit", "10ms"], "load: --latency-limit ends the tries of a transaction"),
        (["--scale", "0.5"], "load: --scale is 0.5, and for tpcb-like it has to be a whole number; round it"),
        (["--workload", "suite:tpch", "--clients", "2"], "load: --clients is not for a suite: "),
        (
            ["--set", "load.procedures=true"],
            "load: --set load.procedures is for the workload order-entry; set this workload",
        ),
    ],
)
def test_options_that_do_not_fit_together_are_named_as_options(capsys, options, message):
    with pytest.raises(SystemExit):
        main(["compare", "jit=on", "jit=off", *options])
    assert message in capsys.readouterr().err


def test_data_for_a_pack_is_answered_with_what_takes_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("schema.sql").write_text("CREATE TABLE t (n int);\n")
    with pytest.raises(SystemExit):
        main(["compare", "jit=on", "jit=off", "--data", "schema.sql", "--workload", "pack:queue"])
    assert capsys.readouterr().err.endswith(
        "the pack queue makes tables of its own; remove --data, or name scripts on your data as --workload in place "
        "of the pack\n"
    )
