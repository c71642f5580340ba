"""The table of criteria: what either arm has, by how much they differ, who wins, and the published figures beside."""

from __future__ import annotations

import io
import re

import pytest
from hdrh.histogram import HdrHistogram
from rich.console import Console

from pgtrial.cli.verdict import in_full
from pgtrial.model.latencies import Latencies
from pgtrial.report.charts.tasks import task_charts
from pgtrial.report.data import StudyData
from pgtrial.report.table import NONE
from pgtrial.report.tables.tasks import criteria_tables
from pgtrial.store.study_file import build_study
from tests.verdict.studies import verdict_of
from tests.verdict.tasks import BLOCKS, Draw, noisy, run_tasks


def data_of(blocks: int = BLOCKS, *, published: str | None = None, **arms: Draw) -> StudyData:
    """Returns a study of tasks as the report reads it from disk. Creating a table took 2 s in the baseline and was not
    timed in the other arms.
    """
    plan, trials = run_tasks(blocks, **arms)
    trials = [t.model_copy(update={"table_created_s": 2.0 if t.arm == plan.baseline else None}) for t in trials]
    study = {"published": published} if published else {}
    spec = build_study({"study": study, "load": {"workload": "app-tasks"}, "arms": {arm: {} for arm in arms}}, "test")
    histograms = {trial.index: _histogram(trial.tasks.completed) for trial in trials if trial.tasks is not None}
    return StudyData(spec, plan, trials, {}, verdict_of(plan, trials), histograms=histograms)


def _histogram(completed: int) -> Latencies:
    """Returns the latencies of `completed` tasks of a second each."""
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    histogram.record_value(1_000_000, completed)
    return Latencies.read(histogram.encode().decode())


def rows_of(data: StudyData) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in criteria_tables(data)[0].rows}


def test_a_row_has_both_values_the_difference_and_the_winner():
    data = data_of(sound=noisy(1.0), failing=noisy(2.0, failed=90))
    table = criteria_tables(data)[0]
    assert table.heads == ["criterion", "sound", "failing", "difference (95% interval)", "winner"]
    rows = rows_of(data)
    assert rows["failures"] == ["0 of 16,200", "1,620 of 16,200", "+90 (+90..+90)", "sound"]
    assert rows["under 5 s"] == ["900 of 900", "810 of 900", "-90 (-90..-90)", "sound"]
    assert rows["median"][3] == "sound"
    assert rows["median"][2].startswith("-50% (")
    assert list(rows)[3] == "mean (primary)"


def test_no_difference_is_a_winner_and_the_caption_tells_the_family():
    data = data_of(a=noisy(1.0), b=noisy(1.0))
    assert rows_of(data)["failures"] == ["0 of 16,200", "0 of 16,200", "0 (0..0)", "no difference"]
    caption = criteria_tables(data)[0].caption
    assert "The other 8 are secondary" in caption
    assert "after 12 blocks at the earliest" in caption


def test_before_the_first_look_there_is_no_difference_to_tell():
    assert rows_of(data_of(2, a=noisy(1.0), b=noisy(3.0)))["median"][2:] == [NONE, "undecided"]


def test_an_interval_without_bounds_is_called_so():
    assert rows_of(data_of(8, a=noisy(1.0), b=noisy(1.0, failed=9)))["failures"][2] == "+9 (not bounded yet)"


def test_the_creation_of_the_table_is_told_and_not_compared():
    assert rows_of(data_of(a=noisy(1.0), b=noisy(1.0)))["creation of the table"] == [
        *("2 s", NONE, NONE, "not compared: made once")
    ]


def test_the_published_figures_stand_beside():
    data = data_of(published="app-tasks", Linux=noisy(1.0), Windows=noisy(1.0))
    assert criteria_tables(data)[0].heads[-2:] == ["published: Linux", "published: Windows"]
    rows = rows_of(data)
    assert rows["failures"][-2:] == ["8", "0"]
    assert rows["mean (primary)"][-2:] == ["1.023 s", "1.036 s"]
    assert rows["longest"][-2:] == ["108.3 s", "121.7 s"]
    assert rows["under 5 s"][-2:] == ["14,926", "14,913"]
    assert rows["within 1 s"][-2:] == [NONE, NONE]
    assert rows["creation of the table"][-2:] == ["3.859 s", "9.374 s"]


def test_each_comparison_has_a_table_and_the_parts_follow():
    tables = criteria_tables(data_of(a=noisy(1.0), b=noisy(1.0), c=noisy(2.0)))
    assert [table.caption.split(".")[0] for table in tables[:2]] == ["b against a", "c against a"]
    assert [row[:2] for row in tables[2].rows if row[0] == "a"] == [
        ["a", "in the queue"],
        ["a", "on the server"],
        ["a", "response"],
    ]


def test_the_terminal_has_the_criteria_and_the_mean_of_all_tasks():
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(in_full(data_of(sound=noisy(1.0), failing=noisy(1.0, failed=450)).result))
    told = console.export_text()
    assert re.search(r"failures +sound: 0 +failing: 8,100 +sound", told)
    assert re.search(r"failing +8,\d\d\d\.\d+ .* worse", told), "8 s, as failed tasks waited for 15 s"


def test_failed_tasks_keep_the_curve_of_their_arm_below_all_tasks():
    distribution, parts = task_charts(data_of(sound=noisy(1.0), failing=noisy(1.0, failed=600)))
    (rows,) = (rows for rows in distribution.spec["datasets"].values() if rows and "share" in rows[0])
    ends = {row["arm"]: row["share"] for row in rows}
    assert ends == {"sound": 1.0, "failing": pytest.approx(1 / 3, abs=1e-4)}
    assert "sound within 1 s; failing never" in distribution.alt
    assert "in the queue" in parts.alt
