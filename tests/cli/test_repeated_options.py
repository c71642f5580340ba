"""An option that takes one value is refused when it is given twice: else a value would be lost without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.core import TyperOption

from pgtrial.cli import COMMANDS, application, main

OF_THE_LAB = [name for name, (module, _) in COMMANDS.items() if module is not None]


def options_of(command: str) -> list[TyperOption]:
    """Returns the options of a command that take values."""
    group = typer.main.get_command(application(command))
    return [one for one in group.commands[command].params if isinstance(one, TyperOption) and not one.is_flag]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("command", OF_THE_LAB)
def test_no_option_of_one_value_is_taken_twice(capsys, command):
    for option in options_of(command):
        if not option.multiple:
            status, told = answer(capsys, command, option.opts[0], "1", f"{option.opts[0]}=2")
            assert status == 3, option.name
            assert told.startswith(f"pgtrial: error: {option.opts[0]} takes one value, but is given more than once"), (
                told
            )
            assert told.count("\n") == 1


@pytest.mark.parametrize("command", [[], ["verdict"], ["gate"]])
def test_the_help_shows_no_value_for_an_option_that_takes_none(capsys, command):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "bool" not in shown


def test_what_can_be_repeated_can_still_be_repeated(capsys):
    repeatable = {(name, option.name) for name in OF_THE_LAB for option in options_of(name) if option.multiple}
    assert {("compare", "data"), ("compare", "values"), ("compare", "server"), ("cleanup", "template")} <= repeatable
    twice = ("--data", "a.sql", "--data", "b.sql", "--values", "id=t.id", "--values", "who=t.who", "--new", "--new")
    _, told = answer(capsys, "compare", "jit=on", "jit=off", *twice)
    assert "a.sql" in told, told
    assert "more than once" not in told


def test_whoever_gives_two_queries_learns_how_two_forms_are_compared(capsys):
    _, told = answer(capsys, "compare", "default", "default", "--query", "select 1", "--query", "select 2")
    assert "give each arm its own: 'old=query=SELECT ...' 'new=query=SELECT ...', or old=workload=old.sql" in told
    _, told = answer(capsys, "compare", "jit=on", "jit=off", "--clients", "1", "--clients", "8")
    assert "write all values in one, such as --clients 1,8" in told


@pytest.mark.parametrize(
    ("arguments", "twice"),
    [
        (["work_mem=4MB,work_mem=8MB", "jit=off"], "work_mem"),
        (["jit=on", "jit=off", "--server", "jit=on", "--server", "jit=off"], "jit"),
        (["jit=on", "jit=off", "--server", "postgres=17", "--server", "postgres=18"], "postgres"),
        (["jit=on", "jit=off", "--query", "select :id", "--values", "id=a.id", "--values", "id=b.id"], "id"),
        (["jit=on", "jit=off", "--capacity", "p99=10ms,p99=20ms"], "p99"),
    ],
)
def test_nor_is_a_name_within_values_taken_twice(capsys, arguments, twice):
    status, told = answer(capsys, "compare", *arguments)
    assert status == 3
    assert f"has {twice} more than once; leave one out" in told


@pytest.mark.parametrize("arm", ["workload=a.sql", "query=select 1"])
def test_a_query_of_one_arm_alone_is_refused(capsys, tmp_path, monkeypatch, arm):
    monkeypatch.chdir(tmp_path)
    Path("a.sql").write_text("select 1;\n")
    _, told = answer(capsys, "compare", arm, "jit=off")
    assert f"the arm jit=off has no query and no workload, but {arm} has one" in told
    assert "give every arm a query or a workload" in told


def test_a_query_without_its_key_is_refused_with_the_form_that_is_taken(capsys):
    _, told = answer(capsys, "compare", "select 1", "select 2")
    assert "'select 1' is not a set-up" in told
    assert "two forms of a query by 'old=query=SELECT ...' 'new=query=SELECT ...'" in told


def test_what_is_the_same_for_all_arms_is_refused_in_an_arm(capsys, tmp_path):
    file = tmp_path / "arms.toml"
    file.write_text("[arms.a]\n[arms.b]\nclients = 8\n")
    _, told = answer(capsys, "plan", str(file))
    assert "unknown key 'clients' in [arms.b]; it belongs in [load], since it is the same for all arms" in told
