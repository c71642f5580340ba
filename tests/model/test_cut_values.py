"""Values that may be secrets are cut from a study that is given to others, and come back by environment variables."""

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.cut_values import cut, filled, kept
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec

ARMS = {
    "a": {
        "settings": {"app.api_key": "k7", "archive_command": "curl -u me:pw", "work_mem": "64MB", "app.limit": 3},
        "setup_sql": ["SELECT 1", "CREATE SUBSCRIPTION s CONNECTION 'host=h password=s3cret' PUBLICATION p"],
    },
    "b": {"settings": {"primary_conninfo": "host=h password=p", "wal_compression": "lz4", "app.on": "off"}},
    "c": {"settings": {"app.api_key": "k7"}, "environment": {"API_TOKEN": "t0p", "LC_ALL": "C"}},
}
SPEC = StudySpec.model_validate({"arms": ARMS})
SECRETS = ("k7", "curl -u", "s3cret", "password=p", "t0p")


def test_values_that_may_be_secrets_have_marks_in_their_place_and_equal_ones_the_same():
    without, places = cut(SPEC)
    assert sorted(places.values()) == [
        ["arms.a.settings.app.api_key", "arms.c.settings.app.api_key"],
        ["arms.a.settings.archive_command"],
        ["arms.a.setup_sql"],
        ["arms.b.settings.primary_conninfo"],
        ["arms.c.environment.API_TOKEN"],
    ]
    text = freeze(without)
    assert not any(secret in text for secret in SECRETS)
    assert thaw(text) == without
    assert all(told in text for told in ("SELECT 1", "64MB", "lz4", 'LC_ALL = "C"'))


def test_the_values_come_back_by_environment_variables():
    without, places = cut(SPEC)
    values = {}
    for name, [place, *_] in places.items():
        _, arm, key = place.split(".", 2)
        group, _, setting = key.partition(".")
        of_arm = ARMS[arm][group]
        values[name] = of_arm[setting] if setting else of_arm[1]
    assert filled(thaw(freeze(without)), values) == SPEC
    assert filled(SPEC, {}) is SPEC


def test_a_study_with_marks_asks_for_what_is_missing():
    without, places = cut(SPEC)
    [name] = [name for name, where in places.items() if where == ["arms.c.environment.API_TOKEN"]]
    values = dict.fromkeys(places, "x")
    del values[name]
    with pytest.raises(StudyError, match=rf"set the environment variables {name} \(arms.c.environment.API_TOKEN\) to"):
        filled(without, values)


def test_a_study_of_a_bundle_keeps_its_marks_in_the_next_one():
    without, places = cut(SPEC)
    assert cut(without) == (without, places)


def test_options_of_a_dsn_are_cut_where_they_may_hold_a_secret():
    dsn = "host=h options='-c app.password=x -c work_mem=4MB'"
    spec = StudySpec.model_validate({"arms": {"a": {"dsn": dsn}, "b": {"dsn": "host=h options='-c jit=off'"}}})
    without, places = cut(spec)
    assert places == {"PGTRIAL_SECRET_1": ["arms.a.dsn options"]}
    assert "app.password" not in freeze(without)
    assert without.arms["b"] == spec.arms["b"]
    back = filled(without, {"PGTRIAL_SECRET_1": "-c app.password=x -c work_mem=4MB"})
    assert "app.password=x" in str(back.arms["a"].dsn)


def test_values_of_the_load_are_named_and_kept():
    load = {"workload": "pack:p", "pack": {"variables": {"api_token": "t0p", "rows": "5"}}}
    spec = StudySpec.model_validate({"load": load, "arms": {"a": {}}})
    assert cut(spec)[1] == {}
    assert kept(spec) == ["load.pack.variables.api_token"]


def test_values_of_metrics_are_named_and_kept():
    sql = "SELECT lag FROM dblink('host=h password=s3cret', 'SELECT lag()') AS t (lag int)"
    spec = StudySpec.model_validate({"arms": {"a": {}}, "metrics": {"lag": {"sql": sql, "better": "less"}}})
    assert kept(spec) == ["metrics.lag.sql"]


def test_a_password_in_sql_is_cut():
    spec = StudySpec.model_validate({"arms": {"a": {"setup_sql": ["CREATE ROLE app PASSWORD 's3cret'", "SELECT 1"]}}})
    without, paths = cut(spec)
    assert paths == {"PGTRIAL_SECRET_1": ["arms.a.setup_sql"]}
    assert without.arms["a"].setup_sql[1] == "SELECT 1"
    assert "s3cret" not in str(without)
