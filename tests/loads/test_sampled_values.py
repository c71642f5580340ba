"""Values that were drawn on one arm and are looked for on another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.loads.sampled_values import check_values, draw_values
from pgtrial.model.errors import StudyError

pytestmark = pytest.mark.server

COLUMNS = {"c": '"Codes%"."Code"', "n": '"Codes%".n'}


@pytest.fixture
def session(clusters):
    """Yields a session of a database whose table has 200 codes."""
    target = clusters(18).target
    with target.connect_as_user() as session:
        session.execute("DROP DATABASE IF EXISTS values_of_arms")
        session.execute("CREATE DATABASE values_of_arms")
    with replace(target, dbname="values_of_arms").connect_as_user() as there:
        there.execute("""CREATE TABLE "Codes%" ("Code" text, n int)""")
        there.execute("""INSERT INTO "Codes%" SELECT 'c' || i, i FROM generate_series(1, 200) AS i""")
        yield there
    with target.connect_as_user() as session:
        session.execute("DROP DATABASE values_of_arms")


@pytest.mark.parametrize(
    ("change", "share"),
    [("WHERE n = 7", r"0\.5%"), ("WHERE n <= 50", r"25\.0%"), ("", "all")],
    ids=["one", "some", "all"],
)
def test_values_that_are_missing_are_told_with_their_share(session, change, share):
    drawn = draw_values(session, COLUMNS, seed=1)
    session.execute(
        """INSERT INTO "Codes%" SELECT "Code", n FROM "Codes%" WHERE n < 9"""
    )  # each value twice is as well
    check_values(session, COLUMNS, drawn, "one", "two")
    session.execute(f"""UPDATE "Codes%" SET "Code" = 'd' || n {change}""".encode())
    with pytest.raises(
        StudyError, match=rf"arms\.two: \[load\] values: c = .*: {share} of the values .* on one are not in"
    ):
        check_values(session, COLUMNS, drawn, "one", "two")


def test_a_column_that_another_arm_lacks_is_named_with_the_arm(session):
    drawn = draw_values(session, COLUMNS, seed=1)
    session.execute("""ALTER TABLE "Codes%" DROP COLUMN n""")
    with pytest.raises(StudyError, match=r'arms\.two: \[load\] values: n = .*"?n"? does not exist; name a table'):
        check_values(session, COLUMNS, drawn, "one", "two")
