"""Messages name keys by marks, which become the words of the study file unless a surface has its own."""

from __future__ import annotations

import json
import pickle

import pytest

from pgtrial.model import marks
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.marks import in_toml, keys_in
from pgtrial.model.printable import printable, printable_json

MESSAGES = {
    f"{marks.key('load', 'cpus')}: no such CPU": "[load] cpus: no such CPU",
    f"{marks.key('load.pack')} is for packs": "[load.pack] is for packs",
    f"write {marks.key('verdict', 'budget', '10min')}": 'write [verdict] budget = "10min"',
    f"{marks.key('verdict', 'allow_busy_client', True)} gives it": "[verdict] allow_busy_client = true gives it",
    marks.key("load", "capacity", {"p99": "20ms"}): '[load] capacity = { p99 = "20ms" }',
    marks.key("server", "initdb", ["--locale=C", "--no-sync"]): '[server] initdb = ["--locale=C", "--no-sync"]',
    f"or {marks.set_key('fleet', 'machines', 2)}": "or set [fleet] machines = 2",
    f"raise {marks.key('load', 'clients')} or {marks.short_key('load', 'threads')}": "raise [load] clients or threads",
    f"write {marks.key_in('load.job', 'command')}": "write command in [load.job]",
    f"{marks.key_in('load', 'protocol', 'simple', preposition='of')}": 'protocol = "simple" of [load]',
    f"load it by --data{marks.file_key('load', 'data')}": "load it by --data ([load] data)",
    f"it belongs in {marks.section('load')}": "it belongs in [load]",
    f"{marks.heading('load')}q.lua: refused": "[load] q.lua: refused",
    f"{marks.arm('one')} has no price": "[arms.one] has no price",
    f"{marks.at_arm('one')}a job changes the data": "[arms.one] a job changes the data",
    "no key at all": "no key at all",
}


@pytest.mark.parametrize(("message", "expected"), MESSAGES.items())
def test_a_study_file_names_keys_as_toml_writes_them(message, expected):
    assert in_toml(message) == expected
    assert printable(message) == expected


def test_an_error_quoted_by_another_still_names_its_keys():
    inner = StudyError(f"{marks.key('load.suite', 'cache', 'cold')} needs root")
    outer = StudyError(f"{marks.at_arm('one')}{inner}; {marks.set_key('load.suite', 'cache', 'os')}")
    assert str(outer) == '[arms.one] [load.suite] cache = "cold" needs root; set [load.suite] cache = "os"'
    assert outer.keys == ("load.suite.cache", "load.suite.cache")
    assert str(pickle.loads(pickle.dumps(outer))) == str(outer)


def test_an_error_takes_the_words_of_the_surface_that_shows_it():
    error = BudgetError(f"raise {marks.key('verdict', 'budget')}", 60.0)
    error.reword(lambda text: text.replace("raise", "increase"))
    assert str(error) == "increase [verdict] budget"
    assert error.keys == ("verdict.budget",)
    assert error.needed_s == 60.0


def test_arms_and_sections_are_no_keys():
    others = f"{marks.heading('load')}{marks.arm('a')} {marks.at_arm('b')}{marks.section('server')}"
    assert list(keys_in(f"{others} {marks.key('load.pack')}")) == ["load.pack"]


def test_texts_of_strangers_that_make_a_mark_together_leave_json_whole():
    content = {"name": "\ufdd0key\ufdd1load", "label": "\ufdd1rate\ufdd1\ufdd1\ufdd2"}
    assert json.loads(printable_json(json.dumps(content, ensure_ascii=False))) == content


@pytest.mark.parametrize(
    "text", ["\ufdd0key\ufdd2", "\ufdd0__class__\ufdd1\ufdd1\ufdd1\ufdd1\ufdd2", "\ufdd0", "\ufdd2"]
)
def test_what_only_resembles_a_mark_stays_as_it_is(text):
    assert in_toml(text) == text
    assert printable(text) == text


def test_a_password_within_a_value_is_cut():
    error = StudyError(
        f"write {marks.key('load', 'data', ['postgresql://u:geheim@host/db'])} or {marks.key('load', 'scale')}"
    )
    assert str(error) == 'write [load] data = ["postgresql://u:***@host/db"] or [load] scale'
