"""The words for counted instructions, and the places that have them: the short result, the report, the gate."""

from __future__ import annotations

import json

from pgtrial.model.records.facts import Audit
from pgtrial.model.records.instructions import UNNAMED, InstructionCounts
from pgtrial.report import mail
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.report.gate.outcome import Outcome
from pgtrial.report.gate.summary import summary
from pgtrial.report.instructions import instruction_sentences, instruction_texts
from pgtrial.report.sections import MAIL, sections
from tests.report.conftest import write_study
from tests.verdict.counts import BASE, GROWN, PLAN, count, result_of
from tests.verdict.studies import noisy, run


def test_the_text_has_both_numbers_and_the_function_that_grew():
    [text] = instruction_texts(result_of(count("base", BASE), count("head", GROWN)), "head")
    assert text == (
        "96,578 and 98,310 instructions per transaction (1.8% more); most of it in heap_getnext (+1,540) and ExecScan "
        "(+192)"
    )
    [sentence] = instruction_sentences(result_of(count("base", GROWN), count("head", BASE)), "head")
    assert sentence == (
        "On select-only, scale 10, base executes 98,310 and head 96,578 instructions per transaction (1.8% fewer; most "
        "of it in heap_getnext (-1,540) and ExecScan (-192))."
    )


def test_a_function_of_a_library_is_named_with_its_caller():
    libraries = {"memcpy": "libc.so.6"}
    before = count("base", BASE, programs=libraries, callers={"memcpy": {"heap_fill_tuple": 500, "ExecScan": 6_078}})
    after = count(
        "head",
        {**BASE, "memcpy": 9_578.0},
        programs=libraries,
        callers={"memcpy": {"heap_fill_tuple": 3_600, "ExecScan": 5_978}},
    )
    [text] = instruction_texts(result_of(before, after), "head")
    assert text.endswith("most of it in memcpy (+3,000, called by heap_fill_tuple)")


def test_a_difference_in_many_functions_is_not_put_down_to_one():
    base = {f"f{number}": 1_000.0 for number in range(40)}
    head = {name: 1_000.0 + place for place, name in enumerate(base)}
    [text] = instruction_texts(result_of(count("base", base), count("head", head)), "head")
    assert text.endswith("spread over 30 functions, f39 (+39) differs most")


def test_a_load_that_does_other_work_each_time_gets_no_difference():
    [text] = instruction_texts(result_of(count("base", BASE, spread=0.02), count("head", GROWN)), "head")
    assert text.endswith("(two counts of one arm differ by 2.0%, so this load cannot be counted)")


def test_several_loads_are_named():
    loads = ["select-only, scale 10", "tpcb-like, scale 10"]
    counts = [count(arm, own, load=load) for load in loads for arm, own in (("base", BASE), ("head", GROWN))]
    texts = instruction_texts(result_of(*counts), "head")
    assert [text.partition(": ")[0] for text in texts] == loads


def test_instructions_without_names_are_told():
    base = {**BASE, UNNAMED: 20_000.0}
    [text] = instruction_texts(result_of(count("base", base), count("head", base)), "head")
    assert "17% of them in functions without names" in text


def test_equal_counts_are_the_same_within_what_matters():
    [text] = instruction_texts(result_of(count("base", BASE), count("head", BASE)), "head")
    assert text == "96,578 and 96,578 instructions per transaction (the same within 0.02%)"


def measured(path, *counts):
    """Returns the data of a stored study with these counts."""
    study = write_study(path, PLAN, run(PLAN, noisy({"head": 0.99})), Audit(findings=[]), "Which?")
    study.write_instructions(InstructionCounts(counter="valgrind-3.19.0", counts=list(counts)))
    return read_data(study)


def test_the_short_result_the_report_and_the_json_have_the_counts(tmp_path):
    data = measured(tmp_path / "s", count("base", BASE), count("head", GROWN))
    [executed] = [line.text for line in brief(data.result, data.plan).headlines[0].lines if line.label == "executed"]
    assert executed.startswith("96,578 and 98,310 instructions per transaction (1.8% more)")
    [section] = [section for section in sections(data) if section.topic.key == "instructions"]
    assert [table.rows[0] for table in section.tables] == [
        ["select-only, scale 10", "head", "96,578", "98,310", "1.8% more", "0.000%"],
        ["heap_getnext", "postgres", "10,000", "11,540", "+1,540", "+1,540", "–"],
    ]
    assert "heap_getnext" in mail.render(data, sections(data, MAIL))
    [stored] = json.loads(data.result.model_dump_json())["instructions"]
    assert (stored["baseline_instructions"], stored["instructions"]) == (96_578, 98_310)


def test_a_study_without_counts_says_nothing_of_them(tmp_path):
    study = write_study(tmp_path / "s", PLAN, run(PLAN, noisy({"head": 0.99})), Audit(findings=[]), "Which?")
    data = read_data(study)
    assert all(line.label != "executed" for line in brief(data.result, data.plan).headlines[0].lines)
    assert all(section.topic.key != "instructions" for section in sections(data))
    assert "instructions" not in summary(data, Outcome(0, "x"), None).lower()
    assert "instructions" not in json.loads(data.result.model_dump_json())


def test_the_comment_of_a_gate_has_the_counts_and_no_mention_of_a_hostile_name(tmp_path):
    hostile = {**GROWN, "@maintainer <script> | x": 5_000.0}
    data = measured(tmp_path / "s", count("base", BASE), count("head", hostile))
    text = summary(data, Outcome(2, "undecided"), None)
    assert "#### Instructions per transaction" in text
    assert "base executes 96,578 and head 103,310 instructions per transaction" in text
    assert "@maintainer" not in text
    assert "<script>" not in text
