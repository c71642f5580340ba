"""A load that sends the server no statement is refused: its speed would be the client's own."""

import re

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.errors import StudyError
from pgtrial.store.study_file import build_study
from tests.conduct.small import small_study
from tests.conftest import require_engine

ARMS = {"base": {}, "no jit": {"settings": {"jit": "off"}}}


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def planned(folder, scripts, load):
    for name, text in scripts.items():
        (folder / name).write_text(text)
    return plan_now(build_study({"load": {"scale": 1, **load}, "arms": ARMS}, "test", folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\\set a 1\n\\sleep 1 ms\n-- SELECT 1;\n", "[load] users.sql: there is no SQL statement"),
        ("\\setshell a echo 1\n", "[load] users.sql: there is no SQL statement"),
        ("", "[load] users.sql has no command; write a statement that ends in a semicolon"),
        ("-- SELECT 1;\n", "[load] users.sql has no command"),
    ],
)
def test_a_script_without_a_statement_is_refused_at_planning(tmp_path, text, words):
    with pytest.raises(StudyError, match=re.escape(words)):
        planned(tmp_path, {"users.sql": text}, {"workload": "users.sql"})


def test_a_pause_among_several_scripts_is_none(tmp_path):
    scripts = {"pause.sql": "\\sleep 1 ms\n", "reads.sql": "SELECT 1;\n"}
    assert planned(tmp_path, scripts, {"workload": ["pause.sql=1", "reads.sql=2"]})
    with pytest.raises(StudyError, match=re.escape("[load] pause.sql and wait.sql: there is no SQL statement")):
        planned(tmp_path, {**scripts, "wait.sql": "\\sleep 2 ms\n"}, {"workload": ["pause.sql=1", "wait.sql=1"]})


def test_a_script_without_a_statement_beside_a_job_is_refused(tmp_path):
    scripts = {"make.sql": "CREATE TABLE t (n int);\n", "beside.sql": "\\sleep 1 ms\n"}
    load = {"workload": "job:make.sql", "rate": 10, "job": {"beside": "beside.sql"}}
    with pytest.raises(StudyError, match=re.escape("[load] beside.sql: there is no SQL statement")):
        planned(tmp_path, scripts, load)


@pytest.mark.server
@pytest.mark.parametrize("interleave", ["off", "250ms"])
def test_statements_behind_a_condition_that_never_holds_are_found_after_the_first_trial(tmp_path, interleave):
    (tmp_path / "users.sql").write_text("\\set debug 0\n\\if :debug\nSELECT 1;\n\\endif\n\\sleep 1 ms\n")
    # long enough for far more transactions than the lab's own session makes
    load = {"workload": "users.sql", "interleave": interleave, "duration": "3s"}
    study = small_study(tmp_path / "s", folder=tmp_path, load=load)
    with pytest.raises(StudyError, match=r"sent no statement to the server, .*\\if branches that are not executed"):
        run_study(study, lambda event: None)
    assert study.trials() == []


@pytest.mark.server
def test_a_script_that_sends_a_statement_now_and_then_is_measured(tmp_path):
    script = "\\set n random(1, 3)\n\\if :n = 1\nSELECT 1;\n\\endif\n\\sleep 1 ms\n"
    (tmp_path / "users.sql").write_text(script)
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load={"workload": "users.sql"})
    run_study(study, lambda event: None)
    assert [trial.reason for trial in study.trials()] == [None, None]


@pytest.mark.server
def test_a_lua_script_that_sends_nothing_is_refused_after_its_first_trial(tmp_path):
    (tmp_path / "t.lua").write_text("function prepare() end\nfunction thread_init() end\nfunction event() end\n")
    study = small_study(tmp_path / "s", folder=tmp_path, load={"workload": "t.lua", "scale": 10, "warmup": "1s"})
    with pytest.raises(StudyError, match=r"t.lua: [\d,]+ transactions of .* sent no statement to the server"):
        run_study(study, lambda event: None)
