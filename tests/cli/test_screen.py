"""`pgtrial screen`: which study it makes of its options, and what it answers to mistakes."""

from __future__ import annotations

import pytest

from pgtrial.cli import compare, confirm, main, screen
from pgtrial.cli.compare import compare_command
from pgtrial.cli.run import run_command
from pgtrial.cli.screen import screen_command
from pgtrial.model.errors import StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.store.directory import StudyDirectory
from tests.report.conftest import write_study
from tests.verdict.screens import plan_of, screened, screening_study

pytestmark = pytest.mark.server


@pytest.fixture
def started(monkeypatch):
    """Returns the list of studies that commands would run."""
    specs = []
    for module in (compare, screen, confirm):
        monkeypatch.setattr(module, "start", lambda spec, *_, **__: specs.append(spec) or 0)
    return specs


def test_the_options_mean_what_they_mean_for_a_comparison(started):
    options = {
        "query": "select 1",
        "clients": "4",
        "budget": "20min",
        "rate": "500",
        "seed": 3,
        "server": ["fsync=off"],
    }
    screen_command(["jit=on,off", "work_mem=4MB,64MB"], metric="p99", **options)
    compare_command(["jit=on", "jit=off"], metrics="p99", **options)
    screen, comparison = started
    assert screen.factors == {"jit": ["on", "off"], "work_mem": ["4MB", "64MB"]}
    assert (screen.load, screen.verdict, screen.server) == (comparison.load, comparison.verdict, comparison.server)
    assert screen.study.question == "Which of jit and work_mem matter?"


WRONG = {
    "no levels": (["jit"], "'jit' is not a factor; write a setting with its two levels"),
    "one level": (["jit=on"], "the factor jit has 1 level"),
    "three levels": (["work_mem=1MB,4MB,64MB"], "the factor work_mem has 3 levels"),
    "a key": (["huge_pages=maybe,2MB"], "huge_pages must be 'off', '2MB' or '1GB'"),
    "a comma": (["search_path=a,b,c"], "if a level contains a comma, write search_path = "),
    "twice": (["jit=on,off", "jit=off,on"], "the factor jit is named twice"),
    "two points": (["jit=on,off", "--clients", "1,8"], "--clients"),
    "also shared": (["jit=on,off", "--server", "jit=on"], "jit is a factor, and server sets it as well"),
    "too short": (["jit=on,off", "--budget", "1s"], "--budget"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_one_sentence_in_the_words_of_the_command(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["screen", *arguments, "--workload", "select-only"])
    assert ended.value.code == 3
    printed = capsys.readouterr().err
    assert printed.startswith("pgtrial: error: ")
    assert said in printed
    assert "[load]" not in printed
    assert "drawn" not in printed


def stored(path, effects) -> StudyDirectory:
    """Writes a screening study that has ended."""
    spec = screening_study({"jit": ["on", "off"], "work_mem": ["4MB", "64MB"]}, blocks=24)
    plan = plan_of(spec)
    return write_study(path, plan, screened(plan, effects), Audit(findings=[]), spec.study.question, spec=spec)


def test_the_winning_set_up_is_confirmed_by_a_study_of_its_own(tmp_path, started, capsys):
    study = stored(tmp_path / "screen", {"jit": 0.2})
    assert confirm.confirm(study, study.spec) == 0
    assert "confirming jit=off against the first levels" in capsys.readouterr().err
    assert {arm: keys.settings["jit"] for arm, keys in started[0].arms.items()} == {"baseline": "on", "winner": "off"}
    assert started[0].factors == {}


def test_an_interrupted_confirmation_goes_on_beside_the_screening_study(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("pgtrial.cli.confirm.start", lambda spec, results, **known: calls.append((results, known)) or 0)
    study = stored(tmp_path / "screen", {"jit": 0.2})
    assert confirm.confirm(study, study.spec) == 0
    assert calls[0][0] == tmp_path / "screen-confirm"
    assert not calls[0][1].get("anew")
    monkeypatch.chdir(tmp_path)
    confirm.confirm(stored(tmp_path / "results" / "screen", {"jit": 0.2}), study.spec)
    assert calls[1][0] is None


def test_without_a_winner_nothing_is_confirmed(tmp_path, started, capsys):
    study = stored(tmp_path / "screen", {"jit": -0.2})
    assert confirm.confirm(study, study.spec) == 0
    assert "there is nothing to confirm" in capsys.readouterr().err
    assert started == []


def test_only_a_study_of_factors_can_be_confirmed(tmp_path):
    with pytest.raises(StudyError, match="--confirm needs the directory of a study that has screened factors"):
        run_command("@demo", confirm=True)
