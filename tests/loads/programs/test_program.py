"""Client programs as processes: what they say, and every way in which it is no batch."""

from __future__ import annotations

import itertools
import shlex
import sys
from pathlib import Path

import psutil
import pytest

from pgtrial.loads.programs.program import Program, ProgramOrder
from pgtrial.model.errors import TrialError
from tests.processes import until

LOOP = "import sys, time\nfor token in sys.stdin:\n    number = int(token.split()[1])\n"
ANSWER = """    print('{"batch": %d, "ms": 0.001, "operations": 7}' % number, flush=True)\n"""


@pytest.fixture
def program(tmp_path: Path):
    def make(text: str, **variables: str) -> Program:
        (tmp_path / "client.py").write_text(text)
        command = f"{shlex.quote(sys.executable)} -S client.py"
        return Program(ProgramOrder(command, tmp_path, {"PGHOST": "/nowhere", **variables}))

    return make


def says(line: str) -> str:
    """Returns the source of a client program that answers every token with the value of this Python expression."""
    return f"{LOOP}    print({line}, flush=True)\n"


def test_batches_follow_tokens(program):
    with program(LOOP + ANSWER) as client:
        batches = [client.run_batch() for _ in range(3)]
        assert client.name is None
    assert [(batch.claimed_s, batch.operations) for batch in batches] == [(1e-6, 7)] * 3
    assert all(batch.passed_s > 0 for batch in batches)
    assert all(first.end <= second.begin for first, second in itertools.pairwise(batches))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"program": "psycopg", "version": "3.2.1"}', "psycopg 3.2.1"),
        ('{"program": "mine"}', "mine"),
        ('{"program": "odd", "version": null}', "odd"),
        ('{"program": "red \\\\u001b[31m"}', "red ␛[31m"),
    ],
)
def test_the_first_line_may_say_what_it_is(program, line, name):
    with program(f"print('{line}', flush=True)\n{LOOP}{ANSWER}") as client:
        client.run_batch()
        client.run_batch()
        assert client.name == name


def test_the_server_is_in_the_environment_alone(program, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-c jit=off")
    text = (
        'import os, sys\nif sorted(n for n in os.environ if n[:2] == "PG") != ["PGHOST", "PGPASSWORD"]: sys.exit(5)\n'
    )
    with program(text + LOOP + ANSWER, PGPASSWORD="s3cret") as client:
        client.run_batch()
        assert not any("s3cret" in word for word in psutil.Process(client.pid).cmdline())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("'Connected to the database'", "its answer to `go 1` is not JSON, 'Connected to the database'; write "),
        ("'[1, 2]'", "is not a JSON object, '[1, 2]'"),
        ("'['*60000", "is not JSON"),
        ("'x'*70000", "is longer than 65,536 bytes"),
        ("""'{"batch": 1, "ms": 0.1}'""", 'it has no "operations"; write {"batch": 1, "ms": 12.3, "operations": 1000}'),
        ("""'{"batch": 1, "seconds": 0.1, "operations": 5}'""", 'it has no "ms"'),
        ("""'{"batch": 2, "ms": 0.1, "operations": 5}'""", "batch has to be the number of the token, 1"),
        ("""'{"batch": true, "ms": 0.1, "operations": 5}'""", "batch has to be the number of the token, 1"),
        ("""'{"batch": 1, "ms": NaN, "operations": 5}'""", "ms has to be a number above 0"),
        ("""'{"batch": 1, "ms": Infinity, "operations": 5}'""", "ms has to be a number above 0"),
        ("""'{"batch": 1, "ms": -3, "operations": 5}'""", "ms has to be a number above 0"),
        ("""'{"batch": 1, "ms": 0, "operations": 5}'""", "ms has to be a number above 0"),
        ("""'{"batch": 1, "ms": "0.1", "operations": 5}'""", "ms has to be a number above 0"),
        ("""'{"batch": 1, "ms": 0.1, "operations": 0}'""", "operations has to be a whole number from 1"),
        ("""'{"batch": 1, "ms": 0.1, "operations": 1.5}'""", "operations has to be a whole number from 1"),
        ("""'{"batch": 1, "ms": 86400000, "operations": 5}'""", "it claims 86,400,000.000 ms, but only "),
    ],
)
def test_what_is_no_batch_is_said_with_its_line(program, line, complaint):
    with program(says(line)) as client, pytest.raises(TrialError) as raised:
        client.run_batch()
    assert complaint in str(raised.value)
    assert str(raised.value).startswith("the client program '")
    assert "client.py'" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "import nothing_of_this_name\n",
            "ended with status 1 before it answered `go 1`; its last message: ModuleNotF",
        ),
        ("", "ended with status 0 before it answered `go 1`; it wrote nothing to standard error"),
        ("import os\nos.kill(os.getpid(), 9)\n", "was killed by SIGKILL before it answered `go 1`"),
        ("import sys, os\nos.close(1)\nsys.stdin.readline()\nsys.exit(4)\n", "ended with status 4 before it answered"),
    ],
)
def test_an_end_before_the_answer_is_said_with_the_last_words(program, text, complaint):
    with program(text) as client, pytest.raises(TrialError) as raised:
        client.run_batch()
    assert complaint in str(raised.value)


def test_an_end_after_some_batches_names_the_batch(program):
    with program(f"{LOOP}    if number == 3: sys.exit('error: relation is gone')\n{ANSWER}") as client:
        client.run_batch()
        client.run_batch()
        with pytest.raises(
            TrialError, match="with status 1 before it answered `go 3`; its last message: error: relation"
        ):
            client.run_batch()


def test_a_password_is_in_no_message(program):
    text = "import os, sys\nsys.exit('error: cannot log in with ' + os.environ['PGPASSWORD'])\n"
    with program(text, PGPASSWORD="s3cret") as client, pytest.raises(TrialError) as raised:
        client.run_batch()
    assert "cannot log in with ***" in str(raised.value)
    quotes = program(says("__import__('os').environ['PGPASSWORD']"), PGPASSWORD="s3cret")
    with quotes as client, pytest.raises(TrialError) as raised:
        client.run_batch()
    assert "is not JSON, '***'" in str(raised.value)


def test_silence_ends_with_the_limit(program):
    with program(f"{LOOP}    time.sleep(600)\n") as client:
        process = psutil.Process(client.pid)
        with pytest.raises(
            TrialError, match=r"has not answered the token `go 1` for 1s(; its last message.*)?; write a line"
        ):
            client.run_batch(1.0)
        client.kill()
    assert not process.is_running()


def test_a_flood_is_refused_and_takes_no_memory(program):
    with program("while True: print('{}')\n") as client:
        with pytest.raises(TrialError, match=r"it wrote more than one line for a token|its answer to `go 1`"):
            client.run_batch()
        assert client._lines.qsize() <= 16
        client.kill()


def test_lines_without_a_token_are_refused(program):
    with program(f"{LOOP}{ANSWER}{ANSWER}") as client:
        client.run_batch()
        until(lambda: client._lines.qsize() == 1, "its second line is read")
        with pytest.raises(TrialError, match="it wrote more than one line for a token"):
            client.run_batch()


def test_it_ends_with_its_input_and_what_it_started_is_ended(program):
    answer = """'{"batch": 1, "ms": 0.001, "operations": %d}' % child.pid"""
    with program(f"import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n{says(answer)}") as client:
        child, process = psutil.Process(client.run_batch().operations), psutil.Process(client.pid)
    assert not process.is_running()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "its child ends")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("no-such-program-here", "the program does not exist any more"),
        ("./not-executable", "the program does not exist any more"),
        ("./no-binary", "it cannot be started: Exec format error"),
    ],
)
def test_a_program_that_does_not_start(tmp_path, command, complaint):
    (tmp_path / "not-executable").write_text("x")
    (tmp_path / "no-binary").write_text("x")
    (tmp_path / "no-binary").chmod(0o755)
    with pytest.raises(TrialError, match=complaint), Program(ProgramOrder(command, tmp_path, {})):
        pass
