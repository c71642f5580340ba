"""Tests of the engine's additions to scripts: values from a file, variables that need a value, a list of commands."""

from __future__ import annotations

import json

import pytest

from tests.engine.programs import settled

pytestmark = pytest.mark.server


@pytest.fixture
def run(peers, loaded, tmp_path):
    """Runs a script of this text with options; returns the engine's result."""

    def engine(text: str, *options: str, transactions: int = 1):
        (tmp_path / "s.sql").write_text(text)
        line = ["-n", "-f", "s.sql", f"-t{transactions}", "--random-seed", "7", *options]
        return settled(peers[1].run(loaded(18), *line, directory=tmp_path))

    return engine


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_each_transaction_draws_a_value_of_the_file(run, tmp_path, mode):
    (tmp_path / "ids").write_text("7\n11\n013\n")
    # 1/0 for a value that is not in the file, and for one that changes within a transaction
    text = (
        "SELECT 1 / (:id::int IN (7, 11, 13))::int AS x, :id AS first \\gset\n"
        "SELECT 1 / (:id::int = :first::int)::int;\n"
    )
    done = run(text, "--values=id=ids", "-M", mode, transactions=50)
    assert (done.status, "ERROR" in done.stderr) == (0, False), done.stderr


def test_all_values_are_drawn_and_the_seed_says_which(run, tmp_path):
    (tmp_path / "ids").write_text("".join(f"{number}\n" for number in range(1, 9)))
    text = "\\setshell x echo :id >> drawn; echo 1\nSELECT 1;\n"
    drawn = []
    for _ in range(2):
        assert run(text, "--values=id=ids", transactions=200).status == 0
        drawn.append((tmp_path / "drawn").read_text().split())
        (tmp_path / "drawn").unlink()
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 200
    assert sorted(set(drawn[0])) == list("12345678")


@pytest.mark.parametrize(
    ("content", "option", "complaint"),
    [
        ("", "--values=id=ids", 'the file "ids" has no value for the variable "id"'),
        ("1\n", "--values=id=none", 'could not open file "none": No such file or directory'),
        ("1\n", "--values=ids", 'invalid list of values "ids": it must be VARNAME=FILE'),
        ("1\n", "--values=1d=ids", 'invalid list of values "1d=ids": it must be VARNAME=FILE'),
    ],
)
def test_lists_that_are_none_are_refused(run, tmp_path, content, option, complaint):
    (tmp_path / "ids").write_text(content)
    done = run("SELECT 1;\n", option)
    assert (done.status, complaint in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("mode", ["extended", "prepared"])
def test_a_variable_without_a_value_is_null_unless_values_are_required(run, mode):
    text = "SELECT 1;\nSELECT 1 + :unset::int;\n"
    assert run(text, "-M", mode).status == 0
    done = run(text, "-M", mode, "--require-values", "--events", "-")
    assert done.status == 2
    (error,) = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] == "error"]
    assert (error["command"], error["kind"]) == (1, "script")
    assert error["message"] == 'the variable "unset" has no value'


def test_values_that_a_row_gives_count(run):
    text = "SELECT 5 AS got \\gset\n\\set twice 2 * :got\nSELECT :got::int, :twice::int, :client_id::int;\n"
    assert run(text, "-M", "prepared", "--require-values").status == 0


def test_the_commands_of_scripts_are_listed(run):
    text = "-- about\n\n\\set a 1\nSELECT :a,\n  :'b';\n\nUPDATE t SET x = :a WHERE y = :c \\gset\n"
    done = run(text, "--list-commands")
    assert done.status == 0
    listed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(command["line"], command["text"]) for command in listed] == [
        (3, "\\set a 1"),
        (4, "SELECT :a,"),
        (7, "UPDATE t SET x = :a WHERE y = :c "),
    ]
    assert [command["sql"] for command in listed][2].strip() == "UPDATE t SET x = $1 WHERE y = $2"
    assert [command["variables"] for command in listed] == [None, ["a"], ["a", "c"]]


def test_statements_are_listed_with_the_values_of_six_transactions(run, tmp_path):
    (tmp_path / "ids").write_text("4\n5\n")
    text = "\\set a random(1, 1000)\n\\set b :a * 2\nSELECT :a, :b, :id;\nSELECT 1 AS got \\gset\nSELECT :got;\n"
    options = ("--list-commands", f"--values=id={tmp_path / 'ids'}", "--random-seed", "7", "-h", "/nowhere")

    def listed(*more):
        done = run(text, *options, *more)
        assert done.status == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    commands = listed("-M", "prepared")
    draws = [[int(value) for value in draw] for draw in commands[2]["values"]]
    assert len(draws) == 6
    assert all(1 <= a <= 1000 and b == 2 * a and drawn in (4, 5) for a, b, drawn in draws)
    assert len({a for a, _, _ in draws}) > 1
    assert commands[4]["values"] == [[None]] * 6  # a server knows it
    assert (commands[0]["values"], commands[2]["sent"]) == (None, [])
    simple = listed("-M", "simple")[2]
    assert simple["sent"][0] == "SELECT {}, {}, {};".format(*draws[0])
    assert listed("-M", "prepared") == commands


def test_a_wrong_command_is_found_before_a_server_is_asked(run):
    done = run("SELECT 1;\n\\nonsense\n", "--list-commands", "-h", "/nowhere")
    assert (done.status, "s.sql:2: invalid command" in done.stderr) == (1, True)


@pytest.mark.parametrize(("mode", "sent"), [("simple", ["SELECT 7 + 1;", "SELECT 7 + 2;"]), ("prepared", [None, None])])
def test_statements_that_a_run_sends_are_listed_with_their_first_six_executions(run, tmp_path, mode, sent):
    text = "\\set a 7\nSELECT :a + 1;\nSELECT :a + 2;\n"
    assert run(text, "--list-statements=sent", "-M", mode, transactions=8).status == 0
    lines = [json.loads(line) for line in (tmp_path / "sent").read_text().splitlines()]
    expected = [
        {"sql": f"SELECT $1 + {number};", "values": ["7"], "sent": whole}
        for number, whole in zip((1, 2), sent, strict=True)
    ]
    assert lines == expected * 6


def test_a_file_for_statements_that_cannot_be_made_is_refused(run):
    done = run("SELECT 1;\n", "--list-statements=none/sent")
    assert (done.status, 'could not open statements file "none/sent"' in done.stderr) == (1, True), done.stderr
