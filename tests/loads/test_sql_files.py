"""Statements of plain SQL: where they end, what is filled in, and on which line they begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.loads.sql_files import Statement, names_in, statements
from pgtrial.loads.sql_scanner import Scanner

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
    "a body with a tag of other letters": "DO $é$ BEGIN PERFORM 1; END $é$",
    "a body in standard SQL": "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END",
    "a body with CASE": (
        "create or replace procedure p(a int) begin atomic select case when a > 1 then (select 1) else 2 end; "
        "SELECT 3; END"
    ),
    "a rule with two commands": "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO u VALUES (1); DELETE FROM v)",
    "a name with dollars": "SELECT a$$b, c$d$ FROM t",
    "a number before dollars": "SELECT 1$$;$$, $1$$;$$",
    "a number with letters": "SELECT 1b$$, 0x1f$a$",
}


@pytest.mark.parametrize("text", ONE.values(), ids=ONE.keys())
def test_what_belongs_to_one_statement_stays_as_it_is(text):
    assert texts(f"{text};" if not text.endswith("'a;:scale") else text) == [text]


def test_backslashes_in_plain_quotes_escape_where_the_text_says_so():
    off, on = "SET standard_conforming_strings = off", "set standard_conforming_strings TO on"
    found = [r"SELECT 'a\'", off, r"SELECT 'a\';b'", 'SELECT "c\\"', on, r"SELECT 'd\'", "SELECT 1"]
    assert texts("; ".join(found)) == found


def test_begin_and_end_count_in_bodies_of_functions_only():
    assert texts("BEGIN; SELECT 1; END; CREATE TABLE begin_atomic (x int); SELECT ')'; SELECT 2;") == [
        "BEGIN", "SELECT 1", "END", "CREATE TABLE begin_atomic (x int)", "SELECT ')'", "SELECT 2",
    ]  # fmt: skip


def test_a_byte_order_mark_is_none_of_the_text():
    assert statements("\ufeffSELECT 1;", {}) == [Statement("SELECT 1", 1)]


PIECES = st.sampled_from(
    ["SELECT 1", ";", "\n", " ", "(", ")", "'", '"', "$$", "$a$", "$é$", "--", "/*", "*/", "E'", "\\", "BEGIN ATOMIC ",
     "END", "CASE ", "CREATE FUNCTION f() ", "CREATE OR REPLACE PROCEDURE p() ", "x", "a$b"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_in_lines_a_text_is_read_as_in_one_piece(text):
    whole, by_line = Scanner(), Scanner()
    ends = [token.end for token in whole.tokens(text) if token.kind == "end"]
    found, place = [], 0
    for line in text.splitlines(keepends=True):
        found += [place + token.end for token in by_line.tokens(line) if token.kind == "end"]
        place += len(line)
    assert (found, by_line.between) == (ends, whole.between)


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
