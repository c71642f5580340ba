"""The command line: quick help, one line for an error, the engine's arguments untouched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_engine

pytestmark = pytest.mark.server


OF_THE_LAB = (
    "demo",
    "run",
    "compare",
    "gate",
    "plan",
    "verdict",
    "report",
    "bundle",
    "verify",
    "facts",
    "list",
    "pack",
    "cleanup",
)


def environment(more=None):
    return {**os.environ, **(more or {}), "COLUMNS": "200"}


@pytest.fixture(scope="module")
def pgtrial(commands):
    return lambda *arguments, env=None, cwd=".": commands.run(list(arguments), Path(cwd), environment(env))


def test_help_names_every_command_without_importing_them():
    code = (
        "import sys, contextlib\nfrom pgtrial.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'asyncssh', 'duckdb', 'jinja2', 'numpy', 'polars', 'psycopg', 'pydantic', 'ray', 'scipy'}\n"
        "heavy |= {name for name in sys.modules if name.startswith('pgtrial.') and name.count('.') > 1}\n"
        "heavy -= {'pgtrial.cli.commands', 'pgtrial.cli.faults', 'pgtrial.cli.output', 'pgtrial.model.errors'}\n"
        "heavy -= {'pgtrial.model.printable', 'pgtrial.model.query_forms', 'pgtrial.model.tokens'}\n"
        "heavy -= {'pgtrial.model.marks', 'pgtrial.model.toml_values'}\n"
        "heavy -= {'pgtrial.cli.invocation', 'pgtrial.files.trust', 'pgtrial.machines.interrupt'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    for command in (*OF_THE_LAB, "pgbench", "sysbench", "tasks", "capture"):
        assert command in done.stdout


@pytest.mark.parametrize("command", OF_THE_LAB)
def test_every_command_explains_itself(pgtrial, command):
    done = pgtrial(command, "--help")
    assert done.returncode == 0, done.stderr
    assert f"pgtrial {command}" in done.stdout


def test_no_command_explains_itself_with_libraries_that_take_as_long_as_all_the_rest():
    code = (
        "import sys, contextlib\nfrom pgtrial.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    with contextlib.suppress(SystemExit): main([command, '--help'])\n"
        "    assert not {'jinja2', 'scipy.stats'} & sys.modules.keys(), command"
    )
    command = [sys.executable, "-c", code, *OF_THE_LAB]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    for command in OF_THE_LAB:
        assert f"pgtrial {command}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "absent.toml"], "there is no study file absent.toml"),
        (["plan", "@dmo"], "did you mean 'demo'"),
        (["run"], "name a study file or a bundled study"),
        (["run", "--resume", "nowhere"], "`pgtrial run` no longer has the option --resume; name the study's directory"),
        (["run", "here", "--blocks=5"], "`pgtrial run` no longer has the option --blocks; --more takes a number"),
        (["compare", "a", "b", "--pack"], "`pgtrial compare` no longer has the option --pack; it is called --share-ma"),
        (
            ["capacity", "a", "--p99", "5ms", "--jobs", "2"],
            "`pgtrial capacity` no longer has the option --jobs; it is called --thr",
        ),
        (["studies"], "pgtrial no longer has the command `studies`; `pgtrial list` lists the bundled studies"),
        (["nonsense"], "No such command 'nonsense'"),
        (["verdict", "a" * 5000], f"the path {'a' * 60}... is too long for this system"),
        (["run", "a" * 300 + ".toml"], f"the path {'a' * 60}... is too long for this system"),
        (["pack", "nonsense"], "Invalid value for 'action': 'nonsense' is not one of 'check', 'list' (see"),
        (
            ["compare", "jit=on", "jit=off", "--workload", ""],
            "--workload: it has 0 items and must have at least 1 item",
        ),
        (["run", "--no-such-option"], "No such option: --no-such-option"),
        (["compare", "jit=on"], "at least two arms; name another set-up"),
        (
            ["compare", "default", "jitt=on"],
            'rejects jitt: unrecognized configuration parameter "jitt"; did you mean jit',
        ),
        (["compare", "default", "work_mem=1kB"], "outside the valid range"),
        (["compare", "default", "jit=on work_mem=4MB"], "separate settings by commas"),
        (["compare", "jit=on", "jit=off", "--clients", "0"], "the command line: --clients, item 1"),
        (["compare", "jit=on", "jit=off", "--clients", "eight"], "not a list of whole numbers"),
        (["compare", "jit=on", "jit=off", "--budget", "1s"], "a verdict needs at least 6 blocks"),
    ],
)
def test_an_error_is_one_line_and_a_status(pgtrial, arguments, message, tmp_path):
    done = pgtrial(*arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("pgtrial: error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_study_that_is_refused_before_its_first_trial_leaves_no_directory(pgtrial, tmp_path):
    require_engine()
    done = pgtrial("compare", "default", "work_mem=lots", "--blocks", "8", "--scale", "1", cwd=tmp_path)
    assert done.returncode == 3
    assert "work_mem" in done.stderr.splitlines()[-1]
    assert list(tmp_path.glob("results/*")) == []


@pytest.mark.parametrize("size", ["0", "00"])
def test_a_terminal_that_says_it_has_no_width_shows_what_others_show(commands, example, tmp_path, size):
    verdict = ["verdict", str(example("replay-demo").path)]
    shown = commands.run(verdict, tmp_path, {**os.environ, "COLUMNS": "80"})
    without = commands.run(verdict, tmp_path, {**os.environ, "COLUMNS": size, "LINES": size})
    assert "against" in shown.stdout
    assert without.stdout == shown.stdout


def test_debug_shows_the_traceback(pgtrial, tmp_path):
    assert "Traceback" in pgtrial("run", "absent.toml", "--debug", cwd=tmp_path).stderr


@pytest.mark.parametrize("tool", ["pgbench", "sysbench", "tasks", "capture"])
def test_the_engine_as_a_tool_receives_its_arguments_untouched(pgtrial, tool, tmp_path):
    engine = tmp_path / "engine"
    engine.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    engine.chmod(0o755)
    arguments = ["--help", "-c", "8", "--debug", "a b", "*"]
    done = pgtrial(tool, *arguments, env={"PGTRIAL_ENGINE": str(engine)})
    assert done.stdout.splitlines() == [tool, *arguments]
    assert done.returncode == 7


def test_a_missing_engine_is_named_with_the_cure(pgtrial, tmp_path):
    done = pgtrial("pgbench", env={"PGTRIAL_ENGINE": str(tmp_path / "absent")})
    assert done.returncode == 3
    assert "PGTRIAL_ENGINE names" in done.stderr


def test_plan_shows_what_a_study_would_do(pgtrial):
    done = pgtrial("plan", "@demo", "--seed", "7")
    assert done.returncode == 0, done.stderr
    for words in (
        "on (baseline), off",
        "settings.synchronous_commit",
        "= 16",
        "after block 8",
        "block 1:",
        "MB while it runs",
    ):
        assert words in done.stdout
    first, second = (json.loads(pgtrial("plan", "@demo", "--seed", "7", "--json").stdout) for _ in range(2))
    assert first["trials"] == 16
    assert first["plan"]["trials"] == second["plan"]["trials"]


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("pgtrial ver", {"verdict", "verify"}),
        ("pgtrial verdict --a", {"--all"}),
        ("pgtrial run --more 1h --pro", {"--profile"}),
    ],
)
def test_a_shell_completes_commands_and_their_options(pgtrial, line, proposed):
    words = {"_PGTRIAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    assert set(pgtrial(env=words).stdout.split()) == proposed


@pytest.mark.parametrize(
    "arguments", [["pgbench", "--version"], ["compare", "default", "default", "--workload", "x.lua"]]
)
def test_an_engine_for_another_platform_is_one_sentence(pgtrial, tmp_path, arguments):
    foreign = bytearray(require_engine().read_bytes())
    foreign[18:20] = (1).to_bytes(2, sys.byteorder)  # the processor in the ELF header: WE 32100
    engine = tmp_path / "pgtrial-engine"
    engine.write_bytes(foreign)
    engine.chmod(0o755)
    (tmp_path / "x.lua").write_text("function event() end\n")
    done = pgtrial(*arguments, env={"PGTRIAL_ENGINE": str(engine)}, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"pgtrial: error: the load engine {engine} is built for another platform and does not"
    )
    assert done.stderr.count("\n") == 1
