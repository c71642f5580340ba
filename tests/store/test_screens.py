"""Screening studies from the command line and from study files: what their factors may be, and how they are stored."""

from __future__ import annotations

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.store.screens import confirmation, parse_factors, screening
from pgtrial.store.study_file import build_study, read_study

JIT = {"jit": ["on", "off"]}


def test_factors_of_the_command_line_are_those_of_a_study_file():
    assert parse_factors(["jit=on,off", "shared_buffers = 128MB , 1GB"]) == {
        "jit": ["on", "off"],
        "shared_buffers": ["128MB", "1GB"],
    }
    spec = screening(["jit=on,off", "work_mem=4MB,64MB"], "test", None, 5, {"load": {"clients": 2}})
    assert spec == build_study(
        {
            "study": {"question": "Which of jit and work_mem matter?", "name": "screen", "seed": 5},
            "factors": {"jit": ["on", "off"], "work_mem": ["4MB", "64MB"]},
            "load": {"clients": 2},
        },
        "test",
    )
    assert {arm: keys.settings for arm, keys in spec.arms.items()} == {
        "drawn": {"jit": "on", "work_mem": "4MB"},
        "complement": {"jit": "off", "work_mem": "64MB"},
    }


@pytest.mark.parametrize("text", ["jit", "=on,off", "jit=", "on,off"])
def test_a_text_that_is_no_factor_is_answered_with_the_form(text):
    with pytest.raises(StudyError, match=r"is not a factor; write a setting with its two levels, such as jit=on,off"):
        parse_factors([text])


def test_a_factor_that_is_named_twice_is_refused():
    with pytest.raises(StudyError, match="the factor JIT is named twice; name it once"):
        parse_factors(["jit=on,off", "JIT=on,off"])
    with pytest.raises(StudyError, match="the factor jit is named 2 times"):
        build_study({"factors": {"jit": ["on", "off"], "JIT": ["on", "off"]}}, "test")


REFUSED = {
    "one level": ({"jit": ["on"]}, "the factor jit has 1 level, but a screening study compares two"),
    "no level": ({"jit": []}, "the factor jit has 0 levels"),
    "equal levels": ({"jit": ["on", "on"]}, "the factor jit has the level on twice"),
    "equal words": ({"jit": [True, "on"]}, "jit has two levels that mean the same: on and on"),
    "equal sizes": ({"work_mem": ["4MB", "4096kB"]}, "work_mem has two levels that mean the same: 4MB and 4096kB"),
    "equal times": ({"lock_timeout": ["1min", "60s"]}, "lock_timeout has two levels that mean the same"),
    "equal numbers": ({"random_page_cost": [4, "4.0"]}, "random_page_cost has two levels that mean the same"),
    "three levels": ({"work_mem": ["4MB", "8MB", "64MB"]}, "has 3 levels, .*; keep the two that are furthest apart"),
    "no list": ({"jit": "on"}, "the factor jit needs a list of two levels"),
    "nothing": ({}, "factors.* needs at least one factor"),
    "no table": (["jit"], "factors.* needs at least one factor"),
    "a query": ({"query": ["select 1", "select 2"]}, "query cannot be a factor; factors are settings of PostgreSQL"),
    "data": ({"data": ["a.sql", "b.sql"]}, "data cannot be a factor"),
    "a commit": ({"postgres": ["18", "git:.@HEAD"]}, "the levels of the factor postgres must be major versions"),
    "a secret": ({"primary_conninfo": ["host=a password=x", "host=b password=y"]}, "may be secrets"),
}


@pytest.mark.parametrize(("factors", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_a_factor_is_refused_with_its_reason(factors, said):
    with pytest.raises(StudyError, match=said) as error:
        build_study({"factors": factors}, "test")
    assert "password=x" not in str(error.value)


SECTIONS = {
    "arms": ({"arms": {"a": {}, "b": JIT}}, "exclude each other"),
    "points": ({"load": {"clients": [1, 8]}}, "at one load point, and the study has 2"),
    "metrics": ({"verdict": {"metrics": ["p99", "tps"]}}, "by one metric, and the study has p99, tps"),
    "shared": ({"server": {"settings": {"JIT": "on"}}}, "jit is a factor, and .* sets it as well"),
    "leaving": ({"verdict": {"drop_decided": True}}, "drop_decided is not for a study that screens factors"),
    "capacity": ({"load": {"capacity": {"p99": "20ms"}}}, "under a load of transactions or a job"),
    "a suite": ({"load": {"workload": "suite:joins"}}, "under a load of transactions or a job"),
    "deployments": ({"server": {"dsn": ["host=a", "host=b"]}}, "the study names 2 deployments"),
    "no turns": ({"server": {"dsn": "host=a"}, "load": {"interleave": "off"}}, "in sessions of the server, in turns"),
}


@pytest.mark.parametrize(("sections", "said"), SECTIONS.values(), ids=SECTIONS.keys())
def test_what_does_not_fit_to_factors_is_refused(sections, said):
    with pytest.raises(StudyError, match=said):
        build_study({"factors": JIT, **sections}, "test")


def test_a_setting_of_the_server_is_no_factor_on_a_server_of_somebody_else():
    with pytest.raises(StudyError, match="take settings that a session can set as factors"):
        build_study({"factors": {"shared_buffers": ["1GB", "2GB"]}, "server": {"dsn": "host=a"}}, "test")


def test_a_stored_study_has_its_factors_and_is_a_study_file_too(tmp_path):
    spec = build_study({"factors": {"jit": [True, False], "work_mem": ["4MB", "8MB"]}}, "test")
    assert spec.factors == {"jit": ["on", "off"], "work_mem": ["4MB", "8MB"]}
    text = freeze(spec)
    assert thaw(text) == spec
    (tmp_path / "again.toml").write_text(text)
    assert read_study(tmp_path / "again.toml").factors == spec.factors


HIDDEN = {
    "a program": (
        'postgres = ["17", "18"]',
        'postgres = ["/tmp/evil/bin", "/tmp/other/bin"]',
        "must be major versions",
    ),
    "a version": ('postgres = ["17", "18"]', 'postgres = ["17", "16"]', "must have the levels of its factors"),
    "a command": (
        'archive_timeout = ["30s", "60s"]',
        'archive_command = ["touch /tmp/evil", "true"]',
        "must have the levels of its factors",
    ),
    "a key": ('archive_timeout = ["30s", "60s"]', 'query = ["select 1", "select 2"]', "query cannot be a factor"),
}


@pytest.mark.parametrize(("written", "hidden", "said"), HIDDEN.values(), ids=HIDDEN.keys())
def test_a_stored_study_whose_factors_are_not_those_of_its_arms_is_damaged(written, hidden, said):
    """The arms are what a person reads who allows the study of somebody else to run (`effects_of`)."""
    spec = build_study({"factors": {"postgres": ["17", "18"], "archive_timeout": ["30s", "60s"]}}, "test")
    text = freeze(spec)
    assert thaw(text) == spec
    assert written in text
    with pytest.raises(ValueError, match=said):
        thaw(text.replace(written, hidden))


def test_the_program_of_a_job_is_a_further_key_of_the_arms_of_factors():
    spec = build_study({"factors": JIT, "server": {"command": "vacuumdb -a"}, "load": {"workload": "job:"}}, "test")
    assert [keys.command for keys in spec.arms.values()] == ["vacuumdb -a"] * 2
    assert thaw(freeze(spec)) == spec


def test_the_effects_of_a_screening_study_include_those_of_both_levels():
    spec = build_study({"factors": {"shared_preload_libraries": ["/tmp/one", "/tmp/two"]}}, "test")
    assert [effect.text.partition(": ")[2] for effect in effects_of(thaw(freeze(spec)))] == [
        "sets shared_preload_libraries = /tmp/one",
        "sets shared_preload_libraries = /tmp/two",
    ]


def test_a_mistake_is_told_with_its_line(tmp_path):
    (tmp_path / "screen.toml").write_text('[load]\nclients = 2\n\n[factors]\njit = ["on"]\n')
    with pytest.raises(StudyError, match=r"screen.toml: line 4: the factor jit has 1 level"):
        read_study(tmp_path / "screen.toml")


def test_messages_name_the_factors_and_not_the_arms_that_follow_from_them():
    with pytest.raises(StudyError, match=r"\[factors\] huge_pages must be 'off', '2MB' or '1GB'") as error:
        build_study({"factors": {"huge_pages": ["maybe", "2MB"]}}, "test")
    assert "drawn" not in str(error.value)


def test_studies_of_other_factors_have_other_questions():
    questions = [
        screening([*factors], "test", None, 5, {}).study.question
        for factors in (["jit=on,off"], ["fsync=on,off"], ["jit=on,off", "fsync=on,off", "work_mem=4MB,8MB"])
    ]
    assert questions == ["Does jit matter?", "Does fsync matter?", "Which of jit, fsync and work_mem matter?"]


def test_the_winning_set_up_is_compared_with_the_first_levels_under_the_same_load():
    spec = screening(["jit=on,off", "work_mem=4MB,64MB", "shared_buffers=1GB,2GB"], "test", None, 5, {})
    winner = confirmation(spec, {"jit": "off", "work_mem": "4MB"})
    assert {arm: keys.settings for arm, keys in winner.arms.items()} == {
        "baseline": {"jit": "on", "work_mem": "4MB", "shared_buffers": "1GB"},
        "winner": {"jit": "off", "work_mem": "4MB", "shared_buffers": "1GB"},
    }
    assert (winner.factors, winner.load, winner.study.seed) == ({}, spec.load, None)
    assert winner.study.question == "Is jit=off faster than the first levels?"
