"""Tables of numbers are read with any separator, and what cannot be read is refused with its line and column."""

from __future__ import annotations

import os

import pytest

from pgtrial.judge.blocks import blocks_of, pattern_of
from pgtrial.judge.numbers import MOST_ARMS, is_of_times, read_numbers
from pgtrial.model.errors import StudyError

from .tables import numbers_in, table, text_of

ROWS = [("old", "10.5"), ("new", "1.2e1"), ("old", "11"), ("new", "12.5")]
VALUES = [10.5, 12.0, 11.0, 12.5]


def written(separator: str = ",", end: str = "\n", header: str = "arm{}value") -> str:
    return end.join([header.format(separator), *(separator.join(row) for row in ROWS)]) + end


@pytest.mark.parametrize(
    "text",
    [
        written(),
        written(";"),
        written("\t"),
        written(end="\r\n"),
        written(end="\r"),
        written().rstrip("\n"),
        "\ufeff" + written(";", "\r\n"),
        "sep=;\r\n" + written(";", "\r\n"),
        "sep=|\n" + written("|"),
        written(header="ARM{}Value"),
        written(header=' arm {}"value"'),
        "# a comment\n\n" + written(),
        written() + "\n\n,\n",
        written().replace("\n", ",\n"),
        written().replace("old", '"old"'),
    ],
    ids=range(15),
)
def test_a_table_is_read_however_it_was_saved(tmp_path, text):
    numbers = numbers_in(tmp_path, text)
    assert (numbers.names, numbers.arms) == (["old", "new"], ["old", "new", "old", "new"])
    assert numbers.values == VALUES


def test_other_columns_are_left_alone_and_the_values_may_have_another_name(tmp_path):
    text = "run,arm,tps,who\n1,old,5,me\n2,new,6,you, \n"
    assert numbers_in(tmp_path, text, "TPS").values == [5, 6]


def test_times_order_the_runs(tmp_path):
    text = "arm,value,time\nnew,2,2026-11-29T12:00:00+01:00\nold,1,2026-11-29T10:59:00Z\n"
    numbers = numbers_in(tmp_path, text)
    assert (numbers.arms, numbers.lines, numbers.names) == (["old", "new"], [3, 2], ["new", "old"])
    for first, second in (("20.5", "3"), ("2026-11-29T12:00", "2026-11-29 11:00")):
        assert numbers_in(tmp_path, f"arm,value,time\nnew,2,{first}\nold,1,{second}\n").arms == ["old", "new"]


def test_measured_times_do_not_order_the_runs(tmp_path):
    numbers = numbers_in(tmp_path, "arm,time\nnew,7\nold,5\nold,3\n", column="time")
    assert (numbers.arms, numbers.values) == (["new", "old", "old"], [7, 5, 3])


def test_an_arm_is_the_same_in_composed_and_combining_letters(tmp_path):
    assert numbers_in(tmp_path, "arm,value\ngr\u00f6\u00dfer,7\ngro\u0308\u00dfer,5\n").names == ["gr\u00f6\u00dfer"]


@pytest.mark.parametrize(
    ("column", "is_time"),
    [
        *((name, True) for name in ("time", "latency_ms", "p99 [ms]", "Mean response", "duration (s)", "seconds")),
        *((name, False) for name in ("value", "tps", "tps (1/s)", "ops per sec", "NOPM", "transactions/s", "items")),
    ],
)
def test_names_of_columns_say_whether_they_have_times(column, is_time):
    assert is_of_times(column) == is_time


BAD = {
    "": "is empty; write a first line with the names of the columns, such as arm,value",
    "\n# only a comment\n": "is empty",
    "arm,value\n": "has the names of its columns and no numbers",
    "arm,tps\nold,1\n": "has no column 'value' in its first line, which has 'arm', 'tps'; rename the column "
    "that has the measured numbers, or name it by --value",
    "name,value\nold,1\n": "has no column 'arm' in its first line, which has 'name', 'value'",
    "run,old,new\n1,10,11\n": "the column that has the names of the set-ups; a table has a line for each run",
    "old,1\nnew,2\n": "has no column 'arm' in its first line, which has 'old', '1'",
    "arm,value,Value\nold,1,2\n": "the line with the column names has 'value' twice",
    "arm,value\nold,fast\n": "line 2, column value: 'fast' is not a number; write it without a unit",
    "arm,value\nold,1\nold,123k\n": "line 3, column value: '123k' is not a number",
    "arm,value\nold,1_000\n": "line 2, column value: '1_000' is not a number",
    "arm,value\nold,\n": "line 2, column value: the field is empty; write the number that was measured",
    "arm,value\nold,nan\n": "line 2, column value: 'nan' cannot be compared; if this run failed, mend the cause",
    "arm,value\nold,-inf\n": "line 2, column value: '-inf' cannot be compared",
    "arm,value\nold,1e999\n": "line 2, column value: '1e999' cannot be compared",
    "arm,value\nold,1e200\n": "line 2, column value: '1e200' is out of range; write it in another unit",
    "arm,value\nold,0\n": "line 2, column value: '0' is not above zero, and arms are compared by a ratio; if this run",
    "arm,value\nold,-3\n": "line 2, column value: '-3' is not above zero",
    "arm;value\nold;12,5\n": "line 2, column value: '12,5' has a comma; write decimals after a point",
    'arm,value\nold,"1,234.5"\n': "line 2, column value: '1,234.5' has a comma",
    "arm,value\nold,12,5\n": "line 2 has 3 fields and the line with the column names has 2; give each line "
    "as many fields; write decimals after a point",
    "arm,value\n\nold\n": "line 3 has 1 field and the line with the column names has 2; give each line as many fields",
    "arm,value\n,12\n": "line 2, column arm: the field is empty; fill it in",
    "arm,value,block\nold,12,\n": "line 2, column block: the field is empty; fill it in",
    "arm,value,time\nold,12,noon\n": "line 2, column time: 'noon' is not a time; write seconds, or ISO 8601",
    "arm,value,time\nold,12,nan\n": "line 2, column time: 'nan' is not a time",
    "arm,value,time\nold,1,5\nold,2,2026-11-29\n": "line 3, column time: this time is a date without an offset from "
    "UTC, and that of line 2 is a number of seconds",
    'arm,value\n"old,12\nnew,13\n': "this line cannot be read (unexpected end of data); look for a quotation mark",
    "arm,value\n" + "".join(f"{number},5\n" for number in range(MOST_ARMS + 1)): "has 51 names in its column arm",
    b"arm,value\nold,1\ncaf\xe9,2\n": "line 3: this line is not text in UTF-8; save the file as CSV in UTF-8",
    "arm,value\nold,1\n".encode("utf-16"): "is text in UTF-16; save it as CSV in UTF-8",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_cannot_be_read_is_refused_with_its_place_and_a_cure(tmp_path, text):
    with pytest.raises(StudyError) as refused:
        numbers_in(tmp_path, text)
    sentence = str(refused.value)
    assert sentence.startswith(f"{tmp_path}/runs.csv")
    assert BAD[text] in sentence
    assert "\n" not in sentence


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("absent", "No such file"), ("pipe", "not a regular file"), (".", "directory")):
        with pytest.raises(StudyError, match=rf"cannot be read \(.*{why}.*\); name a file with the columns arm and"):
            read_numbers(str(tmp_path / name), "value")


def test_a_gap_in_a_block_is_refused_with_its_lines(tmp_path):
    text = "block,arm,value\n1,old,1\n1,new,2\n2,old,3\n2,old,4\n2,new,5\n"
    with pytest.raises(
        StudyError, match=r"lines 4 to 6: block 2 has 3 values, 2 of old, 1 of new; a block must have equally many"
    ):
        blocks_of(numbers_in(tmp_path, text))
    with pytest.raises(StudyError, match="line 4: block 2 has 1 value, 1 of old, 0 of new"):
        blocks_of(numbers_in(tmp_path, "block,arm,value\n1,old,1\n1,new,2\n2,old,3\n"))
    with pytest.raises(
        StudyError, match="lines 2 to 3: block 1 has 2 values, 2 of old, 0 of new; without a column block"
    ):
        blocks_of(numbers_in(tmp_path, "arm,value\nold,1\nold,2\nnew,3\nnew,3\n"))


@pytest.mark.parametrize(
    ("arms", "pattern"),
    [
        ("aaaa", "one arm"),
        ("aaabbb", "one after the other"),
        ("aabbcc", "one after the other"),
        ("ababab", "in turn"),
        ("abcabcabc", "in turn"),
        ("abbaab", "back and forth"),
        ("abccba", "back and forth"),
        ("abababba", "no rule"),
        ("aababb", "no rule"),
        ("ababa", "no rule"),
    ],
)
def test_the_rule_of_an_order_is_recognised(tmp_path, arms, pattern):
    numbers = numbers_in(tmp_path, text_of((arm, 5) for arm in arms))
    try:
        blocks = blocks_of(numbers) if len(numbers.names) > 1 else None
    except StudyError:
        blocks = None
    assert pattern_of(numbers, blocks) == pattern


def test_a_million_rows_are_read(tmp_path):
    text = "arm,value\n" + "old,10.5\nnew,11.25\n" * 500_000
    numbers = read_numbers(str(table(tmp_path, text)), "value")
    assert (len(numbers.values), len(numbers.by_arm["new"]), set(numbers.by_arm["new"])) == (10**6, 500_000, {11.25})
