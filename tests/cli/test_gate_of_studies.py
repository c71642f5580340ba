"""`pgtrial gate` with a file that lists several studies."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pgtrial.cli import gate
from pgtrial.conduct.planning.stopping import time_spent
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.store.bundle import open_study
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.running import locked
from pgtrial.store.study_file import read_study
from tests.cli.gates import of_measured_studies, property_in
from tests.conduct.small import PGTRIAL
from tests.conftest import require_engine

NAMES = ("select", "orders", "join")
FILES = {"summary_file": Path("gate.md"), "junit_file": Path("gate.xml"), "bundle": Path("gate.tar.xz")}


# ---- without a server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with three studies in ci/ and a file that lists them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_RUN_ATTEMPT", raising=False)
    Path("ci").mkdir()
    for scale, name in enumerate(NAMES, start=1):
        Path(f"ci/{name}.toml").write_text(f'[load]\nworkload = "select-only"\nscale = {scale}\n')
    list_studies(*(f"{name}.toml" for name in NAMES))
    return tmp_path


def list_studies(*files: str) -> None:
    Path("ci/gate.toml").write_text(f"[gate]\nstudies = {json.dumps(files)}\n")


@pytest.fixture
def measured(monkeypatch):
    """Returns a function `measure(ratio, sd)`. After a call, each study that a gate starts gets made trials of this
    ratio, or of that for its name.
    """
    return of_measured_studies(monkeypatch)


def run_gate(*pair: str, **options) -> int:
    return gate.gate_command(*(pair or ("jit=on", "jit=off")), **{"study": "ci/gate.toml", **FILES, **options})


def said(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def cases() -> dict[str, str | None]:
    """Returns the element of each test case in the JUnit file, by the name of the test case."""
    found = ElementTree.parse("gate.xml").iter("testcase")
    return {case.get("name"): case[0].tag if len(case) else None for case in found}


def test_the_studies_run_in_the_order_of_the_file_and_the_gate_has_one_result(folder, measured, capsys):
    started = measured({"select": 1.0, "orders": 0.94, "join": 1.06})
    assert run_gate(json=True) == 1
    assert [spec.study.name for spec in started] == ["select", "orders", "join"]
    assert {tuple(spec.arms) for spec in started} == {("jit=on", "jit=off")}
    result = said(capsys)
    told = (
        "fail: 1 of 3 studies fails: orders (jit=off is 6.0% slower than jit=on); passed: select, join; faster: join."
    )
    assert re.sub(r"\d\.\d+%", "6.0%", result["gate"]["outcome"]) == told
    assert list(result["studies"]) == ["select", "orders", "join"]
    assert [study["gate"]["status"] for study in result["studies"].values()] == [0, 1, 0]
    assert [study["primary"][0]["verdict"] for study in result["studies"].values()] == ["equivalent", "worse", "better"]
    pair = "jit=off against jit=on"
    assert cases() == {f"select: {pair}": None, f"orders: {pair}": "failure", f"join: {pair}": None}
    suite = ElementTree.parse("gate.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "0"]
    text = Path("gate.md").read_text()
    assert text.startswith("### pgtrial gate: fail\n\n**fail: 1 of 3 studies fails: orders (jit=off is ")
    assert re.search(r"\| select \| pass \| [-+]0\.\d+% \| .* \| equivalent \|", text)
    assert re.search(r"\| join \| pass, faster \| \+\d\.\d+% \| .* \| better \|", text)
    assert text.index("#### orders: fail") < text.index("#### select: pass") < text.index("#### join: pass")


def test_all_claims_of_the_studies_share_one_error(folder, measured):
    Path("ci/join.toml").write_text('[load]\nworkload = "select-only"\n[verdict]\nstudies = 5\n')
    started = measured(1.0)
    assert run_gate() == 0
    assert [spec.verdict.studies for spec in started] == [3, 3, 5], "a study may share its error with more studies"
    assert all(spec.verdict.one_sided and spec.verdict.final for spec in started)


@pytest.mark.parametrize(("options", "status"), [({"fail_on": "not-equivalent"}, 1), ({"base_twice": True}, 0)])
def test_the_options_of_a_gate_are_for_all_studies(folder, measured, options, status):
    started = measured(1.06)
    assert run_gate(**options) == status
    assert not any(spec.verdict.one_sided for spec in started)


def test_time_that_a_study_has_left_over_goes_in_equal_parts_to_the_later_ones(folder, measured):
    started = measured(1.0)
    assert run_gate(budget="30min") == 0
    spent_s = 24 * 11.0  # 24 trials of 11 s, whatever the budget is
    second_s = 600 + (600 - spent_s) / 2
    assert [spec.verdict.budget for spec in started] == pytest.approx([600, second_s, 1800 - 2 * spent_s])


def test_a_study_that_took_too_long_costs_the_later_ones_nothing_of_their_shares(folder, measured):
    started = measured(1.0)
    assert run_gate(budget="9min") == 0
    assert [spec.verdict.budget for spec in started] == [180, 180, 180], "each of them took 264 s"


def test_the_budget_of_a_gate_is_the_sum_of_those_of_its_studies_unless_the_command_names_one(folder, measured):
    Path("ci/orders.toml").write_text('[load]\nworkload = "select-only"\n[verdict]\nbudget = "10min"\n')
    started = measured(1.0)
    assert run_gate() == 0
    assert started[0].verdict.budget == (3600 + 600 + 3600) / 3


def test_a_study_that_needs_more_than_an_equal_part_has_it(folder, measured):
    slow = '[load]\nworkload = "select-only"\nwarmup = "10s"\nduration = "40s"\n'
    Path("ci/select.toml").write_text(slow)
    started = measured(1.0)
    assert run_gate(budget="20min") == 0
    needed_s = started[0].verdict.budget
    assert needed_s > 400
    assert needed_s % 60 == 0


@pytest.mark.parametrize("lengths", ["", 'warmup = "0s"\nduration = "1s"\n'], ids=["chosen", "given"])
def test_a_budget_that_is_too_short_for_all_studies_says_what_would_suffice(folder, measured, lengths):
    for name in NAMES:
        Path(f"ci/{name}.toml").write_text(f'[load]\nworkload = "select-only"\n{lengths}')
    started = measured(1.0)
    assert run_gate(budget="1min") == 2
    text = Path("gate.md").read_text()
    found = re.search(r"needs at least (\d+)min \(select (\d)min, orders (\d)min, join (\d)min\)", text)
    assert found is not None
    assert int(found[1]) == sum(map(int, found.groups()[1:]))
    assert f"set --budget {found[1]}min or more, or leave out a study" in text
    assert started == []
    assert not Path("results").exists()
    assert run_gate(budget=f"{found[1]}min") == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("measurement", "options", "expected"),
    [
        ((1.0,), {}, (0, "pass: all 3 studies pass.")),
        ((0.985, 0.03), {}, (2, "no verdict: 3 of 3 studies have no verdict: select (undecided after 12 ")),
        (
            (0.985, 0.03),
            {"accept_undecided": True},
            (0, "pass: none of 3 studies fails; undecided: select, orders, join."),
        ),
    ],
)
def test_a_gate_passes_only_if_all_studies_pass(measured, capsys, measurement, options, expected):
    measured(*measurement)
    status, told = expected
    assert run_gate(json=True, **options) == status
    assert said(capsys)["gate"]["outcome"].startswith(told)


def test_an_error_in_one_study_does_not_keep_the_others_from_running_and_is_mended_by_the_same_command(
    folder, measured, capsys
):
    started = measured({"select": 1.0, "orders": StudyError("the script has a typing error."), "join": 1.0})
    assert run_gate(json=True) == 3
    assert said(capsys)["gate"]["outcome"] == (
        "error: 1 of 3 studies has an error: orders (the script has a typing error); passed: select, join."
    )
    assert cases()["orders: jit=off against jit=on"] == "error"
    measured({"orders": 1.0})
    assert run_gate() == 0
    assert [spec.study.name for spec in started] == ["select", "orders", "join", "orders"]
    assert len(list(Path("results").iterdir())) == 1


def test_a_failure_is_graver_than_an_error(folder, measured, capsys):
    measured({"select": 0.94, "orders": StudyError("the server is lost."), "join": 1.0})
    assert run_gate(json=True) == 1
    assert "; error: orders; passed: join." in said(capsys)["gate"]["outcome"]


def test_a_gate_that_is_stopped_goes_on_with_the_study_that_was_under_way(folder, measured, capsys):
    started = measured({"select": 1.0, "orders": None})
    assert run_gate(budget="30min") == 143
    pair = "jit=off against jit=on"
    assert cases() == {f"select: {pair}": None, f"orders: {pair}": "error", f"join: {pair}": "error"}
    assert Path("gate.md").read_text().startswith("### pgtrial gate: error\n\n**error: the gate was stopped;")
    assert not Path("gate.tar.xz").exists()
    measured({"orders": 0.94, "join": 1.0})
    capsys.readouterr()
    assert run_gate(budget="30min", json=True) == 1
    assert [spec.study.name for spec in started] == ["select", "orders", "orders", "join"]
    assert started[1].verdict.budget == started[2].verdict.budget
    result = said(capsys)
    assert (result["gate"]["try"], list(result["studies"])) == (1, list(NAMES))
    assert len(list(Path("results").iterdir())) == 1


def test_a_gate_that_was_stopped_and_is_not_continued_is_a_try(folder, measured, capsys):
    measured({"select": 1.0, "orders": None})
    assert run_gate() == 143
    measured(1.0)
    capsys.readouterr()
    assert run_gate(json=True, new=True) == 0
    result = said(capsys)["gate"]
    assert (result["try"], [gate["stopped"] for gate in result["earlier"]]) == (2, [True])


def test_a_gate_that_has_a_verdict_repeats_it_and_the_try_after_it_is_counted(folder, measured, capsys):
    started = measured({"select": 1.0, "orders": 0.94, "join": 1.0})
    assert run_gate() == 1
    measured(1.0)
    capsys.readouterr()
    assert run_gate(json=True) == 1
    assert len(started) == 3, "nothing is measured again"
    result = said(capsys)
    assert (result["gate"]["try"], result["gate"]["earlier"]) == (1, [])
    assert result["gate"]["measured"] != "now"
    assert [study["gate"]["status"] for study in result["studies"].values()] == [0, 1, 0]
    assert "on the same set-ups, which stands" in Path("gate.md").read_text()
    assert run_gate(json=True, new=True) == 0
    result = said(capsys)["gate"]
    assert (result["try"], [gate["status"] for gate in result["earlier"]]) == (2, [1])
    list_studies("orders.toml", "join.toml")
    assert run_gate(json=True) == 0
    result = said(capsys)["gate"]
    assert (result["try"], [gate["status"] for gate in result["earlier"]]) == (3, [1, 0]), "others beside them, same"


def test_the_bundle_holds_the_studies_and_brings_the_verdict_to_another_machine(folder, measured, capsys):
    started = measured({"select": 1.0, "orders": 0.94, "join": 1.0})
    assert run_gate() == 1
    bundle = Path("gate.tar.xz").read_bytes()
    shutil.rmtree("results")
    measured(1.0)
    capsys.readouterr()
    assert run_gate(json=True) == 1
    assert len(started) == 3
    assert said(capsys)["gate"]["measured"] != "now"
    assert Path("gate.tar.xz").read_bytes() == bundle
    subprocess.run(["tar", "-xf", "gate.tar.xz"], check=True)
    names = sorted(path.name for path in Path("study").iterdir())
    assert names == ["1-select.tar.xz", "2-orders.tar.xz", "3-join.tar.xz", "bundle.json", "gate.json", "studies.json"]
    with open_study(Path("study/2-orders.tar.xz")) as study:
        assert study.spec.study.name == "orders"
    with (
        pytest.raises(StoreError, match=r"gate\.tar\.xz holds the studies of a gate; name the directory or the bundle"),
        open_study(Path("gate.tar.xz")),
    ):
        pass
    assert run_gate(json=True, new=True) == 0
    assert [gate["status"] for gate in said(capsys)["gate"]["earlier"]] == [1], "the bundle counts as a try"


def test_a_bundle_without_the_values_that_may_be_secrets_is_a_try_and_no_verdict(folder, measured, capsys):
    started = measured(0.94)
    assert run_gate("a=my.key=one", "b=my.key=two") == 1
    shutil.rmtree("results")
    measured(1.0)
    capsys.readouterr()
    assert run_gate("a=my.key=other", "b=my.key=two", json=True) == 0
    assert len(started) == 6
    result = said(capsys)["gate"]
    assert (result["try"], [gate["status"] for gate in result["earlier"]]) == (2, [1])


def test_the_directory_of_a_gate_is_chosen_by_an_option_and_has_one_gate(folder, measured):
    started = measured(1.0)
    assert run_gate(results=Path("mine")) == 0
    assert sorted(path.name for path in Path("mine").glob("[!.]*")) == [
        "1-select", "2-orders", "3-join", "gate.json", "studies.json",
    ]  # fmt: skip
    assert run_gate(results=Path("mine")) == 0
    assert len(started) == 3
    list_studies("orders.toml", "select.toml")
    with pytest.raises(StoreError, match="mine has another gate than the one to run; choose another directory"):
        run_gate(results=Path("mine"))
    Path("full").mkdir()
    Path("full/notes").touch()
    with pytest.raises(StoreError, match="full is not empty, and does not contain this gate"):
        run_gate(results=Path("full"))


def test_a_gate_that_another_process_runs_is_not_run_beside_it(folder, measured):
    started = measured({"select": None})
    assert run_gate(results=Path("mine")) == 143
    with locked(Path("mine")), pytest.raises(StoreError, match="another pgtrial is running this study in mine; wait"):
        run_gate(results=Path("mine"))
    assert len(started) == 1


def test_a_gate_of_a_list_with_one_study_is_a_gate_of_this_study(folder, measured):
    list_studies("select.toml")
    started = measured(1.0)
    assert run_gate(budget="10min") == 0
    assert (started[0].verdict.studies, started[0].verdict.budget) == (None, 600)
    assert list(cases()) == ["jit=off against jit=on"]


def test_the_arms_of_the_studies_may_be_named_if_they_are_the_same(folder, measured):
    for name in NAMES:
        with Path(f"ci/{name}.toml").open("a") as file:
            file.write('[arms.old]\npostgres = "17"\n[arms.new]\npostgres = "18"\n')
    started = measured(1.0)
    assert run_gate("old", "new") == 0
    assert [list(spec.arms) for spec in started] == [["old", "new"]] * 3


def test_an_arm_may_have_a_query_of_its_own_in_each_study(folder, measured):
    for number, name in enumerate(NAMES):
        with Path(f"ci/{name}.toml").open("a") as file:
            file.write(f'[arms.old]\nquery = "SELECT {number}"\n[arms.new]\nquery = "SELECT 1 + {number}"\n')
        Path(f"ci/{name}.toml").write_text(
            Path(f"ci/{name}.toml").read_text().replace('workload = "select-only"\n', "")
        )
    started = measured({"select": 1.0, "orders": 0.94, "join": 1.0})
    assert run_gate("old", "new") == 1
    assert [list(spec.scripts.values())[-1].strip().rstrip(";") for spec in started] == [
        f"SELECT 1 + {number}" for number in range(3)
    ]


def test_seeds_of_a_gate_differ(folder, measured):
    started = measured(1.0)
    assert run_gate(seed=7) == 0
    assert [spec.study.seed for spec in started] == [7, 8, 9]


def test_studies_that_ask_the_same_question_are_no_tries_of_each_other(folder, measured, capsys):
    for scale, name in enumerate(NAMES, start=1):
        text = f'[study]\nquestion = "Is it slower?"\n[load]\nworkload = "select-only"\nscale = {scale}\n'
        Path(f"ci/{name}.toml").write_text(text)
    started = measured(1.0)
    assert run_gate(json=True) == 0
    assert said(capsys)["gate"]["try"] == 1
    assert [spec.study.question for spec in started] == [f"{name}: Is it slower: jit=on or jit=off?" for name in NAMES]


WRONG = {
    "none": ("[gate]\nstudies = []\n", "gate.studies: it has 0 items and must have at least 1 item"),
    "no list": ("[gate]\nstudies = 3\n", "gate.studies must be a list"),
    "absent": (
        '[gate]\nstudies = ["select.toml", "absent.toml"]\n',
        "'absent.toml', but there is no file ci/absent.toml",
    ),
    "twice": ('[gate]\nstudies = ["select.toml", "select.toml"]\n', "lists select.toml twice; leave one out"),
    "twice by two names": (
        '[gate]\nstudies = ["select.toml", "./select.toml"]\n',
        "lists select.toml and ./select.toml, which are one file, twice; leave one out",
    ),
    "itself": ('[gate]\nstudies = ["select.toml", "gate.toml"]\n', "'gate.toml', which is itself a list of studies"),
    "another section": (
        '[gate]\nstudies = ["select.toml"]\n[load]\nscale = 3\n',
        r"has no other section; move \[load\] into the study files",
    ),
    "another key": ('[gate]\nstudy = "select.toml"\n', r"unknown key 'study' in \[gate\]; did you mean 'studies'\?"),
    "a directory": ('[gate]\nstudies = ["select.toml", "."]\n', "ci is a directory without a study.toml"),
    "no study": ('[gate]\nstudies = ["select.toml", "@absent"]\n', "no bundled study is called @absent"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_list_that_cannot_be_run_is_refused_in_one_sentence(folder, measured, case):
    text, words = WRONG[case]
    Path("ci/gate.toml").write_text(text)
    started = measured(1.0)
    with pytest.raises(StudyError, match=words) as refused:
        run_gate()
    assert "\n" not in str(refused.value)
    assert cases() == {"head against base": "error"}
    assert started == []


def test_studies_whose_arms_are_not_the_same_are_refused(folder, measured):
    Path("ci/select.toml").write_text('[load]\nworkload = "select-only"\n[arms.old]\npostgres = "17"\n')
    measured(1.0)
    with pytest.raises(
        StudyError, match=r"'old' is an arm of ci/select.toml, but not of ci/orders.toml; a gate compar"
    ):
        run_gate("old", "jit=off")
    for name in ("orders", "join"):
        Path(f"ci/{name}.toml").write_text('[load]\nworkload = "select-only"\n[arms.old]\npostgres = "16"\n')
    with pytest.raises(
        StudyError, match=r"the arm 'old' of ci/select.toml is not that of ci/orders.toml; .* \[arms.old\] th"
    ):
        run_gate("old", "jit=off")


def test_studies_of_one_seed_are_refused(folder, measured):
    for name in NAMES:
        Path(f"ci/{name}.toml").write_text('[study]\nseed = 3\n[load]\nworkload = "select-only"\n')
    measured(1.0)
    with pytest.raises(StudyError, match=r"select and orders have the same seed \(\[study\] seed = 3\)"):
        run_gate()


def test_a_list_of_studies_is_not_a_study_to_run(folder):
    with pytest.raises(
        StudyError, match=r"the section \[gate\] lists the studies of a gate, which only `pgtrial gate --study` runs"
    ):
        read_study("ci/gate.toml")


# ---- with real servers and the real engine


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200", "PGTRIAL_ENGINE": str(require_engine())}
    return lambda *arguments, cwd: commands.run([*map(str, arguments)], Path(cwd), environment)


DATA = (
    "CREATE TABLE codes (n int PRIMARY KEY, code text);\n"
    "INSERT INTO codes SELECT i, repeat('x', 200) FROM generate_series(1, 20000) AS i;\n"
)
MEASURED = """
[load]
workload = "{script}"
data     = "codes.sql"
clients  = 1
warmup   = "0s"
duration = "1s"
[server]
postgres = "18"
[verdict]
margin   = "50%"
"""
"""A study whose trials take a second. Its margin is so wide that no noise of this machine matters."""


@pytest.fixture
def real(tmp_path):
    """A folder with two studies and a list of them. HEAD finds its rows without an index, so that it is much slower in
    the second study; the first one looks for no rows.
    """
    (tmp_path / "codes.sql").write_text(DATA)
    (tmp_path / "ping.sql").write_text("\\sleep 2 ms\nSELECT 1;\n")
    (tmp_path / "look-up.sql").write_text("\\set n random(1, 20000)\nSELECT code FROM codes WHERE n = :n;\n")
    for name in ("ping", "look-up"):
        (tmp_path / f"{name}.toml").write_text(MEASURED.format(script=f"{name}.sql"))
    (tmp_path / "gate.toml").write_text('[gate]\nstudies = ["ping.toml", "look-up.toml"]\n')
    return tmp_path


PAIR = ("base=enable_indexscan=on", "head=enable_indexscan=off,enable_bitmapscan=off")
NAMED = ("--study", "gate.toml", "--budget", "2min", "--summary", "gate.md", "--junit", "gate.xml")


@pytest.mark.server
def test_a_gate_measures_its_studies_is_stopped_and_goes_on(pgtrial, real, workspace):
    environment = {**os.environ, "PGTRIAL_ENGINE": str(require_engine())}
    command = [PGTRIAL, "gate", *NAMED, "--bundle", "gate.tar.xz", "--", *PAIR]
    with subprocess.Popen(command, cwd=real, env=environment, stderr=subprocess.PIPE, text=True) as lab:
        while not list(real.glob("results/gate-*/2-look-up/trials/[0-9]*")):
            assert lab.poll() is None, lab.communicate()
            time.sleep(0.05)
        lab.send_signal(signal.SIGTERM)
        _, err = lab.communicate()
    assert lab.returncode == 128 + signal.SIGTERM, err
    assert "study 1 of 2: ping, 1min for its blocks" in err
    assert "go on with: pgtrial gate" in err
    (gate_directory,) = (real / "results").iterdir()
    first = sorted(gate_directory.glob("1-ping/trials/[0-9]*"))
    done = pgtrial("gate", *NAMED, "--bundle", "gate.tar.xz", "--json", "--", *PAIR, cwd=real)
    assert done.returncode == 1, done.stderr
    assert f"going on with the gate in results/{gate_directory.name}" in done.stderr
    assert sorted(gate_directory.glob("1-ping/trials/[0-9]*")) == first, "the first study is not measured again"
    result = json.loads(done.stdout)
    assert {name: study["gate"]["status"] for name, study in result["studies"].items()} == {"ping": 0, "look-up": 1}
    assert result["gate"]["outcome"].startswith("fail: 1 of 2 studies fails: look-up (head takes ")
    plans = [json.loads((gate_directory / name / "plan.json").read_text()) for name in ("1-ping", "2-look-up")]
    assert [plan["studies"] for plan in plans] == [2, 2]
    assert plans[0]["seed"] != plans[1]["seed"]
    budgets = [StudyDirectory.open(gate_directory / name).spec.verdict.budget for name in ("1-ping", "2-look-up")]
    ping = StudyDirectory.open(gate_directory / "1-ping")
    assert budgets == [60, pytest.approx(max(60, 120 - time_spent(ping.plan, ping.trials())))]
    assert property_in(str(real / "gate.xml"), "outcome") == "fail"
    assert pgtrial("verdict", f"results/{gate_directory.name}/2-look-up", cwd=real).returncode == 1
    done = pgtrial("gate", *NAMED, "--bundle", "gate.tar.xz", "--", *PAIR, cwd=real)
    assert (done.returncode, "nothing was measured again" in done.stdout) == (1, True)
