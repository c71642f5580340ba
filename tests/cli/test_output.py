"""Texts of strangers, in study files, names, server messages and bundles, reach the terminal as plain text only."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table as RichTable
from rich.text import Text

from pgtrial.cli import main
from pgtrial.cli.output import json_text, line, print_message
from pgtrial.cli.progress import shown
from pgtrial.cli.terminal import Terminal
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, Second, StudyBegins, TrialBegins, TrialEnds
from pgtrial.model.printable import printable, printable_json
from pgtrial.model.records.facts import Audit, Facts, Finding
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import TIMELINE_SCHEMA
from tests.store.samples import completed_trial, encoded

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e[/b][red][link=http://evil]<script>alert(1)</script>\x7f\r\x08\ud800"
ARM, OTHER = "a[/b]", "b[red]<script>alert(1)"


def obeyed(text: str) -> list[str]:
    """Returns the characters of a text that control a terminal, or that change the order in which a reader sees the
    text.
    """
    return [
        character
        for character in text
        if (ord(character) < 0x20 and character not in "\n\t")
        or 0x7F <= ord(character) < 0xA0
        or character in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
        or 0xD800 <= ord(character) < 0xE000
    ]


@given(st.text(st.characters(categories=None)))
def test_nothing_is_left_for_a_terminal_to_obey_and_all_else_stays(text):
    shown_text = printable(text)
    assert obeyed(shown_text) == []
    assert len(shown_text) == len(text)
    for before, after in zip(text, shown_text, strict=True):
        assert before == after or obeyed(before) or 0xE0000 <= ord(before) < 0xE0080
    assert printable(shown_text) == shown_text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same(text):
    as_json = printable_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(as_json) == {text: [text]}
    assert obeyed(as_json) == []


def test_lines_messages_and_json(capsys):
    line(EVIL)
    print_message(EVIL)
    json_text(json.dumps(EVIL, ensure_ascii=False))
    captured = capsys.readouterr()
    assert obeyed(captured.out) == obeyed(captured.err) == []
    assert "<script>" in captured.out


def test_what_is_drawn_is_no_markup_and_holds_no_commands(capsys):
    table = RichTable(EVIL, title=EVIL)
    table.add_row(EVIL)
    table.add_row(Text(EVIL))
    terminal = Terminal()
    terminal.print(EVIL, table)
    terminal.print_line(EVIL)
    out = capsys.readouterr().out
    assert obeyed(out) == []
    assert out.count("[red]") == out.count("[/b]") >= 4


@pytest.fixture
def study(tmp_path) -> StudyDirectory:
    """Returns a study whose question, arms, facts, findings and failures contain texts that an attacker could have
    written.
    """
    arms = {ARM: {}, OTHER: {"settings": {"work_mem": "8MB"}}}
    asked = {"study": {"question": EVIL[:-1]}, "arms": arms, "verdict": {"blocks": 8}}
    spec = build_study(asked, "test", tmp_path)
    study = StudyDirectory.create(tmp_path / "s", spec, make_plan(spec, 5, "2026-11-20T14:12:00+00:00"))
    for planned in study.plan.trials:
        folder = study.begin_trial(planned)
        rows = [["measure", second, 100, 0, 1.0, 1.0, 1.0, 1.0, 1.0] for second in range(3)]
        pl.DataFrame(rows, schema=TIMELINE_SCHEMA, orient="row").write_parquet(folder / "timeline.parquet")
        (folder / "latency.hdr").write_text(encoded(100, 200, 300) + "\n")
        trial = completed_trial(study, planned)
        failed = {"status": "failed", "reason": EVIL[:-1], "measured": None} if planned.index == 3 else {}
        study.write_trials([trial.model_copy(update=failed)])
    for arm in study.plan.arms:
        study.write_facts(Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts={"server": {"version": EVIL[:-1]}}))
    finding = Finding(rule="r", severity="warning", arms=[ARM], message=EVIL[:-1], cure=EVIL[:-1])
    study.write_audit(Audit(findings=[finding]))
    return study


@pytest.mark.parametrize(
    "command", [["verdict"], ["verdict", "--all"], ["verdict", "--json"], ["facts"], ["facts", "--json"], ["verify"]]
)
def test_commands_on_a_stored_study(study, command, capsys):
    with pytest.raises(SystemExit):
        main([command[0], str(study.path), *command[1:]])
    captured = capsys.readouterr()
    assert obeyed(captured.out + captured.err) == []
    assert captured.out + captured.err


def test_a_plan_and_the_sentence_on_a_bad_study_file(study, tmp_path, capsys):
    for toml in ((study.path / "study.toml").read_text(), '[study]\nquestion = "a"\n["\\u001b[2J"]\n'):
        (tmp_path / "s.toml").write_text(toml)
        for more in ([], ["--json"]):
            with pytest.raises(SystemExit):
                main(["plan", str(tmp_path / "s.toml"), *more])
            captured = capsys.readouterr()
            assert obeyed(captured.out + captured.err) == []
            assert captured.out + captured.err


def test_a_file_name_that_is_no_text_is_named_in_a_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["verdict", f"{tmp_path}/\udcff\x1b[2J"])
    assert end.value.code != 0
    assert obeyed(capsys.readouterr().err) == []


def test_the_report_in_markdown_and_the_page(study):
    build_report(study)
    markdown = (study.path / "report.md").read_text()
    assert obeyed(markdown) == []
    assert "\\[red\\]" in markdown
    assert "<script>alert" not in markdown
    page = (study.path / "report.html").read_text()
    assert "<script>alert" not in page
    assert obeyed(page) == []
    assert printable(EVIL[:-1].partition("<")[0]) in page


def test_a_fault_of_pgtrials_own_is_a_sentence_too(monkeypatch, capsys):
    def fail(called):
        raise ValueError(f"{called} {EVIL}")

    monkeypatch.setattr("pgtrial.cli.application", fail)
    for more in ([], ["--debug"]):
        with pytest.raises(SystemExit) as end:
            main(["list", *more])
        assert end.value.code == 3
        said = capsys.readouterr().err
        assert said.splitlines()[-1].startswith("pgtrial: error: ValueError: list ")
        assert ("Traceback" in said) == bool(more)
        assert obeyed(said) == []


@pytest.mark.parametrize("command", ["verdict", "report", "verify", "facts"])
@pytest.mark.parametrize(
    "forged", [{"cpu": {"model": -(2**63), "cores": "many"}}, {"network": {"path": [], "tls": {}}}]
)
def test_facts_of_other_types_are_no_traceback(study, forged, command, capsys):
    for arm in study.plan.arms:
        study.write_facts(Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts=forged))
    with pytest.raises(SystemExit):
        main([command, str(study.path)])
    assert capsys.readouterr().err.count("\n") <= 1


@pytest.mark.parametrize("as_terminal", [False, True])
def test_the_progress_of_a_run(study, as_terminal, monkeypatch, capsys):
    if as_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("NO_COLOR", "1")
    planned, (trial, *_) = study.plan.trials[3], study.trials()[3:]
    with shown(Terminal(), as_json=False) as listener:
        listener(Preparing(EVIL))
        listener(StudyBegins(directory=study.path, planned=8, stored=0, blocks=8, left_s=9.0))
        point = study.plan.load_points[0]
        listener(TrialBegins(trial=planned, load_point=point, number=1, planned=8, blocks=8, left_s=9.0))
        listener(Second(arm=ARM, phase="measure", second=1, tps=100.0))
        listener(TrialEnds(trial))
    out = capsys.readouterr().out
    commands = out if not as_terminal else out.replace("\x1b[", "")
    assert "\x1b]0;" not in out
    assert "\x1b[31m" not in out
    assert "\x9b" not in out
    assert [character for character in obeyed(commands) if not as_terminal or character not in "\r\x1b"] == []
    assert "[/b]" in out


def test_a_bundle_whose_texts_are_hostile(study, tmp_path, capsys):
    build_report(study)
    with pytest.raises(SystemExit):
        main(["bundle", str(study.path), "-o", str(tmp_path / "b.tar.xz")])
    shutil.rmtree(study.path)
    with pytest.raises(SystemExit):
        main(["verdict", "--all", str(tmp_path / "b.tar.xz")])
    captured = capsys.readouterr()
    assert obeyed(captured.out + captured.err) == []
