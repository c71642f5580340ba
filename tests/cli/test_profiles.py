"""The commands choose a profile, say which one where nobody did, and tell how long each takes."""

import json

import pytest

from pgtrial.cli import main

STUDY = """
[study]
question = "Which?"
[load]
scale = 100
[arms.a]
[arms.b]
settings = { jit = "off" }
[verdict]
blocks = 8
[profiles.small.load]
scale = 1
[profiles.large]
"""


@pytest.fixture
def outcome(tmp_path, monkeypatch, capsys):
    (tmp_path / "s.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def scales(out):
    return {point["scale"] for point in json.loads(out)["plan"]["load_points"]}


def test_without_a_profile_the_first_is_taken_and_one_line_says_so(outcome):
    status, out, err = outcome("plan", "s.toml", "--json")
    assert (status, scales(out)) == (0, {1})
    assert err == "pgtrial: profile small of s.toml; --profile large\n"


def test_the_profile_that_is_asked_for_is_taken_in_silence(outcome):
    status, out, err = outcome("plan", "s.toml", "--json", "--profile", "large")
    assert (status, scales(out), err) == (0, {100}, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "s.toml", "--profile", "larg"], "did you mean 'large'?"),
        (["plan", "@demo", "--profile", "quick"], "@demo has no profiles; leave --profile out"),
        (["facts", "--profile", "quick"], "--profile and --fleet apply only to a study; name a study"),
    ],
)
def test_a_profile_that_is_none_is_one_line_and_a_status(outcome, arguments, message):
    status, _, err = outcome(*arguments)
    assert status == 3
    assert err.startswith("pgtrial: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_study_that_goes_on_has_its_profile_already(outcome, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "study.toml").write_text("[arms.a]\n[arms.b]\n")
    status, _, err = outcome("run", "there", "--profile", "small")
    assert status == 3
    assert "the seed, profile and directory of the study in there are fixed" in err


def test_the_bundled_studies_are_listed_with_their_profiles_and_times(outcome, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = outcome("list")
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["full", "19d", "16h"] in rows
    assert ["day", "10h", "12min"] in rows
    assert any(row[:1] == ["@huge-pages"] and "quick" in row for row in rows)
