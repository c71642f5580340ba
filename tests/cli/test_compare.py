"""Set-ups on the command line mean the same as in a study file."""

import pytest

from pgtrial.cli.compare import name_arms, parse_setup
from pgtrial.model.errors import StudyError

SETUPS = {
    "shared_buffers=2GB": {"settings": {"shared_buffers": "2GB"}},
    "jit=off,work_mem=64MB": {"settings": {"jit": "off", "work_mem": "64MB"}},
    "search_path=a,b,jit=off": {"settings": {"search_path": "a,b", "jit": "off"}},
    "shared_preload_libraries=": {"settings": {"shared_preload_libraries": ""}},
    "postgres=17": {"postgres": "17"},
    "postgres=17,jit=off": {"postgres": "17", "settings": {"jit": "off"}},
    "initdb=--no-data-checksums --wal-segsize=64": {"initdb": ["--no-data-checksums", "--wal-segsize=64"]},
    "default": {},
    "postgresql://me@db/shop": {"dsn": "postgresql://me@db/shop"},
    "host=db dbname=shop": {"dsn": "host=db dbname=shop"},
}


@pytest.mark.parametrize(("text", "expected"), SETUPS.items(), ids=SETUPS.keys())
def test_a_set_up_is_read(text, expected):
    assert parse_setup(text) == expected


def test_something_else_is_refused_with_the_forms_there_are():
    with pytest.raises(StudyError, match=r"'fast' is no set-up; write NAME=VALUE"):
        parse_setup("fast")


def test_arms_are_named_after_what_they_are_and_numbered_where_they_repeat():
    arms = name_arms(["jit=on", "jit=on", "postgresql://me:hunter2@db:5433/shop", "default"])
    assert list(arms) == ["jit=on", "jit=on (2)", "db:5433/shop", "default"]
