"""The report's files: what they say, in which order, and that the same study gives the same files."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from pgtrial import __version__
from pgtrial.cli.stored import report_command, verdict_command
from pgtrial.cli.verdict import in_full
from pgtrial.model.errors import StoreError
from pgtrial.model.records.results import StudyResult
from pgtrial.report.build import build_report, differences, render
from pgtrial.report.data import read_data
from pgtrial.report.design import design
from pgtrial.report.sections import draw
from pgtrial.report.tables.results import block_table, look_table, ratio_table
from pgtrial.report.tables.where import facts_tables
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.tables import committed_per_second
from tests.verdict.declared import RATE, declaring
from tests.verdict.studies import deployed, make_plan, noisy, peculiar, run
from tests.verdict.sweeps import SCALES, misses, points, sweep

from .conftest import Audit, Studies, timeline, write_study


def _text(reports: Studies, name: str, file: str) -> str:
    return (reports(name).path / file).read_text()


def test_the_same_study_gives_the_same_files(reports):
    first = {file: _text(reports, "demo", file) for file in ("report.html", "report.md", "verdict.json")}
    build_report(reports("demo"))
    again = {file: _text(reports, "demo", file) for file in first}
    assert first == again


def test_the_verdict_file_reads_back_as_the_result(reports):
    text = _text(reports, "grid", "verdict.json")
    assert StudyResult.model_validate_json(text) == read_data(reports("grid")).result
    assert len(json.loads(text)["by_load_point"]) == 18


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_undeclared_differences_stand_above_the_verdict(reports, file):
    text = _text(reports, "demo", file)
    body = text[text.find("<body>") :] if file.endswith("html") else text
    finding = body.index("the study did not declare it")
    assert 0 < finding < body.index("% faster than on")


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_a_withheld_verdict_says_why_and_claims_nothing(reports, file):
    text = _text(reports, "withheld", file)
    assert "No verdict on off against on" in text
    assert "fsync is off in one arm only" in text
    assert "faster than on" not in text


def test_the_page_refers_to_nothing_outside_itself(reports):
    found: list[str] = []

    class References(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(f"{tag} {value}" for name, value in attrs if name in ("src", "href") and value)

    References().feed(_text(reports, "demo", "report.html"))
    assert [ref for ref in found if not ref.split(" ")[1].startswith(("#", "data:"))] == []


def test_a_page_of_hundreds_of_trials_stays_small(reports):
    assert len(reports("grid").plan.trials) == 288
    assert len(_text(reports, "grid", "report.html")) < 3_000_000


def test_words_of_others_do_not_break_out(reports):
    page = _text(reports, "hostile", "report.html")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    markdown = _text(reports, "hostile", "report.md")
    assert "<script>" not in markdown.replace("\\<script\\>", "")
    rows = [line for line in markdown.splitlines() if line.startswith("| 1 |")]
    assert all(
        line.replace("\\|", "").count("|") == rows[0].replace("\\|", "").count("|")
        for line in rows
        if line[:20] == rows[0][:20]
    )


def test_failed_trials_are_listed_with_what_became_of_them(reports):
    markdown = _text(reports, "failing", "report.md")
    assert "the server closed the connection" in markdown
    assert "void: both failed" in markdown
    assert "counts as the worst rank" in markdown


def test_facts_that_differ_stand_side_by_side_and_say_whether_it_was_declared(studies):
    differing, *same = facts_tables(read_data(studies("demo")))
    assert differing.heads == ["fact", "on", "off", "declared"]
    assert differing.rows == [["settings.synchronous_commit", "on", "off", "yes"]]
    assert same[0].caption == "cpu: 3 facts the same in all arms"
    assert ["governor", "unknown"] in same[0].rows


def test_facts_that_are_the_same_in_all_arms_are_a_paragraph_of_markdown(studies):
    markdown = render(studies("demo"), "md")
    (line,) = [line for line in markdown.splitlines() if line.startswith("cpu: 3 facts the same in all arms: ")]
    assert "; governor = unknown" in line


def test_a_setting_that_another_arm_left_alone_stands_beside_its_default(studies):
    data = read_data(studies("demo"))
    groups = ({"defaults": {"work_mem": "4MB"}}, {"settings": {"work_mem": "64MB"}})
    known = {
        arm: each.model_copy(update={"facts": facts})
        for (arm, each), facts in zip(data.facts.items(), groups, strict=True)
    }
    differing, *_ = facts_tables(replace(data, facts=known))
    assert differing.rows == [["settings.work_mem", "4MB (default)", "64MB", "no"]]


def test_what_was_measured_once_an_arm_stands_side_by_side_and_is_no_difference(studies):
    data = read_data(studies("demo"))
    probed = {
        arm: known.model_copy(
            update={"facts": known.facts | {"probes": {"flushes_per_s": rate}, "sources": {"work_mem": arm}}}
        )
        for (arm, known), rate in zip(data.facts.items(), (900, 950), strict=True)
    }
    differing, probes, *same = facts_tables(replace(data, facts=probed))
    assert [row[0] for row in differing.rows] == ["settings.synchronous_commit"]
    assert (probes.heads, probes.rows) == (["fact", "on", "off"], [["flushes_per_s", "900", "950"]])
    assert not any(table.caption.startswith(("probes", "sources")) for table in same)


def test_the_markdown_holds_a_row_for_every_trial(reports):
    markdown = _text(reports, "grid", "report.md")
    table = markdown[markdown.index("Every trial in the order of execution") :]
    assert sum(line.startswith("| ") for line in table.splitlines()) == 288 + 1


def test_the_timeline_holds_every_second_of_every_trial(studies):
    figure = draw("timeline", read_data(studies("demo")))[0]
    rows = next(rows for rows in figure.spec["datasets"].values() if len(rows) == 16)
    assert {row["trial"] for row in rows} == set(range(1, 17))
    assert all(row["s"] == list(range(-2, 6)) for row in rows)


def test_long_trials_are_averaged_in_the_timeline(studies):
    plan = make_plan(duration_s=900.0)
    trials = run(plan, lambda planned: 2000.0, upto=2)
    data = replace(
        read_data(studies("demo")), plan=plan, trials=trials, timelines={t.index: timeline(t) for t in trials}
    )
    rows = next(rows for rows in draw("timeline", data)[0].spec["datasets"].values() if "tps" in rows[0])
    assert all(len(row["s"]) == len(row["tps"]) <= 150 for row in rows)
    assert all(abs(tps - 2000) < 200 for row in rows for tps in row["tps"][1:])


def test_a_second_without_a_row_had_no_transaction(studies):
    frame = timeline(studies("demo").trials()[0])
    gap = frame.filter(~((frame["phase"] == "measure") & (frame["second"] == 2)))
    assert committed_per_second(gap)[2] == 0
    assert len(committed_per_second(gap)) == 6


@pytest.mark.parametrize("name", ["demo", "grid", "withheld", "failing", "began", "empty"])
def test_the_terminal_says_the_verdict_without_colour(studies, name):
    result = read_data(studies(name)).result
    console = Console(width=100, no_color=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(in_full(result))
    text = " ".join(console.export_text().split())
    for claim, sentence in zip(result.primary, result.sentences, strict=True):
        assert claim.verdict.upper() in text
        assert sentence in text


def test_the_terminal_takes_no_name_of_an_arm_for_markup(studies):
    result = read_data(studies("demo")).result
    arm = result.arms[1]
    renamed = type(result).model_validate_json(result.model_dump_json().replace(f'"{arm}"', '"[/bold]"'))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(in_full(renamed))
    assert "[/bold]" in shown.get()


class TestCommands:
    def test_report_writes_the_files_and_names_the_page(self, studies, capsys):
        study = studies("demo")
        assert report_command(study.path) == 0
        assert capsys.readouterr().out.strip() == str(study.path / "report.html")

    @pytest.mark.parametrize(("name", "status"), [("demo", 0), ("grid", 1), ("withheld", 2), ("began", 2)])
    def test_verdict_ends_with_the_status_for_scripts(self, studies, capsys, name, status):
        assert verdict_command([studies(name).path]) == status
        assert capsys.readouterr().out

    def test_verdict_as_json_is_the_verdict_file(self, studies, capsys):
        verdict_command([studies("demo").path], json=True)
        assert StudyResult.model_validate_json(capsys.readouterr().out) == read_data(studies("demo")).result

    def test_a_directory_that_is_no_study_is_refused(self, tmp_path):
        with pytest.raises(StoreError, match="not a study directory"):
            report_command(tmp_path)


def test_what_the_client_used_is_told_where_the_engine_told_it(reports):
    text = _text(reports, "rated", "report.md")
    assert "| client us per transaction | busiest thread | highest | trials with a warning |" in text
    assert "| 3.25 | 20% | 20% | 0 of 8 |" in text
    assert "| 3.25 | 20% | 20% | 1 of 8 |" in text
    assert "| The busiest thread was busy. |" in text
    older = _text(reports, "demo", "report.md")
    assert "client us" not in older


def test_at_a_rate_the_tables_are_about_response_times(reports):
    text = _text(reports, "rated", "report.md")
    assert "select-only, scale 20, 8 clients, 1,000/s" in text
    assert "the mean response time of the baseline divided by that of the arm" in text
    assert "ln(mean response time of the baseline / mean response time)" in text
    assert "Little's law" not in text
    console = Console(width=120)
    with console.capture() as shown:
        console.print(in_full(read_data(reports("rated")).result))
    assert "mean ms" in shown.get()
    assert "16.000" in shown.get()


def test_each_rate_has_its_own_chart_of_throughput(reports):
    titles = [figure.title for figure in draw("tps", read_data(reports("rated")))]
    assert titles == ["select-only, scale 20, 500/s", "select-only, scale 20, 1,000/s"]


class TestRegimes:
    def test_a_change_shows_both_levels_and_no_average_across_it(self, reports):
        text = (reports("collapsing").path / "report.md").read_text()
        assert "## Regimes" in text
        throughput = text.split("## Throughput")[1].split("##")[0]
        assert re.search(r"\| off \| [34],\d{3} then (1,0|9)\d+ \| – \| – \| 8 \| 0 \|", throughput)
        regimes = text.split("## Regimes")[1].split("##")[0]
        assert re.search(r"\| off \| 8 \| collapse: 8 \|.*\| 34 \| 34 \| 13\d,\d{3} .*\| by regime \|", regimes)
        assert "flat: 8" in regimes
        trials = text.split("## All trials")[1]
        assert re.search(r"\| off \| completed \| [34],\d{3} then [\d,]+ \|", trials)
        assert "The trials that did not keep one level" in trials

    def test_the_timeline_marks_levels_and_their_ends(self, studies):
        (figure,) = draw("timeline", read_data(studies("collapsing")))
        assert "Levels: off 4,0" in figure.alt
        marks = [row for rows in figure.spec["datasets"].values() for row in rows if row.get("changed")]
        assert {row["to"] for row in marks if row["block"] is None} == {34}
        titles = {layer["encoding"]["x"]["title"] for layer in figure.spec["layer"]}
        assert titles == {"second of the measured part"}, "of several titles the page would show none"
        assert {row["block"] for row in marks if row["block"]} == set(range(1, 9))

    def test_charts_of_throughput_and_blocks_hold_no_average_across_the_change(self, studies):
        data = read_data(studies("collapsing"))
        (tps,) = draw("tps", data)
        off = [row for rows in tps.spec["datasets"].values() for row in rows if row["arm"] == "off"]
        assert {row.get("regime") for row in off} == {"before", "after"}
        (blocks,) = draw("blocks", data)
        claims = {row["claim"] for rows in blocks.spec["datasets"].values() for row in rows if "claim" in row}
        assert claims == {"tpcb-like, scale 10, 8 clients, before the change"}

    def test_flat_studies_have_no_such_section(self, reports):
        assert "## Regimes" not in (reports("demo").path / "report.md").read_text()

    def test_the_terminal_has_a_line_for_each_regime(self, studies):
        console = Console(width=160, record=True, file=io.StringIO())
        console.print(in_full(read_data(studies("collapsing")).result))
        text = console.export_text()
        assert re.search(r"off +[34],\d{3} then [\d,]+ +undecided", text)
        assert re.search(r"- before the change +2 times +1\.9\d\.\.2\.\d+ times ", text)


def test_the_profile_stands_in_the_design_of_the_study(studies):
    data = read_data(studies("demo"))
    assert "profile" not in dict(design(data))
    section = data.spec.study.model_copy(update={"profile": "quick"})
    under_one = replace(data, spec=data.spec.model_copy(update={"study": section}))
    assert design(under_one)[0] == ("profile", "quick")


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_blocks_that_an_earlier_version_set_aside_are_named(reports, file):
    text = _text(reports, "disturbed", file)
    note = (
        "An earlier version of pgtrial found the machine disturbed, set 1 block aside and ran the same order again: 3."
    )
    assert note in text


def test_a_study_of_which_no_block_was_set_aside_says_nothing_of_them(reports):
    for file in ("report.html", "report.md", "verdict.json"):
        assert "voided" not in _text(reports, "demo", file)


def test_a_verdict_of_a_version_that_judged_blocks_is_read_and_follows_from_the_trials(studies, tmp_path):
    study = StudyDirectory.open(shutil.copytree(studies("disturbed").path, tmp_path / "s"))
    result = build_report(study)
    stored = json.loads((study.path / "verdict.json").read_text())
    block = {"block": 2, "attempt": 1, "reason": "the canary after it had 360 flushes a second", "failed": {"off": 1}}
    stored |= {"voids": [block], "notes": ["The canary voided 1 block, set aside and run again."]}
    (study.path / "verdict.json").write_text(json.dumps(stored))
    assert StudyResult.model_validate(stored).primary == result.primary
    assert differences(study) == []
    (study.path / "verdict.json").write_text(json.dumps(stored | {"seed": 99}))
    assert [each.partition(" ")[0] for each in differences(study)] == ["seed"]


def test_a_verdict_of_a_version_that_drew_no_curve_follows_from_its_trials(tmp_path):
    plan = declaring("p99", "p50")
    study = write_study(tmp_path / "s", plan, run(plan, noisy({}, base=RATE)), Audit(findings=[]), "At a rate?")
    build_report(study)
    text = (study.path / "report.md").read_text()
    assert "Response times compared with those of the baseline, percentile by percentile" in text
    assert "off against on by the declared metrics" in text
    path = study.path / "verdict.json"
    stored = json.loads(path.read_text())
    assert [point["percentile"] for point in stored["curve"]] == ["p50", "p90", "p95", "p99"]
    assert differences(study) == []
    path.write_text(json.dumps({key: value for key, value in stored.items() if key != "curve"}))
    assert differences(study) == []
    stored["curve"][0]["blocks"] = 99
    path.write_text(json.dumps(stored))
    assert [each.partition(" ")[0] for each in differences(study)] == ["curve.0.blocks"]


def test_a_verdict_of_a_version_that_averaged_across_cliffs_follows_from_its_trials(tmp_path):
    plan, trials = sweep(points(scales=SCALES), lambda _, point: 2000.0 / (1 + 6 * misses(60, point.scale)))
    plan = plan.model_copy(update={"pgtrial": __version__})
    study = write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Over sizes?")
    build_report(study)
    path = study.path / "verdict.json"
    stored = json.loads(path.read_text())
    assert [part["regime"] for part in stored["primary"][0]["parts"]] == ["below", "above"]
    assert differences(study) == []
    former = {key: value for key, value in stored.items() if key != "cliffs"}
    averaged = {**stored["primary"][0]["parts"][0], "regime": None, "verdict": "equivalent"}
    path.write_text(json.dumps(former | {"primary": [averaged], "notes": [], "sentences": ["none of today's"]}))
    assert differences(study) == []
    path.write_text(json.dumps(former | {"primary": [averaged], "seed": 99}))
    assert [each.partition(" ")[0] for each in differences(study)] == ["seed"]
    stored["cliffs"][0]["blocks"] = 99
    path.write_text(json.dumps(stored))
    assert [each.partition(" ")[0] for each in differences(study)] == ["cliffs.0.blocks"]


def test_a_verdict_whose_sentences_name_an_option_by_its_former_name_follows_from_its_trials(tmp_path):
    plan = make_plan(("on", "off"), blocks=8).model_copy(update={"pgtrial": __version__})
    study = write_study(tmp_path / "s", plan, run(plan, noisy({"off": 1.01}, sd=0.02)), Audit(findings=[]), "Enough?")
    build_report(study)
    path = study.path / "verdict.json"
    text = path.read_text()
    assert re.search(r"--more \d+\)", text)
    path.write_text(re.sub(r"--more (?=\d+\))", "--blocks ", text))
    assert differences(study) == []
    path.write_text(re.sub(r"--more \d+\)", "--more 1999)", text))
    assert [each.partition(" ")[0] for each in differences(study)] == ["sentences.0"]


@pytest.mark.parametrize(("version", "found"), [("0.1.0", []), (__version__, ["sentences.0"])])
def test_sentences_of_this_version_are_compared_and_those_of_another_are_not(tmp_path, version, found):
    plan = make_plan().model_copy(update={"pgtrial": version})
    study = write_study(tmp_path / "s", plan, run(plan, noisy({"off": 1.4})), Audit(findings=[]), "Of which version?")
    build_report(study)
    path = study.path / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sentences": ["b is faster, take it"]}))
    assert [each.partition(" ")[0] for each in differences(study)] == found


@pytest.mark.parametrize(
    ("number", "words", "rule"),
    [
        (6, "the mean over pairs of deployments with its 95% t interval", "One look, at the end"),
        (8, "the Hodges-Lehmann estimate over deployments with its sequential interval", "rule P9"),
    ],
)
def test_a_study_of_deployments_is_told_in_deployments(tmp_path, number, words, rule):
    plan = deployed(number, 2)
    trials = run(plan, peculiar(plan, effect=0.4))
    data = read_data(write_study(tmp_path / "study", plan, trials, Audit(findings=[]), "Is the other product faster?"))
    ratios, looks, blocks = ratio_table(data), look_table(data), block_table(data)
    assert words in ratios.caption
    assert rule in looks.caption
    assert "deployments" in ratios.heads
    assert (looks.heads[0], [row[0] for row in looks.rows]) == ("deployments", [str(number)])
    assert (blocks.heads[0], len(blocks.rows)) == ("deployment", number)
    assert "The findings of the audit tell what differs between them" in facts_tables(data)[0].caption
    assert (
        f"{number} of each arm, of which each block measures one pair; the verdict counts pairs of them"
        in dict(design(data)).values()
    )
    (chart,) = draw("blocks", data)
    assert "deployment by deployment" in chart.alt


def test_the_page_has_no_backticks_of_a_terminal_and_names_the_verdict_before_the_wide_columns(reports):
    directory = reports("demo").path
    text = (directory / "report.html").read_text()
    body = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert "<code>pgtrial selftest</code>" in body
    assert "`" not in body
    heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", body[body.index('id="ratio"') :])
    assert heads[:2] == ["arms", "verdict"]
