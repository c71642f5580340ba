"""Keys of a study file that are given one by one."""

import pytest

from pgtrial.cli.capacity import capacity_command
from pgtrial.cli.compare import compare_command
from pgtrial.model.errors import StudyError
from pgtrial.store.set_keys import toml_or_text, with_keys


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("[1, 8]", [1, 8]),
        ("true", True),
        ('"true"', "true"),
        ("250ms", "250ms"),
        ("2%", "2%"),
        ("may differ", "may differ"),
        ("1\nother = 2", "1\nother = 2"),
        ("", ""),
    ],
)
def test_a_value_is_one_of_toml_or_a_text(text, value):
    assert toml_or_text(text) == value


def test_keys_are_added_where_they_belong_and_the_rest_stays():
    change = with_keys(
        ["load.suite.runs=3", "verdict.margin = 2%", 'arms."jit=on".price="1 USD/h"', "fleet.engine=ray"]
    )
    before = {"load": {"suite": {"cache": "os"}}, "arms": {"jit=on": {"settings": {"jit": "on"}}}}
    assert change(before) == {
        "load": {"suite": {"cache": "os", "runs": 3}},
        "arms": {"jit=on": {"settings": {"jit": "on"}, "price": "1 USD/h"}},
        "verdict": {"margin": "2%"},
        "fleet": {"engine": "ray"},
    }
    assert before["load"] == {"suite": {"cache": "os"}}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            ["load.clients"],
            "--set 'load.clients' is not of the form SECTION.KEY=VALUE; write for example --set load.interleave=250ms",
        ),
        (["=5"], "--set '=5' is not of the form SECTION.KEY=VALUE"),
        (["load=5"], "--set load: write the section and the key, with a period between them"),
        (["load.observe=true", "load.observe=false"], "--set has load.observe more than once; leave one out"),
    ],
)
def test_another_form_is_answered_with_an_example(texts, said):
    with pytest.raises(StudyError) as error:
        with_keys(texts)
    assert said in str(error.value)


@pytest.fixture
def started(monkeypatch):
    """Returns the studies that commands would run."""
    specs = []
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: specs.append(spec) or 0)
    return specs


def test_compare_and_capacity_take_keys_that_have_no_option(started):
    keys = ["load.interleave=off", "verdict.stop_early=false", "study.name=nightly", "arms.on.settings.work_mem=64MB"]
    compare_command(["off=jit=off", "on=jit=on"], keys=keys)
    capacity_command(["off=jit=off", "on=jit=on"], p99="20ms", keys=[*keys[1:], "load.protocol=simple"])
    first, second = started
    assert (first.load.interleave, second.load.protocol) == ("off", "simple")
    for spec in started:
        assert (spec.verdict.stop_early, spec.study.name) == (False, "nightly")
        assert spec.arms["on"].settings == {"jit": "on", "work_mem": "64MB"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": ["load.interleav=off"]}, "unknown key 'interleav' in load; did you mean 'interleave'?"),
        ({"keys": ["lod.clients=8"]}, "unknown section or key 'lod'; did you mean 'load'?"),
        ({"keys": ["load.interleave=soon"]}, "--set load.interleave"),
        ({"keys": ["load.clients=0"]}, "--clients"),
        ({"keys": ["load.clients=4"], "clients": "8"}, "--clients is given by --set too; leave one of the two out"),
        ({"keys": ["arms.of.price=1"]}, "--set: no arm is called 'of'; did you mean 'off'?"),
        ({"keys": ["arms.on.monitoring.cloud=a"]}, "unknown key 'cloud' in"),
    ],
)
def test_what_is_wrong_with_a_key_is_told_as_of_a_study_file(options, said, started):
    with pytest.raises(StudyError) as error:
        compare_command(["off=jit=off", "on=jit=on"], **options)
    assert said in str(error.value)
    assert "[load]" not in str(error.value)
    assert started == []


def test_a_key_without_an_option_of_capacity_is_answered_with_set(started):
    with pytest.raises(StudyError) as error:
        capacity_command(["off=jit=off", "on=jit=on"], p99="20ms", keys=["load.rate=5"])
    assert "rate is not for a study of capacity" in str(error.value)
    with pytest.raises(StudyError, match=r"--set load\.fillfactor must be"):
        capacity_command(["off=jit=off", "on=jit=on"], p99="20ms", keys=["load.fillfactor=5"])
    with pytest.raises(StudyError, match=r"--failures"):
        capacity_command(["off=jit=off", "on=jit=on"], p99="20ms", keys=["load.capacity.failures=x"], failures="1%")
