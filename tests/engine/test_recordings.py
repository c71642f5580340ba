"""Tests that a recorded answer is used if its key is that of the run, and only then."""

from __future__ import annotations

from collections import Counter
from types import FunctionType

import pytest

from tests.engine.recordings import Key, Mode, Recordings, by_fifties, digest_of_inputs, digest_of_program, plain

KEY = Key("a program", "18.6", "a case")


def recordings(directory, mode) -> Recordings:
    return Recordings(directory, mode, Counter())


@pytest.fixture
def recorded(tmp_path):
    """Returns a directory in which an answer to one case is recorded."""
    recording = recordings(tmp_path, Mode.RECORD)
    recording.answer("file", "case", KEY, lambda: {"status": 0})
    recording.write()
    return tmp_path


def never():
    pytest.fail("the original was asked")


def test_an_answer_is_taken_from_the_recording_that_fits(recorded):
    stored = recordings(recorded, Mode.STORED)
    assert stored.answer("file", "case", KEY, never) == {"status": 0}
    assert stored.count == {"recorded": 1}


def test_the_recording_stands_for_an_original_that_is_not_installed(recorded):
    absent = Key(None, KEY.server, KEY.inputs)
    assert recordings(recorded, Mode.STORED).answer("file", "case", absent, never) == {"status": 0}


@pytest.mark.parametrize(
    ("case", "key", "why"),
    [
        ("case", Key("another", "18.6", "a case"), "other original"),
        ("case", Key("a program", "18.7", "a case"), "other server"),
        ("case", Key("a program", "18.6", "another"), "other inputs"),
        ("new", KEY, "not recorded"),
    ],
)
def test_the_original_is_asked_where_no_recording_fits(recorded, case, key, why):
    stored = recordings(recorded, Mode.STORED)
    before = (recorded / "file.jsonl").read_bytes()
    assert stored.answer("file", case, key, lambda: "asked") == "asked"
    stored.write()
    assert stored.count == {f"asked ({why})": 1}
    assert (recorded / "file.jsonl").read_bytes() == before


def test_a_check_asks_the_original_and_fails_if_it_answers_otherwise(recorded):
    check = recordings(recorded, Mode.CHECK)
    assert check.answer("file", "case", KEY, lambda: {"status": 0}) == {"status": 0}
    with pytest.raises(AssertionError, match="run make record"):
        check.answer("file", "case", KEY, lambda: {"status": 1})
    # what was recorded of another original says nothing of this one
    assert check.answer("file", "case", Key("another", "18.6", "a case"), lambda: 1) == 1


def test_a_check_asks_an_original_with_a_race_again_until_it_answers_as_it_did(recorded):
    check = recordings(recorded, Mode.CHECK)
    answers = iter([{"status": 1}, {"status": 2}, {"status": 0}])
    assert check.answer("file", "case", KEY, lambda: next(answers), 4) == {"status": 0}
    with pytest.raises(AssertionError, match="run make record"):
        check.answer("file", "case", KEY, lambda: {"status": 1}, 4)
    assert recordings(recorded, Mode.STORED).answer("file", "case", KEY, never, 4) == {"status": 0}


def test_a_recording_replaces_the_cases_that_were_asked_and_keeps_the_others_in_order(recorded):
    recording = recordings(recorded, Mode.RECORD)
    for case in ("z", "case", "a"):
        recording.answer("file", case, KEY, lambda: 2)
    recording.write()
    again = recordings(recorded, Mode.RECORD)
    again.answer("file", "z", KEY, lambda: 3)
    again.write()
    stored = recordings(recorded, Mode.STORED)
    assert [stored.answer("file", case, KEY, never) for case in ("a", "case", "z")] == [2, 2, 3]
    assert [line[:14] for line in (recorded / "file.jsonl").read_text().splitlines()] == [
        '{"answer": 2, ',
        '{"answer": 2, ',
        '{"answer": 3, ',
    ]


def test_an_answer_keeps_bytes_that_are_no_text_and_shortens_what_is_long(tmp_path):
    assert plain({"status": (0, None), "text": "caf\udce9"}) == {"status": [0, None], "text": "caf\udce9"}
    assert plain("/tmp/x/y", {"/tmp/x": "%TMP%"}) == "%TMP%/y"
    long = [plain("x" * 30_000), plain("x" * 29_999 + "y")]
    assert long[0] != long[1]
    assert max(map(len, long)) < 200


def test_of_a_long_list_the_fifty_with_a_difference_is_found():
    lines = [f"line {number}" for number in range(120)]
    other = [*lines[:60], "another", *lines[61:]]
    different = [mine != theirs for mine, theirs in zip(by_fifties(lines), by_fifties(other), strict=True)]
    assert different == [False, False, True, False]


def test_the_digest_of_a_program_follows_its_bytes(tmp_path):
    program = tmp_path / "program"
    assert digest_of_program(program) is None
    digests = set()
    for text in ("one", "two"):
        path = tmp_path / text
        path.write_text(text)
        digests.add(digest_of_program(path))
    assert len(digests) == 2


def function(path, body: str) -> FunctionType:
    """Returns the function `test` of this Python source, as if it were defined in a module of these tests."""
    path.write_text(body)
    names: dict[str, object] = {"__name__": f"{__package__}.{path.stem}"}
    exec(compile(body, str(path), "exec"), names)
    found = names["test"]
    assert isinstance(found, FunctionType)
    return found


def test_the_digest_of_a_case_follows_its_content_its_test_and_what_that_names(tmp_path):
    body = (
        "WORDS = ['a']\ndef helper():\n    return WORDS\ndef test():\n"
        "    def inner():\n        return 1\n    class Inner:\n        pass\n    return helper()\n"
    )
    bodies = {
        "the same": body,
        "a comment": body.replace("return helper()", "# why\n    return helper()"),
        "a docstring": body.replace("def test():", 'def test():\n    """What."""'),
        "a docstring within": body.replace("def inner():", 'def inner():\n        """What."""'),
        "a docstring alone": body.replace("pass", '"""What."""'),
        "an import": f"import os\n{body}",
        "the test": body.replace("return helper()", "return helper() * 2"),
        "a helper": body.replace("return WORDS", "return WORDS[0]"),
        "a constant": body.replace("'a'", "'b'"),
    }
    digests = {
        name: digest_of_inputs(function(tmp_path / f"m{number}.py", text), {"line": 1})
        for number, (name, text) in enumerate(bodies.items())
    }
    same = digests["the same"]
    assert {name for name, digest in digests.items() if digest == same} == {
        "the same",
        "a comment",
        "a docstring",
        "a docstring within",
        "a docstring alone",
        "an import",
    }
    assert len(set(digests.values())) == 4
    assert digest_of_inputs(function(tmp_path / "last.py", body), {"line": 2}) != same
