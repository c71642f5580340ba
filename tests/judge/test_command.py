"""`pgtrial judge` as it is typed: exit statuses, JSON, standard input, drawn orders, and the outputs of its page."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from pgtrial.cli import main
from pgtrial.judge.judgement import Judgement

from .tables import drawn_series, table, text_of

PAGE = Path(__file__).parents[2] / "docs" / "own-numbers.md"


@pytest.fixture
def judge(capsys, tmp_path, monkeypatch):
    """Returns a function that calls the command in a folder of its own: its exit status, its output and its errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["judge", *arguments])
        told = capsys.readouterr()
        return int(end.value.code or 0), told.out, told.err

    return call


def words_of(text: str) -> str:
    """Returns a text without its line breaks and indents."""
    return " ".join(text.split())


def test_the_exit_status_is_that_of_a_studys_verdict(judge, tmp_path):
    rows = text_of(drawn_series(8, {"old": 1.0, "new": 1.3}), "block,arm,value")
    table(tmp_path, rows)
    assert judge("runs.csv", "--order", "drawn", "--baseline", "old")[0] == 0
    assert judge("runs.csv", "--order", "drawn", "--baseline", "new")[0] == 1
    status, out, _ = judge("runs.csv", "--baseline", "old")
    assert (status, out.split()[0]) == (2, "WITHHELD")
    assert judge("runs.csv", "--order", "drawn", "--baseline", "newer")[0] == 3


def test_json_has_the_claims_of_a_verdict_and_the_sentences(judge, tmp_path):
    table(tmp_path, text_of(drawn_series(8, {"old": 1.0, "new": 1.3}), "block,arm,value"))
    status, out, _ = judge("runs.csv", "--order", "drawn", "--baseline", "old", "--json")
    judgement = Judgement.model_validate_json(out)
    assert (status, judgement.primary[0].verdict, judgement.drawn) == (0, "better", True)
    assert "the value of new is" in judgement.sentences[0]


def test_a_hyphen_reads_the_standard_input(judge, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"arm;value\r\na;1\r\na;2\r\n")))
    status, out, _ = judge("-")
    assert (status, out.splitlines()[0]) == (2, "a alone: 2 runs, which compare nothing")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "the standard input is empty" in judge("-")[2]
    monkeypatch.setattr(sys, "stdin", None)
    assert "the standard input is empty" in judge("-")[2]


def test_a_drawn_order_is_filled_in_and_judged(judge, tmp_path):
    status, out, err = judge("--draw", "old,new", "--blocks", "8", "--seed", "3")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "# pgtrial judge --draw old,new --blocks 8 --seed 3"
    assert judge("--draw", "old,new", "--blocks", "8", "--seed", "3")[1] == out
    filled = re.sub(r"(old|new),$", lambda row: f"{row[1]},{1300 if row[1] == 'new' else 1000}", out, flags=re.M)
    table(tmp_path, filled)
    status, told, _ = judge("runs.csv", "--order", "drawn", "--baseline", "old")
    assert (status, told.split()[0]) == (0, "BETTER")
    table(tmp_path, out)
    assert "line 4, column value: the field is empty; write the number that was measured" in judge("runs.csv")[2]


def test_a_drawn_order_says_its_seed_and_warns_of_too_few_blocks(judge):
    status, out, err = judge("--draw", "a,b,c", "--blocks", "2", "--json")
    drawn = json.loads(out)
    assert (status, drawn["arms"], len(drawn["blocks"])) == (0, ["a", "b", "c"], 2)
    assert judge("--draw", "a,b,c", "--blocks", "2", "--json", "--seed", str(drawn["seed"]))[1] == out
    assert "a verdict on these arms takes at least 7 blocks" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "name the file with the numbers, or - for the standard input; or draw an order of runs by --draw old,new"),
        (
            ["runs.csv", "--draw", "a,b"],
            "--draw prints an order of runs and does not read a file; leave out either runs.csv or --draw",
        ),
        (["runs.csv", "--seed", "1"], "--seed applies only to the order that --draw prints"),
        (["--draw", "a"], "does not name two arms; separate their names by commas, as in --draw old,new"),
        (["absent.csv"], "absent.csv cannot be read (No such file or directory)"),
        (["runs.csv", "--margin", "wide"], "--margin: 'wide' is not a share; write for example 1% or 0.01"),
        (["runs.csv", "--margin", "2"], "--margin: '2' is more than the whole, which is 1; write 2% for 2 per cent"),
        (["runs.csv", "--margin", "200%"], "--margin '200%' is out of range; write a share above 0% and below 100%"),
        (["runs.csv", "--order", "random"], "--order"),
        (["times.csv", "--value", "p99_ms"], "by its name the column 'p99_ms' has times, and pgtrial takes larger"),
        (["runs.csv", "--blocks", "0"], "--blocks"),
    ],
)
def test_a_question_that_cannot_be_answered_is_one_sentence_and_status_3(judge, tmp_path, arguments, why):
    table(tmp_path, "arm,value\nold,1\nnew,2\n")
    table(tmp_path, "arm,p99_ms\nold,1\nnew,2\n", "times.csv")
    status, out, err = judge(*arguments)
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert why in err


def test_the_verdict_of_a_table_names_the_command_for_tables(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path, "arm,value\nold,1\nnew,2\n")
    with pytest.raises(SystemExit) as end:
        main(["verdict", "runs.csv"])
    assert end.value.code == 3
    assert "`pgtrial judge runs.csv` compares numbers of your own" in capsys.readouterr().err


def test_names_reach_the_terminal_as_text(judge, tmp_path):
    table(tmp_path, "arm,value\n\x1b[31mred,1\n[bold]b,2\n")
    status, out, _ = judge("runs.csv")
    assert status == 2
    assert "\x1b[31m" not in out
    assert "[bold]b against" in out


def test_the_page_shows_what_the_commands_print(judge, tmp_path):
    """The blocks of the page are, in this order: tables by their names, and commands with their outputs."""
    text = PAGE.read_text()
    tables = re.findall(r"`([\w-]+\.csv)`:\n```csv\n(.*?)```", text, re.DOTALL)
    for name, content in tables:
        table(tmp_path, content, name)
    shown = re.findall(r"```sh\npgtrial judge ([^\n#]*?)(?: *#[^\n]*)?\n```\n+```\n(.*?)```", text, re.DOTALL)
    assert len(tables) >= 3
    assert len(shown) >= 4
    for arguments, output in shown:
        _, out, err = judge(*arguments.split())
        assert err == ""
        assert words_of(out) == words_of(output), arguments
