"""`import pgtrial`: a stored study as data frames, latencies and charts; and `pgtrial sql` over several."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram

import pgtrial
from pgtrial.api import Chart
from pgtrial.cli.sql import run, sql_command
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.report.frames import FRAMES
from pgtrial.store.bundle import write_bundle
from tests.conftest import EXAMPLES

BUNDLE = EXAMPLES / "postgres-versions.tar.xz"


@pytest.fixture(scope="module")
def demo(studies, tmp_path_factory):
    """Returns a copy of the study `demo`, in which two trials have files with latencies."""
    path = tmp_path_factory.mktemp("python") / "demo"
    shutil.copytree(studies("demo").path, path)
    for trial, latencies in ((1, [100, 200]), (2, [5000])):
        histogram = HdrHistogram(1, 3_600_000_000, 3)
        for value in latencies:
            histogram.record_value(value)
        (folder,) = path.glob(f"trials/{trial:04d}-*")
        (folder / "latency.hdr").write_bytes(histogram.encode())
    return pgtrial.open(path)


def test_the_library_loads_nothing_of_the_command_line():
    script = "import sys, pgtrial; pgtrial.compare; print({'typer', 'rich', 'pgtrial.cli'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_a_study_says_what_it_found(demo):
    assert demo.arms == ["on", "off"]
    assert demo.load_points == ["tpcb-like, scale 10, 8 clients"]
    assert demo.verdict.primary[0].verdict == "better"
    assert str(demo).startswith("off is 4")
    assert demo.question in repr(demo)


def test_trials_are_rows_whose_medians_are_those_of_the_report(demo):
    trials = demo.trials
    assert trials.height == 16
    levels = {level.arm: level.tps.median for level in demo.verdict.levels}
    medians = dict(trials.group_by("arm").agg(pl.col("tps").median()).iter_rows())
    assert medians == pytest.approx(levels, rel=1e-3)
    assert trials["trial"].to_list() == list(range(1, 17))
    assert trials["block"].max() == 8


def test_seconds_are_rows_of_warm_up_and_measured_part(demo):
    seconds = demo.seconds
    assert set(seconds["phase"]) == {"warmup", "measure"}
    assert seconds.filter(pl.col("trial") == 3)["arm"].n_unique() == 1
    assert seconds.columns[:5] == ["trial", "block", "arm", "load_point", "phase"]


def test_latencies_of_an_arm_are_added_up(demo):
    arms = dict(demo.trials.filter(pl.col("trial").is_in([2, 3])).select("trial", "arm").iter_rows())
    first = demo.latency(arms[2])
    if arms[2] == arms[3]:
        assert first.count == 3
        assert first.quantile(1.0) == pytest.approx(5000, rel=0.001)
    else:
        assert first.count == 2
        assert first.mean == pytest.approx(150, rel=0.01)
        assert demo.latency(arms[3]).quantile(0.5) == pytest.approx(5000, rel=0.001)
    assert first.quantile(0.5) in (100, 200)


def test_what_is_not_there_is_named_with_what_is(demo, studies):
    with pytest.raises(StudyError, match="has no arm 'of'; its arms are on, off"):
        demo.latency("of")
    with pytest.raises(StudyError, match="has no load point 'select-only'"):
        demo.latency("off", "select-only")
    with pytest.raises(ValueError, match=r"99 is not a share"):
        demo.latency("off").quantile(99)
    grid = pgtrial.open(studies("grid").path)
    with pytest.raises(StudyError, match="has 6 load points; name one of"):
        grid.latency("16")
    with pytest.raises(StudyError, match=r"no trial of 16 .* has a histogram"):
        grid.latency("16", grid.load_points[0])
    with pytest.raises(StoreError, match="nowhere does not exist; name the directory of a study, or its bundle"):
        pgtrial.open("nowhere")
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        pgtrial.opne  # noqa: B018


@pytest.mark.parametrize("kind", ["tps", "difference", "latency", "timeline", "blocks"])
def test_charts_are_the_reports_in_colours_of_their_own(demo, kind):
    drawn = getattr(demo.plot, kind)()
    text = json.dumps(drawn.to_dict())
    assert "datasets" in text
    assert '"--' not in text
    (content,) = (value for name, value in drawn._repr_mimebundle_().items() if "vegalite" in name)
    assert content == drawn.to_dict()


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>"), ("json", b"{")]
)
def test_a_chart_is_written_in_the_form_of_its_ending(demo, tmp_path, ending, start):
    demo.plot.tps().save(tmp_path / f"tps.{ending}")
    assert (tmp_path / f"tps.{ending}").read_bytes().lstrip().startswith(start)
    with pytest.raises(ValueError, match="none of the endings"):
        demo.plot.tps().save(tmp_path / "tps.gif")


@pytest.mark.parametrize("kind", ["tps", "difference", "latency", "timeline", "blocks"])
def test_charts_of_several_load_points_are_drawn_one_below_another(studies, tmp_path, kind):
    """The reader's choice of a block is there once, and values that look like names of data stay as they are."""
    study = pgtrial.open(studies("named_as_data").path)
    chart = getattr(study.plot, kind)()
    chart.save(tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    assert "rows of b" in drawn
    assert re.findall(r"chart\d-rows", drawn) == []
    rows = [row for rows in chart.to_dict().get("datasets", {}).values() for row in rows]
    assert {row["arm"] for row in rows if "arm" in row} <= set(study.arms)


def test_a_chart_of_what_was_not_measured_is_refused(studies):
    with pytest.raises(StudyError, match="has nothing for the chart 'costs' yet"):
        pgtrial.open(studies("empty").path).plot.costs()


def test_a_bundle_is_open_as_long_as_its_study_is_used():
    study = pgtrial.open(BUNDLE)
    folder = study._directory.path
    assert study.trials.height == 288
    assert study.seconds.height > 288
    assert folder.exists()
    del study
    assert not folder.exists()


def test_the_page_on_python_runs(monkeypatch, tmp_path, capsys):
    page = (EXAMPLES.parent / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "docs").symlink_to(EXAMPLES.parent)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
    assert (tmp_path / "tps.svg").read_text().startswith("<svg")
    first_output = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]
    assert capsys.readouterr().out.startswith(first_output)


def test_the_notebook_runs(monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    cells = json.loads(Path("notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == 8
    names: dict[str, object] = {}
    shown = []
    for cell in code:
        *statements, last = ast.parse(cell).body
        exec(compile(ast.Module(statements, []), "notebook.ipynb", "exec"), names)
        assert isinstance(last, ast.Expr)
        shown.append(eval(compile(ast.Expression(last.value), "notebook.ipynb", "eval"), names))
    frames = [result.height for result in shown if isinstance(result, pl.DataFrame)]
    charts = [result.to_dict() for result in shown if isinstance(result, alt.TopLevelMixin | Chart)]
    assert (frames, len(charts)) == ([3, 24, 24], 3)
    assert set(shown[-1]) == {"15", "16", "17", "18"}


class TestSql:
    def test_tables_of_several_studies_are_one(self, studies):
        paths = [studies("demo").path, studies("grid").path]
        heads, rows = run("SELECT study, count(*) AS n, max(block) FROM trials GROUP BY study ORDER BY n", paths)
        assert heads == ["study", "n", "max(block)"]
        assert rows == [(str(paths[0]), 16, 8), (str(paths[1]), 288, 12)]

    def test_seconds_add_up_to_trials(self, studies):
        query = """
            SELECT max(abs(t.transactions - s.n) / t.transactions) FROM trials t
            JOIN (SELECT trial, sum(transactions) AS n FROM seconds WHERE phase = 'measure' GROUP BY trial) s
            USING (trial)
        """
        ((worst,),) = run(query, [studies("demo").path])[1]
        assert worst < 0.1

    def test_claims_and_studies_hold_the_verdict(self, studies):
        query = "SELECT c.arm, c.verdict, c.low < c.difference, s.blocks FROM claims c JOIN studies s USING (study)"
        assert run(query, [studies("demo").path])[1] == [("off", "better", True, 8)]
        mean = "SELECT count(*), count(load_point) FROM claims"
        assert run(mean, [studies("grid").path])[1] == [(21, 18)]

    def test_what_is_no_study_is_left_out_with_a_warning(self, studies, tmp_path, capsys):
        assert run("SELECT count(*) FROM trials", [tmp_path, studies("demo").path])[1] == [(16,)]
        assert f"left out: {tmp_path} is not a study directory" in capsys.readouterr().err
        with pytest.raises(StudyError, match="none of the paths is a study"):
            run("SELECT 1", [tmp_path])

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("SELECT tsp FROM trials", 'Referenced column "tsp" not found'),
            ("SELEC 1", "syntax error"),
            ("SELECT * FROM 'secrets.parquet'", "disabled"),
            ("SELECT * FROM nothing", "nothing does not exist"),
        ],
    )
    def test_a_bad_query_is_one_sentence(self, studies, query, words):
        with pytest.raises(StudyError, match="DuckDB rejects the query") as refused:
            run(query, [studies("demo").path])
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_the_queries_of_the_page_run(self):
        page = (EXAMPLES.parent / "python.md").read_text()
        queries = re.findall(r"pgtrial sql (?:'(.*?)'|\"(.*?)\") docs", page)
        assert len(queries) == 3
        for single, double in queries:
            assert run(single or double, [BUNDLE])[1]

    def test_the_page_names_the_columns_of_each_table_and_no_others(self):
        page = (EXAMPLES.parent / "python.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
        named = {table: re.findall(r"`(\w+)`", re.sub(r" \([^)]*\)", "", columns)) for table, columns in rows}
        assert named == {table: run(f"SELECT * FROM {table} LIMIT 0", [BUNDLE])[0][1:] for table in FRAMES}

    def test_queries_of_the_page_and_of_the_help_mix_no_load_points(self):
        page = (EXAMPLES.parent / "python.md").read_text()
        for text in (page, sql_command.__doc__ or ""):
            for query in re.findall(r"pgtrial sql '(.*?)'", text):
                assert "tps" not in query or "load_point" in query
        for frame in re.findall(r"\.group_by\((.*?)\)", page):
            assert "load_point" in frame

    def test_rows_are_printed_as_a_table_or_as_json(self, studies, capsys):
        path = studies("demo").path
        sql_command("SELECT arm, median(tps) AS tps FROM trials GROUP BY arm ORDER BY arm DESC", [path])
        table = capsys.readouterr().out
        assert table.index("on ") < table.index("off")
        sql_command("SELECT arms, baseline FROM studies", [path], json=True)
        assert json.loads(capsys.readouterr().out) == {"arms": ["on", "off"], "baseline": "on"}
        sql_command("SELECT NULL AS nothing", [path])
        assert "–" in capsys.readouterr().out

    def test_no_column_is_dropped_in_a_narrow_terminal(self, studies, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        heads = [f"column_{number}" for number in range(40)]
        sql_command(f"SELECT {', '.join(f'123456789 AS {head}' for head in heads)}", [studies("demo").path])
        head, _, row = capsys.readouterr().out.splitlines()
        assert head.split() == heads
        assert row.split() == ["123456789"] * 40

    def test_a_bundle_beside_its_study_is_not_counted_again(self, studies, tmp_path, capsys):
        study = studies("demo")
        write_bundle(study, tmp_path / "demo.tar.xz", everything=False)
        ((number,),) = run("SELECT count(*) FROM studies", [tmp_path / "demo.tar.xz", study.path])[1]
        assert number == 1
        assert (
            f"left out: {tmp_path / 'demo.tar.xz'} contains the same study as {study.path}" in capsys.readouterr().err
        )


def test_an_interval_that_is_not_bounded_is_null(studies):
    ((low,),) = run("SELECT low FROM claims", [studies("began").path])[1]
    assert low is None or math.isnan(low)
