"""An arm of every build becomes one arm for each server that the machine has, before anything is frozen."""

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.variants import Build, expanded
from pgtrial.store.study_file import build_study, read_study

BUILDS = [
    Build("18.6", "/wheel/18/bin", "wheel"),
    Build("18.6", "/usr/lib/postgresql/18/bin", "installed"),
    Build("18.6", "/usr/local/pgsql/bin", "installed"),
    Build("9.6.24", "/opt/9.6/bin", "PATH"),
    Build("15.20", "/usr/lib/postgresql/15/bin", "installed"),
]


def found():
    return BUILDS


def test_every_build_is_an_arm_the_oldest_first_with_the_other_keys_of_its_table():
    data = expanded({"arms": {"builds": {"postgres": "every", "settings": {"jit": "off"}}}}, found, "test")
    assert list(data["arms"]) == [
        "9.6.24 PATH",
        "15.20 installed",
        "18.6 wheel",
        "18.6 installed",
        "18.6 installed (2)",
    ]
    assert {arm["settings"]["jit"] for arm in data["arms"].values()} == {"off"}


def test_a_build_is_named_by_its_version_or_by_its_directory_where_the_version_does_not_tell():
    data = expanded({"arms": {"builds": {"postgres": "every"}}}, found, "test")
    assert [arm["postgres"] for arm in data["arms"].values()] == [
        "9.6.24",
        "15.20",
        "/wheel/18/bin",
        "/usr/lib/postgresql/18/bin",
        "/usr/local/pgsql/bin",
    ]


def test_other_arms_keep_their_place_and_several_families_of_builds_keep_their_names():
    arms = {
        "mine": {"postgres": "/opt/master/bin"},
        "plain": {"postgres": "every"},
        "tuned": {"postgres": "every", "settings": {"jit": "off"}},
    }
    data = expanded({"arms": arms}, lambda: BUILDS[3:], "test")
    assert list(data["arms"]) == [
        "mine",
        "plain 9.6.24 PATH",
        "plain 15.20 installed",
        "tuned 9.6.24 PATH",
        "tuned 15.20 installed",
    ]


def test_servers_are_looked_for_only_where_an_arm_stands_for_them():
    def refuse():
        raise AssertionError("nobody asked")

    data = {"arms": {"a": {"postgres": "18"}, "b": {}}}
    assert expanded(data, refuse, "test") == data


@pytest.mark.parametrize(("builds", "there"), [([], "there is none"), (BUILDS[:1], "there is only one, 18.6")])
def test_fewer_than_two_builds_are_refused_with_the_way_to_more(builds, there):
    with pytest.raises(StudyError, match=there) as refused:
        expanded({"arms": {"builds": {"postgres": "every"}}}, lambda: builds, "s.toml")
    assert "s.toml: [arms.builds]" in str(refused.value)
    assert "pip install 'pgtrial[server,pg16,pg17]'" in str(refused.value)


def test_the_frozen_study_names_the_builds_one_by_one(tmp_path):
    file = tmp_path / "builds.toml"
    file.write_text("[arms.builds]\npostgres = 'every'\n")
    spec = read_study(file, builds=found)
    assert len(spec.arms) == len(BUILDS)
    assert "every" not in freeze(spec)
    assert thaw(freeze(spec)) == spec


@pytest.mark.parametrize("data", [{"server": {"postgres": "every"}, "arms": {"a": {}, "b": {}}}, {"arms": 3}])
def test_where_no_arm_can_be_written_out_the_study_is_refused(data):
    with pytest.raises(StudyError, match=r"\[server\] postgres = \"every\" belongs in an arm|at least two arms"):
        build_study(expanded(data, found, "test"), "test")
