"""JSON of ConvertTo-Json, however a host with Windows brings it, and scripts that pass through its shells."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.machines.machine import HostError
from pgtrial.machines.windows import (
    command_line,
    drive_of,
    number,
    parse_reply,
    part,
    quoted,
    reply_script,
    rows,
    whole,
)

pytestmark = pytest.mark.machine


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":{"b":1}}',
        '\ufeff{"a":{"b":1}}\r\n',
        '{\r\n  "a":  {\r\n  "b":  1\r\n }\r\n}\r\n',
        'Welcome to SRV01\r\n{"a":{"b":1}}',
        '{"a":[{"b":1},null,"x"]}',
        '\0{\0"a":{"b":1}}',
    ],
)
def test_one_object_is_read_whatever_surrounds_it(text):
    assert part(parse_reply(text), "a") == {"b": 1}
    assert rows(parse_reply(text), "a") == [{"b": 1}]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (12, 12.0),
        ("12", 12.0),
        (" 18446744073709551615 ", 18446744073709551615.0),
        ("2793,5", 2793.5),
        ("-0.5", -0.5),
        ("1.234,5", None),
        ("0x1f", None),
        (True, None),
        (None, None),
        ([], None),
        (float("inf"), None),
    ],
)
def test_numbers_are_read_as_such_and_as_text_of_any_language(value, read):
    assert number(value) == read


@given(ANYTHING)
def test_nothing_that_json_can_say_is_an_error(value):
    told = parse_reply(json.dumps({"a": value}))
    assert all(isinstance(each, dict) for each in rows(told, "a"))
    assert isinstance(part(told, "a"), dict)
    assert number(value) is None or whole(value) == int(number(value) or 0)


@given(st.text())
def test_nothing_that_a_host_may_print_is_an_error(text):
    assert isinstance(parse_reply(text), dict)


@pytest.mark.parametrize(
    ("directory", "drive"),
    [("d:/pgdata", "D:"), ("C:\\Program Files\\PostgreSQL", "C:"), ("//server/share", None), ("/var/lib", None)],
)
def test_a_directory_tells_its_drive(directory, drive):
    assert drive_of(Path(directory)) == drive
    assert drive_of(None) is None


def test_a_script_is_one_word_of_ascii_behind_the_options():
    command = command_line("  'naïve'\n\n  two\n")
    *options, encoded = command.split(" ")
    assert options == ["powershell", "-NoProfile", "-NonInteractive", "-OutputFormat", "Text", "-EncodedCommand"]
    assert base64.b64decode(encoded).decode("utf-16-le") == "'naïve'\ntwo"
    with pytest.raises(HostError, match="too long for Windows"):
        command_line("x" * 4000)


def test_a_script_tells_its_parts_as_one_object():
    script = reply_script({"a": "@{n='x'}", "b": quoted("it's")}, "$c = 1")
    assert "$c = 1\n$reply = @{\na = @{n='x'}\nb = 'it''s'\n} | ConvertTo-Json -Depth 4 -Compress" in script
