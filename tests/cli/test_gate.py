"""`pgtrial gate` from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pgtrial.cli import gate
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.store.bundle import write_bundle
from pgtrial.store.directory import StudyDirectory
from tests.cli.gates import of_measured_studies, outcome_in, property_in
from tests.conftest import require_engine
from tests.report.conftest import write_study
from tests.repositories import Repository
from tests.verdict.studies import make_plan, noisy, run

# ---- without a server


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    Path("s.toml").write_text('[load]\nworkload = "select-only"\n[arms]\nold = { postgres = "17" }\nnew = {}\n')
    return tmp_path


@pytest.fixture
def measured(monkeypatch):
    """Returns a function `measure(ratio, sd)`. After a call, each study that a gate starts gets made trials of this
    ratio.
    """
    return of_measured_studies(monkeypatch)


FILES = {
    "summary_file": Path("gate.md"),
    "junit_file": Path("gate.xml"),
    "bundle": Path("gate.tar.xz"),
}


def run_gate(*pair: str, **options) -> int:
    return gate.gate_command(*pair, **{"study": "s.toml", **FILES, **options})


def test_arms_are_named_as_in_compare_or_as_in_the_study(folder, measured):
    started = measured(1.0)
    run_gate("old", "jit=off")
    run_gate("a=postgres=17", "default", results=Path("other"), budget="3min", base_twice=True)
    first, second = started
    assert {name: arm.postgres for name, arm in first.arms.items()} == {"old": "17", "jit=off": None}
    assert first.arms["jit=off"].settings == {"jit": "off"}
    assert (first.verdict.budget, first.verdict.blocks) == (3600.0, None)
    assert first.study.question == "s: old or jit=off?"
    assert list(second.arms) == ["a", "default", "a again"]
    assert second.arms["a again"] == second.arms["a"]
    assert (second.verdict.budget, second.study.question) == (180.0, "s: a or default?")


def test_all_claims_share_one_error_where_a_single_query_can_fail_the_gate(folder, measured):
    Path("suite.toml").write_text('[load]\nworkload = "suite:joins"\n')
    started = measured(1.0)
    run_gate("old=work_mem=4MB", "new=work_mem=8MB", study="suite.toml")
    run_gate("old=work_mem=4MB", "new=work_mem=8MB", results=Path("other"))
    assert [spec.verdict.error for spec in started] == ["all", "primary"]


def test_sources_are_relative_to_the_current_directory_and_a_commit_is_not_compared_with_itself(folder, measured):
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@x"]
    for words in (
        ["init", "-q"],
        ["add", "s.toml"],
        ["commit", "-qm", "one"],
        ["commit", "-qm", "two", "--allow-empty"],
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
    Path("ci").mkdir()
    shutil.copy("s.toml", "ci/s.toml")
    started = measured(1.0)
    assert run_gate("postgres=git:.@HEAD~1", "postgres=git:.@HEAD", study="ci/s.toml") == 0
    assert {arm.postgres.partition("@")[0] for arm in started[0].arms.values()} == {f"git:{folder}"}
    assert run_gate("a=postgres=git:.@HEAD", "b=postgres=git:.@HEAD~0", study="ci/s.toml", results=Path("other")) == 2
    assert "a and b are identical, so that nothing was compared" in Path("gate.md").read_text()


def test_a_gate_of_one_set_up_finds_its_commits_and_says_which(folder, measured, capsys):
    repository = Repository(folder / "repository")
    base, head = (repository.commit(subject, {"a": subject}) for subject in ("one", "two"))
    started = measured(1.0)
    assert run_gate("postgres=git:repository,work_mem=64MB") == 0
    arms = started[0].arms
    where = f"git:{folder}/repository"
    assert {name: arm.postgres for name, arm in arms.items()} == {"base": f"{where}@{base}", "head": f"{where}@{head}"}
    assert {arm.settings["work_mem"] for arm in arms.values()} == {"64MB"}
    assert f"base is {base[:10]}, the commit before HEAD; head is {head[:10]}" in capsys.readouterr().err


def test_a_gate_of_one_set_up_without_a_repository_leaves_no_pass_behind(folder, measured):
    measured(1.0)
    with pytest.raises(
        StudyError, match="a gate needs two set-ups to compare, and 'work_mem=4MB' is only one; name BASE and HEAD"
    ):
        run_gate("work_mem=4MB")
    assert outcome_in("gate.xml") == "error"
    assert r"a gate needs two set-ups to compare, and 'work\_mem=4MB' is only one" in Path("gate.md").read_text()


def test_settings_of_one_value_are_not_compared(folder, measured):
    measured(1.0)
    assert run_gate("work_mem=4MB", "work_mem=4096kB") == 2
    assert "equal in effect" in Path("gate.md").read_text()


def test_a_gate_writes_its_files_and_has_the_status(folder, measured, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "steps.md")
    Path("steps.md").write_text("before\n")
    measured(0.94)
    assert run_gate("jit=on", "jit=off", json=True) == 1
    result = json.loads(capsys.readouterr().out)
    of_gate = result.pop("gate")
    assert (of_gate["status"], of_gate["try"], of_gate["earlier"]) == (1, 1, [])
    assert result == json.loads(Path("results/s/verdict.json").read_text())
    text = Path("gate.md").read_text()
    assert text.startswith("### pgtrial gate: fail\n\n**fail: jit=off is 5.99% slower than jit=on.**")
    assert Path("steps.md").read_text() == f"before\n{text}\n"
    assert outcome_in("gate.xml") == "failure"
    assert subprocess.run(["tar", "-tf", "gate.tar.xz"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("measurement", "options", "expected"),
    [
        ((1.0,), {}, (0, None)),
        ((1.06,), {"fail_on": "not-equivalent"}, (1, "failure")),
        ((0.985, 0.03), {}, (2, "error")),
        ((0.985, 0.03), {"accept_undecided": True}, (0, None)),
    ],
)
def test_the_rules_of_a_gate_are_options(folder, measured, measurement, options, expected):
    measured(*measurement)
    assert (run_gate("jit=on", "jit=off", **options), outcome_in("gate.xml")) == expected


def test_a_gate_that_is_stopped_leaves_no_pass_behind(folder, measured):
    measured(1.0)
    assert run_gate("jit=on", "jit=off") == 0
    measured(None)
    assert run_gate("jit=on", "jit=off", new=True) == 143
    assert outcome_in("gate.xml") == "error"
    assert "pgtrial gate: error" in Path("gate.md").read_text()
    assert not Path("gate.tar.xz").exists()


@pytest.mark.parametrize(
    ("options", "one_sided"), [({}, True), ({"fail_on": "not-equivalent"}, False), ({"base_twice": True}, False)]
)
def test_a_gate_that_fails_on_worse_alone_asks_for_one_side(folder, measured, options, one_sided):
    started = measured(1.0)
    run_gate("jit=on", "jit=off", **options)
    assert (started[0].verdict.one_sided, started[0].verdict.final) == (one_sided, True)


def test_a_gate_counts_instructions_if_it_is_asked_to(folder, measured):
    started = measured(1.0)
    run_gate("jit=on", "jit=off")
    run_gate("jit=on", "jit=off", instructions=True, new=True)
    assert [spec.load.instructions for spec in started] == [False, True]
    with pytest.raises(StudyError, match=r"pgtrial does not start the server of \[arms.b\] on this machine"):
        run_gate("jit=on", "b=host=db1", instructions=True)


@pytest.mark.parametrize("option", FILES)
def test_a_file_that_no_gate_has_written_stays(folder, measured, option):
    """A gate overwrites neither its study file nor a JUnit file or a bundle that no gate has written."""
    measured(1.0)
    run_gate("jit=on", "jit=off")
    Path("gate.xml").unlink()
    Path("notes.xml").write_text("<notes/>")
    study = StudyDirectory.open(Path("results/s"))
    (study.path / "gate.json").unlink()
    write_bundle(study, Path("mine.tar.xz"), everything=False)
    for name in ("s.toml", "notes.xml", "mine.tar.xz"):
        before = Path(name).read_bytes()
        with pytest.raises(
            StudyError,
            match=f"{name}: pgtrial does not replace the existing file, because an earlier run of this command did not "
            "write it",
        ):
            run_gate("jit=on", "jit=off", **{option: Path(name)})
        assert Path(name).read_bytes() == before
        assert Path("gate.md").exists(), "nothing is removed where something is refused"


def test_a_step_summary_that_cannot_be_written_costs_no_result(folder, measured, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "absent/steps.md")
    measured(1.0)
    assert run_gate("jit=on", "jit=off") == 0
    assert (
        "the summary could not be appended to the file of GITHUB_STEP_SUMMARY=absent/steps.md: No such"
        in capsys.readouterr().err
    )


def told_of_tries(capsys) -> tuple[int, str, int, list[int]]:
    """Returns what the JSON of the last gate says of its tries: its status, whether it was measured now, the number of
    the try, and the statuses of earlier tries. The JUnit file and the summary must name the same try.
    """
    of_gate = json.loads(capsys.readouterr().out)["gate"]
    assert property_in("gate.xml", "try") == str(of_gate["try"])
    told = f"This is try {of_gate['try']} of a gate on the same set-ups" in Path("gate.md").read_text()
    assert told == (of_gate["try"] > 1)
    statuses = [gate["status"] for gate in of_gate["earlier"]]
    return of_gate["status"], of_gate["measured"], of_gate["try"], statuses


def test_a_gate_that_failed_and_is_started_again_repeats_its_verdict(folder, measured, capsys):
    started = measured(0.94)
    assert run_gate("jit=on", "jit=off") == 1
    measured(1.0)
    capsys.readouterr()
    assert run_gate("jit=on", "jit=off", json=True) == 1
    assert len(started) == 1, "nothing is measured again"
    assert told_of_tries(capsys) == (1, "2026-11-20T14:01:00+00:00", 1, [])
    assert "is the result of 2026-11-20 14:01 UTC on the same set-ups, which stands" in Path("gate.md").read_text()
    assert "which stands" in Path("gate.xml").read_text()
    assert run_gate("jit=on", "jit=off", new=True, json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 2, [1])
    told = "This is try 2 of a gate on the same set-ups. The earlier tries ended with: fail. Each try that measures"
    assert told in Path("gate.md").read_text()
    assert run_gate("jit=on", "jit=off") == 1, "the first verdict stands"


def test_a_gate_that_was_stopped_and_is_not_gone_on_with_is_a_try(folder, measured, capsys):
    started = measured(1.0)
    assert run_gate("jit=on", "jit=off") == 0
    plan = make_plan(tuple(started[0].arms), blocks=12)
    for number, blocks in ((1, 3), (2, 0)):
        stopped = plan.model_copy(update={"created": f"2026-11-19T0{number}:00:00+00:00"})
        write_study(
            Path("results") / f"stopped-{number}",
            stopped,
            run(stopped, noisy({}), upto=2 * blocks),
            Audit(findings=[]),
            "",
            spec=started[0],
        )
    capsys.readouterr()
    assert run_gate("jit=on", "jit=off", new=True, json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 3, [3, 0]), "one had measured three blocks, the other none"
    told = "try 3 of a gate on the same set-ups. The earlier tries ended with: stopped, pass."
    assert told in Path("gate.md").read_text()


def test_the_budget_of_a_gate_is_that_of_its_study_unless_the_command_names_one(folder, measured):
    started = measured(1.0)
    run_gate("jit=on", "jit=off")
    Path("s.toml").write_text(Path("s.toml").read_text() + '[verdict]\nbudget = "3min"\n')
    run_gate("jit=on", "jit=off")
    run_gate("jit=on", "jit=off", budget="2min")
    assert [spec.verdict.budget for spec in started] == [3600, 180, 120]


def test_a_number_of_blocks_in_the_study_of_a_gate_is_not_ignored_in_silence(folder, measured, capsys):
    measured(1.0)
    Path("s.toml").write_text('[load]\nworkload = "select-only"\n[verdict]\nblocks = 6\n[arms]\nold = {}\n')
    run_gate("old", "jit=off")
    assert "[verdict] blocks of the study is not used" in capsys.readouterr().err


def test_the_bundle_of_the_first_run_brings_its_verdict_to_another_machine(folder, measured, capsys):
    started = measured(0.94)
    assert run_gate("jit=on", "jit=off") == 1
    shutil.rmtree("results")
    capsys.readouterr()
    assert run_gate("jit=on", "jit=off", json=True) == 1
    assert told_of_tries(capsys) == (1, "2026-11-20T14:01:00+00:00", 1, [])
    assert len(started) == 1
    assert run_gate("jit=on", "jit=off", results=Path("other"), json=True) == 1
    assert (told_of_tries(capsys)[2], len(started)) == (1, 1)
    measured(1.0)
    assert run_gate("jit=on", "jit=off", new=True, json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 2, [1])
    shutil.rmtree("results")
    assert run_gate("jit=on", "jit=off", new=True, json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 3, [1, 0]), "a bundle knows the tries before its own"
    assert run_gate("jit=on", "seq_page_cost=2", json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 1, []), "other set-ups are another gate"


def test_a_bundle_without_the_values_that_may_be_secrets_is_a_try_and_no_verdict(folder, measured, capsys):
    """The marks that replace the secret values do not show whether two studies had the same values."""
    started = measured(0.94)
    assert run_gate("a=my.key=one", "b=my.key=two") == 1
    shutil.rmtree("results")
    capsys.readouterr()
    measured(1.0)
    assert run_gate("a=my.key=other", "b=my.key=two", json=True) == 0
    assert len(started) == 2
    assert told_of_tries(capsys) == (0, "now", 2, [1])


def test_a_gate_without_a_verdict_is_measured_again_and_counted(folder, measured, capsys):
    started = measured(0.985, 0.03)
    assert run_gate("jit=on", "jit=off") == 2
    measured(0.94)
    capsys.readouterr()
    assert run_gate("jit=on", "jit=off", json=True) == 1
    assert told_of_tries(capsys) == (1, "now", 2, [2])
    assert "The earlier tries ended with: no verdict." in Path("gate.md").read_text()
    assert len(started) == 2


def test_the_directory_of_an_ended_gate_is_no_second_try(folder, measured, capsys):
    started = measured(0.985, 0.03)
    assert run_gate("jit=on", "jit=off", results=Path("mine")) == 2
    capsys.readouterr()
    assert run_gate("jit=on", "jit=off", results=Path("mine"), json=True) == 2
    assert told_of_tries(capsys) == (2, "2026-11-20T14:01:00+00:00", 1, [])
    assert len(started) == 1


def test_an_attempt_of_github_is_counted_although_the_attempts_before_left_nothing(
    folder, measured, capsys, monkeypatch
):
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    measured(1.0)
    assert run_gate("jit=on", "jit=off", json=True) == 0
    assert told_of_tries(capsys) == (0, "now", 3, [])
    told = "try 3 of a gate on the same set-ups. 2 earlier attempts of this job left no result here."
    assert told in Path("gate.md").read_text()


@pytest.mark.parametrize("bundle", [b"", b"\xfd7zXZ\0 cut short"])
def test_a_damaged_bundle_of_an_earlier_gate_is_no_earlier_gate(folder, measured, bundle):
    measured(1.0)
    Path("gate.tar.xz").write_bytes(bundle)
    if bundle:
        with pytest.raises(
            StudyError,
            match="does not replace the existing file, because an earlier run of this command did not write it",
        ):
            run_gate("jit=on", "jit=off")
    else:
        assert run_gate("jit=on", "jit=off") == 0


# ---- with real servers and the real engine


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200", "PGTRIAL_ENGINE": str(require_engine())}
    return lambda *arguments, cwd: commands.run([*map(str, arguments)], Path(cwd), environment)


WRONG = {
    "absent.toml": (["jit=on", "jit=off", "--study", "absent.toml"], "there is no study file absent.toml"),
    "setting": (["jit=on", "jitt=off"], "did you mean jit"),
    "setup": (["jit=on", "fast"], "'fast' is not a set-up"),
    "budget": (["jit=on", "jit=off", "--budget", "soon"], "--budget: 'soon'"),
    "no time": (["jit=on", "jit=off", "--budget", "0"], "--budget 0 must be longer than 0"),
    "password": (["host=db", "postgresql://me:hunter2@db/%zz"], "is not a connection string"),
}


@pytest.mark.server
@pytest.mark.parametrize("case", WRONG)
def test_an_error_is_in_the_files_too(pgtrial, tmp_path, case):
    (tmp_path / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    arguments, said = WRONG[case]
    arguments = arguments if "--study" in arguments else [*arguments, "--study", "s.toml"]
    files = ["--summary", "gate.md", "--junit", "gate.xml", "--bundle", "gate.tar.xz"]
    done = pgtrial("gate", *arguments, *files, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert said in done.stderr
    assert outcome_in(tmp_path / "gate.xml") == "error"
    written = "".join(path.read_text() for path in (tmp_path / "gate.md", tmp_path / "gate.xml"))
    assert "pgtrial gate: error" in written
    assert "hunter2" not in written + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gate.md", "gate.xml", "s.toml"]


@pytest.mark.server
def test_files_are_tried_before_the_load(pgtrial, tmp_path):
    (tmp_path / "s.toml").write_text('[load]\nworkload = "select-only"\n')
    for option in ("--summary", "--junit", "--bundle"):
        done = pgtrial("gate", "jit=on", "jit=off", "--study", "s.toml", option, "absent/f", cwd=tmp_path)
        assert done.returncode == 3
        assert f"{option} absent/f cannot be written; name a file in an existing directory" in done.stderr


@pytest.mark.server
def test_a_gate_whose_arms_do_not_have_the_same_rows_passes_nothing(pgtrial, tmp_path, workspace):
    """Two set-ups that load the data apart, and drew other rows: not even --accept-undecided lets that pass."""
    (tmp_path / "codes.sql").write_text(
        "CREATE TABLE codes (n int PRIMARY KEY, code uuid);\n"
        "INSERT INTO codes SELECT i, gen_random_uuid() FROM generate_series(1, 500) AS i;\n"
    )
    # a client that mostly sleeps is no limit, so that the rows are the only reason
    (tmp_path / "read.sql").write_text("\\sleep 5 ms\nSELECT 1 FROM codes WHERE n = 7;\n")
    (tmp_path / "s.toml").write_text(
        '[load]\nworkload = "read.sql"\ndata = "codes.sql"\nclients = 1\nwarmup = "0s"\nduration = "1s"\n'
        '[server]\npostgres = "18"\n[arms.base]\n[arms.head]\ninitdb = ["--no-data-checksums"]\n'
    )
    files = ["--summary", "gate.md", "--junit", "gate.xml", "--bundle", "gate.tar.xz"]
    options = ["--study", "s.toml", "--budget", "45s", "--accept-undecided", *files]
    done = pgtrial("gate", "base", "head", *options, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    reason = "The arms do not have the same rows: the table public.codes differs in the column code"
    for text in (done.stdout, (tmp_path / "gate.xml").read_text()):
        assert reason in " ".join(text.split()), "in lines that may be broken anywhere"
    assert (tmp_path / "gate.md").read_text().startswith("### pgtrial gate: no verdict\n")
    assert outcome_in(tmp_path / "gate.xml") == "error"
