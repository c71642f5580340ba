"""Tests of the values of settings that installed servers report before any server is started."""

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.servers.configured_values import check_configured, equal_arms
from pgtrial.store.study_file import build_study

pytestmark = pytest.mark.server


def study(one, other, **server):
    return build_study({"server": server, "arms": {"a": {"settings": one}, "b": {"settings": other}}}, "test")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"jitt": "on"}, 'unrecognized configuration parameter "jitt"; did you mean jit?'),
        ({"Work_Memm": "1MB"}, "did you mean work_mem?"),
        ({"zyx": "1"}, "correct its name"),
        ({"work_mem": "lots"}, 'invalid value for parameter "work_mem": "lots"; correct the value'),
        ({"random_page_cost": "-1"}, "outside the valid range"),
        ({"jit": "on; work_mem=1MB"}, "separate settings by commas"),
    ],
)
def test_what_no_server_starts_with_is_refused_with_a_cure(settings, words):
    with pytest.raises(StudyError) as error:
        check_configured(Design(study({}, settings)))
    assert str(error.value).startswith("arms.b: PostgreSQL 18")
    assert words in str(error.value)


def test_developers_settings_and_those_of_extensions_are_known():
    check_configured(
        Design(study({"trace_sort": "on", "ignore_system_indexes": "off"}, {"pg_stat_statements.max": "500"}))
    )
    with pytest.raises(StudyError, match="trace_sort"):  # its values are known as well
        check_configured(Design(study({"trace_sort": "lots"}, {})))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"work_mem": "4MB"}, {"work_mem": "4096kB"}),
        ({"work_mem": "8192"}, {"work_mem": "8MB"}),
        ({"jit": "on"}, {"jit": "TRUE"}),
        ({"random_page_cost": "4"}, {}),
        ({"checkpoint_timeout": "5min", "JIT": "1"}, {"checkpoint_timeout": "300", "jit": "yes"}),
    ],
)
def test_settings_of_one_value_make_arms_equal(one, other):
    (warning,) = equal_arms(Design(study(one, other)))
    assert warning.startswith("the arms a and b are equal in effect (")
    assert "the study compares equal set-ups (A/A)" in warning


@pytest.mark.parametrize(
    ("one", "other"), [({"work_mem": "4MB"}, {"work_mem": "5MB"}), ({"jit": "off"}, {}), ({"a.b": "1"}, {"a.b": "2"})]
)
def test_settings_of_two_values_do_not(one, other):
    assert list(equal_arms(Design(study(one, other)))) == []


def test_settings_of_given_servers_are_compared_where_both_arms_have_them():
    given = {"dsn": "host=db"}
    assert len(list(equal_arms(Design(study({"work_mem": "4MB"}, {"work_mem": "4096kB"}, **given))))) == 1
    assert list(equal_arms(Design(study({"work_mem": "4MB"}, {}, **given)))) == []
