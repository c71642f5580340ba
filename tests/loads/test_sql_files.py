"""Statements of plain SQL: where they end, what is filled in, and on which line they begin."""

from __future__ import annotations

import pytest

from pgtrial.loads.sql_files import names_in, statements

VALUES = {"scale": "3", "mix": "it's"}


def texts(text: str) -> list[str]:
    return [statement.text for statement in statements(text, VALUES)]


ONE = {
    "a cast": "SELECT '3'::scale",
    "a quoted text": "SELECT 'a;b :scale'",
    "two quotes": "SELECT 'it''s; :scale'",
    "a text with escapes": r"SELECT E'a\';:scale'",
    "a quoted name": 'SELECT 1 AS "a;:scale"',
    "a body": "DO $$ BEGIN PERFORM 1; PERFORM :scale; END $$",
    "a body with a tag": "DO $x$ SELECT $$;$$; $x$",
    "an unknown name": "SELECT :other",
    "a text without its end": "SELECT 'a;:scale",
}


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_what_belongs_to_one_statement_stays_as_it_is(text):
    assert texts(f"{text};" if not text.endswith("'a;:scale") else text) == [text]


def test_statements_end_with_semicolons_and_empty_ones_are_none():
    assert texts("SELECT 1; ;\nSELECT 2;;\n-- the end\n") == ["SELECT 1", "SELECT 2"]


def test_variables_are_filled_in_as_they_are_or_as_a_quoted_text():
    assert texts("SELECT 10*:scale, :scale::int, :'mix', :'scale'") == ["SELECT 10*3, 3::int, 'it''s', '3'"]


def test_comments_are_left_out():
    assert texts("-- it's; :scale\nSELECT /* ; /* nested; */ ' */ 1 -- more\n+ 1;") == ["SELECT   1  \n+ 1"]


def test_a_statement_knows_the_line_on_which_it_begins():
    text = "-- a\n\n/* b\n */ SELECT 1;\n\nSELECT\n 2;\nSELECT 3"
    assert [statement.line for statement in statements(text, {})] == [4, 6, 8]


def test_the_names_in_a_file_are_those_that_would_be_filled_in():
    assert names_in("SELECT :scale, ':no', :'mix', a::cast -- :none\n") == {"scale", "mix"}
