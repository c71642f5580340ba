"""Running a study again goes on with the unfinished one that is the same, and with no other."""

from pathlib import Path

import pytest

from pgtrial.cli import conduct
from pgtrial.conduct import study_directory
from pgtrial.conduct.progress import Preparing, StudyEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import ArmError, StoreError
from pgtrial.report.verdict import earlier_notes
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine
from tests.store.samples import completed_trial


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def spec(clients=8, **study):
    arms = {"a": {}, "b": {"settings": {"jit": "off"}}}
    data = {"study": {"name": "jit", **study}, "load": {"clients": clients}, "arms": arms, "verdict": {"blocks": 1}}
    return build_study(data, "test")


def complete(study):
    for planned in study.plan.trials:
        study.begin_trial(planned)
        study.write_trials([completed_trial(study, planned)])


def test_the_same_unfinished_study_is_taken_up():
    first, there = study_directory.find_or_create(spec(), None, anew=False)
    assert not there
    again, there = study_directory.find_or_create(spec(), None, anew=False)
    assert there
    assert again.path == first.path
    assert again.plan == first.plan


def test_a_changed_study_is_another_one():
    first, _ = study_directory.find_or_create(spec(), None, anew=False)
    for changed in (spec(clients=9), spec(seed=5)):
        other, there = study_directory.find_or_create(changed, None, anew=False)
        assert not there
        assert other.path != first.path


def test_a_study_that_has_ended_without_its_report_is_taken_up():
    first, _ = study_directory.find_or_create(spec(), None, anew=False)
    complete(first)
    again, there = study_directory.find_or_create(spec(), None, anew=False)
    assert there
    assert again.path == first.path


def test_what_a_lab_left_that_was_killed_after_its_last_trial_is_removed_all_the_same(fresh_state, monkeypatch):
    require_engine()
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    study, _ = study_directory.find_or_create(spec(), None, anew=False)
    complete(study)
    left = fresh_state / "runs" / "1234-killed"
    left.mkdir(parents=True)
    heard = []
    run_study(study, heard.append)
    assert not left.exists()
    assert any(isinstance(event, Preparing) and "1234-killed" in event.text for event in heard)
    assert isinstance(heard[-1], StudyEnds)


def test_a_finished_study_is_run_anew():
    first, _ = study_directory.find_or_create(spec(), None, anew=False)
    complete(first)
    first.write_file("report.html", "<p>")
    again, there = study_directory.find_or_create(spec(), None, anew=False)
    assert not there
    assert again.path != first.path


def test_a_study_names_the_earlier_ones_of_its_question_beside_it(tmp_path):
    nothing_run, _ = study_directory.find_or_create(spec(question="Does jit pay?"), None, anew=True)
    first, _ = study_directory.find_or_create(spec(), None, anew=True)
    complete(first)
    asked, _ = study_directory.find_or_create(spec(clients=9, question="Does jit pay?"), None, anew=True)
    complete(asked)
    others, _ = study_directory.find_or_create(
        spec(clients=9, name="other", question="Is 9 too many?"), None, anew=True
    )
    seeded, _ = study_directory.find_or_create(spec(seed=3, name="again"), Path("results/chosen"), anew=False)
    same_question, _ = study_directory.find_or_create(spec(question="Does jit pay?"), None, anew=True)
    assert [study.plan.earlier for study in (nothing_run, first, asked)] == [[], [], []]
    assert [each.directory for each in others.plan.earlier] == [asked.path.name]
    (earlier,) = seeded.plan.earlier
    assert (earlier.directory, earlier.blocks, earlier.planned) == (first.path.name, 1, 1)
    assert {each.directory for each in same_question.plan.earlier} == {first.path.name, asked.path.name}
    (note,) = earlier_notes(seeded.plan)
    assert note.startswith(
        f"This is try 2 of this question in its results directory; earlier: {first.path.name} (1 of 1 block)"
    )


def test_an_edited_script_of_an_arm_makes_another_question(tmp_path):
    def asked(new, name="jit"):
        (tmp_path / "old.sql").write_text("SELECT 1;\n")
        (tmp_path / "new.sql").write_text(new)
        arms = {arm: {"workload": f"{arm}.sql"} for arm in ("old", "new")}
        study = {"name": name, "question": "Is the new form faster?"}
        return build_study({"study": study, "arms": arms, "verdict": {"blocks": 1}}, "test", tmp_path)

    first = asked("SELECT 2;\n")
    assert study_directory.asks_the_same(first, asked("SELECT 2;\n", name="again"))
    assert not study_directory.asks_the_same(first, asked("SELECT 3;\n"))


def test_another_commit_makes_another_question():
    def asked(commit):
        arms = {"base": {"postgres": f"git:/pg@{'a' * 40}"}, "head": {"postgres": f"git:/pg@{commit * 40}"}}
        return build_study({"study": {"question": "base or head?"}, "arms": arms}, "test")

    assert study_directory.asks_the_same(asked("b"), asked("b"))
    assert not study_directory.asks_the_same(asked("b"), asked("c"))


def test_a_new_one_is_started_on_request():
    first, _ = study_directory.find_or_create(spec(), None, anew=False)
    other, there = study_directory.find_or_create(spec(), None, anew=True)
    assert not there
    assert other.path != first.path
    newest, there = study_directory.find_or_create(spec(), None, anew=False)
    assert there
    assert newest.path == other.path


def test_a_chosen_directory_is_used_and_taken_up_by_the_same_study_only(tmp_path):
    chosen = tmp_path / "deep" / "mine"
    first, there = study_directory.find_or_create(spec(), chosen, anew=False)
    assert not there
    assert first.path == chosen
    again, there = study_directory.find_or_create(spec(), chosen, anew=False)
    assert there
    assert again.plan == first.plan
    with pytest.raises(StoreError, match="has another study than the one to run"):
        study_directory.find_or_create(spec(clients=9), chosen, anew=False)


def test_the_studys_own_seed_is_used_and_otherwise_one_is_drawn():
    assert study_directory.plan_now(spec(seed=5)).seed == 5
    assert study_directory.plan_now(spec()).seed != study_directory.plan_now(spec()).seed


def test_a_password_does_not_keep_a_study_from_being_taken_up(tmp_path):
    arms = {"a": {"dsn": "host=one password=hunter2"}, "b": {"dsn": "host=two"}}
    given = build_study({"study": {"name": "p"}, "arms": arms, "verdict": {"blocks": 1}}, "test")
    first, _ = study_directory.find_or_create(given, None, anew=False)
    _, there = study_directory.find_or_create(given, None, anew=False)
    assert there
    assert StudyDirectory.open(first.path).spec.arms["a"].dsn == ["host=one"]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or "hunter2" not in file.read_text()


def test_a_study_that_has_to_stop_says_what_is_stored_and_how_to_go_on(monkeypatch):
    study, _ = study_directory.find_or_create(spec(), None, anew=False)

    def stop(study, listener, spec, more):
        raise ArmError("arms.a: cannot connect")

    monkeypatch.setattr(conduct, "run_study", stop)
    with pytest.raises(ArmError, match=r"^arms\.a: cannot connect$"):
        conduct.conduct(study, study.spec)
    first = study.plan.trials[0]
    study.begin_trial(first)
    study.write_trials([completed_trial(study, first)])
    expected = f"arms.a: cannot connect; 1 of 2 trials are stored; correct this error, and .* pgtrial run {study.path}$"
    with pytest.raises(ArmError, match=expected):
        conduct.conduct(study, study.spec)
