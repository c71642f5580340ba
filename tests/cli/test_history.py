"""`pgtrial history` and `pgtrial publish`: what bundles add, what is refused, and pages without strangers' commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pgtrial.cli.history import history_command
from pgtrial.cli.publish import publish_command
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.facts import Audit
from pgtrial.report.build import build_report
from pgtrial.report.data import read_measured
from pgtrial.report.history import entries_of, file_name, machine_of, series_of
from pgtrial.report.static_pages import history_page
from pgtrial.store.bundle import write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.histories.directory import HistoryDirectory
from pgtrial.store.histories.stores import read_history, store_of
from tests.conftest import EXAMPLES
from tests.histories import entry, levels, only_history
from tests.report.conftest import facts, write_study
from tests.repositories import Repository
from tests.verdict.studies import make_plan, noisy, run

HOSTILE = "</svg><script>alert(1)</script> ]]> {{ 7 * 7 }}"
COMMITS = ["1" * 40, "2" * 40]


# ---- series


def test_a_change_has_its_commits_and_its_size():
    (series,) = series_of(levels(0.0, -0.05))
    (change,) = series.changes
    assert (change.before, change.after, change.commits) == ("commit 9", "commit 10", (10, 10))
    assert change.difference.low < -0.05 < change.difference.high
    assert change.sentence.startswith("it fell by 5")
    assert series_of(levels(0.0, 0.0))[0].changes == []


def test_a_change_is_confirmed_between_commits_that_are_surely_on_its_two_levels():
    noise = 0.02 * np.random.default_rng(3).standard_normal(30)
    levels_of = [0.0] * 20 + [-0.05] * 10
    (series,) = series_of([entry(place, float(level + noise[place])) for place, level in enumerate(levels_of)])
    (change,) = series.changes
    assert (change.before, change.after, change.surely) == ("commit 19", "commit 20", ("commit 18", "commit 23"))
    assert [each.commit for each in series.around(change)] == ["commit 18", "commit 23"]
    assert "; with 95% it is between commit 18 and commit 23; the levels rest on" in change.sentence


def test_machines_make_series_of_their_own():
    other = [one.model_copy(update={"machine": "another", "study": f"of another {one.study}"}) for one in levels(-0.05)]
    latest = [one.model_copy(update={"at": one.at.replace("2026", "2027")}) for one in other]
    series = series_of([*levels(0.0), *latest])
    assert [(of.machine, len(of.entries), of.changes) for of in series] == [
        ("another", 10, []),
        ("AMD EPYC, 2 CPUs, 8 GB", 10, []),
    ]


def test_commits_without_an_interval_are_gaps():
    entries = levels(0.0, -0.05)
    entries[9] = entry(9, None, verdict="withheld")
    entries[12] = entry(12, -1.0)
    (change,) = series_of(entries)[0].changes
    assert (change.before, change.after, change.commits) == ("commit 8", "commit 10", (9, 9))


def test_a_machine_is_its_processors_and_memory():
    known = facts("on")
    cpu = {**known.facts["cpu"], "logical": 2}
    assert machine_of(known.model_copy(update={"facts": {**known.facts, "cpu": cpu}})) == "AMD EPYC 7B13, 2 CPUs, 8 GB"
    assert machine_of(None) == "an unknown machine"


# ---- files


def test_entries_are_kept_in_the_order_of_commits_and_once(tmp_path):
    path, place = tmp_path / "history" / "s.jsonl", HistoryDirectory(tmp_path / "history")
    later, earlier = entry(2, 0.1), entry(1, 0.2)
    assert place.add("s", [later])[1:] == (1, 0)
    assert place.add("s", [earlier, later])[1:] == (1, 0)
    assert read_history(place, "s") == [earlier, later]
    before = path.stat().st_mtime_ns
    assert place.add("s", [earlier, later])[1:] == (0, 0)
    assert path.stat().st_mtime_ns == before
    further = later.model_copy(update={"blocks": 18})
    assert place.add("s", [further])[1:] == (0, 1)
    assert read_history(place, "s") == [earlier, further]
    assert len(path.read_text().splitlines()) == 2
    assert place.names() == ["s"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is damaged (it is not JSON); remove the line, and add its bundle again"),
        ('{"format": 1}', "line 2 is damaged (study: Field required)"),
        ('{"format": 9}', "line 2 was written by a newer pgtrial (format 9); upgrade"),
        ("[]", "line 2 is damaged"),
        (
            entry(2, 0.1).model_dump_json().replace("0.1,", "-1.1,"),
            "(difference: a difference below -1 would be a negative speed)",
        ),
        (entry(2, 0.1).model_dump_json().replace("0.1,", "NaN,"), "line 2 is damaged (it is not JSON)"),
        (
            entry(2, 0.1).model_dump_json().replace("+00:00", "").replace("Z", ""),
            "(at: a time must have an offset from UTC",
        ),
    ],
)
def test_a_line_that_was_edited_is_named(tmp_path, line, said):
    path, place = tmp_path / "s.jsonl", HistoryDirectory(tmp_path)
    place.add("s", [entry(1, 0.1)])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(StoreError) as error:
        read_history(place, "s")
    assert said in str(error.value)
    with pytest.raises(StoreError):
        place.add("s", [entry(2, 0.1)])


# ---- bundles


@pytest.fixture
def study(tmp_path):
    """Writes a study of two arms, built from two commits, in a directory of its name."""

    def write(name: str, ratio: float = 0.94, *, at: str = "2026-11-20T14:12:03+00:00", commits=COMMITS, **load):
        plan = make_plan(blocks=12).model_copy(update={"created": at, "looks": [8, 12]})
        trials = run(plan, noisy({"off": ratio}, sd=0.002))
        written = write_study(tmp_path / name, plan, trials, Audit(findings=[]), "Is it slower?")
        frozen = (written.path / "study.toml").read_text()
        for arm, commit in zip(("on", "off"), commits, strict=True):
            built = f'setup_sql = ["git:/{name}/{arm}@{commit}"]'
            frozen = re.sub(rf"(\[arms.{arm}\][^\[]*)setup_sql = \[\]", rf"\g<1>{built}", frozen)
        for key, value in load.items():
            frozen = re.sub(rf"\n{key} = .*", f"\n{key} = {value}", frozen)
        plan_json = json.loads((written.path / "plan.json").read_text())
        plan_json.pop("sha256")
        (written.path / "plan.json").write_text(json.dumps(plan_json))
        (written.path / "study.toml").write_text(frozen)
        return written.path

    return write


def test_a_bundle_adds_its_commit_against_the_reference(tmp_path, study, capsys):
    directory = tmp_path / "history"
    first, second = study("one"), study("two", 1.0, at="2026-11-21T14:12:03+00:00", commits=[COMMITS[0], "3" * 40])
    history_command("add", [first, second, first], named=str(directory))
    out = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[2] for line in out] == ["1 new commit", "1 new commit", "0 new commits"]
    entries = only_history(directory)
    assert [(one.commit, one.reference, one.verdict) for one in entries] == [
        (COMMITS[1], COMMITS[0], "worse"),
        ("3" * 40, COMMITS[0], "equivalent"),
    ]
    assert entries[0].machine == "AMD EPYC 7B13, 8 GB"
    assert entries[0].setup == {
        "settings": {"synchronous_commit": "off"},
        "setup_sql": [f"git:/one/off@{COMMITS[1]}"],
    }


def test_another_load_or_reference_begins_a_history_of_its_own(tmp_path, study, capsys):
    directory = tmp_path / "history"
    paths = [study("a"), study("b", commits=["4" * 40, COMMITS[1]]), study("c", clients="[3]")]
    history_command("add", paths, named=str(directory))
    assert len(HistoryDirectory(directory).names()) == 3
    said = capsys.readouterr().err
    assert said.count("starts a new history, since its load, data, server or reference differs from ") == 2


def test_a_commit_and_its_time_can_be_named(tmp_path, study):
    directory = tmp_path / "history"
    history_command("add", [study("a")], named=str(directory), commit="v2", date="2026-01-02T03:00+01:00")
    (one,) = only_history(directory)
    assert (one.commit, one.at) == ("v2", "2026-01-02T02:00:00+00:00")


def test_a_study_whose_verdict_was_edited_adds_nothing(tmp_path, study):
    path = study("a")
    build_report(StudyDirectory.open(path))
    verdict = json.loads((path / "verdict.json").read_text())
    verdict["primary"][0]["verdict"] = "better"
    (path / "verdict.json").write_text(json.dumps(verdict))
    words = r"its verdict does not follow from its trials: .* in verdict.json and \"worse\" .*; `pgtrial report"
    with pytest.raises(StoreError, match=words):
        history_command("add", [path], named=str(tmp_path / "history"))
    assert not (tmp_path / "history").exists()


def test_results_of_another_machine_begin_a_series_which_is_said(tmp_path, study, capsys):
    path, bundle = tmp_path / "history", study("a")
    history_command("add", [bundle], named=str(path))
    (name,) = HistoryDirectory(path).names()
    elsewhere = [one.model_copy(update={"machine": "another", "study": "x"}) for one in only_history(path)]
    (path / f"{name}.jsonl").unlink()
    HistoryDirectory(path).add(name, elsewhere)
    for _ in range(2):
        history_command("add", [bundle], named=str(path))
    message = "a starts a new series: it ran on AMD EPYC 7B13, 8 GB, and the history has results of another"
    assert capsys.readouterr().err.count(message) == 1


def test_several_arms_have_an_entry_each(example):
    data = read_measured(example("postgres-versions"))
    entries = entries_of(data)
    assert [(one.commit, one.reference) for one in entries] == [("16", "15"), ("17", "15"), ("18", "15")]
    assert file_name(data.spec).startswith("postgres-versions-")
    withheld = [claim.model_copy(update={"verdict": "withheld"}) for claim in data.result.primary]
    hidden = replace(data, result=data.result.model_copy(update={"primary": withheld}))
    assert [one.difference for one in entries_of(hidden)] == [None] * 3


@pytest.mark.parametrize(
    ("action", "given", "options", "said"),
    [
        ("add", [], {}, "name the bundles whose results `pgtrial history add` adds"),
        ("add", ["a", "b"], {"commit": "v1"}, "--commit takes the name of one commit"),
        ("add", ["a"], {"date": "soon"}, "--date 'soon' is not a time"),
        ("show", [], {"commit": "v1"}, "--commit and --date apply only to `pgtrial history add`"),
        ("show", ["x"], {}, "there is no history with the name x; the names are s"),
        ("add", [str(EXAMPLES / "huge-pages-1gb.tar.xz")], {"commit": "v1"}, "so that --commit would name all of them"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, action, given, options, said):
    HistoryDirectory(tmp_path).add("s", [entry(1, 0.1)])
    with pytest.raises(StudyError, match=said.replace("(", r"\(")):
        history_command(action, [Path(name) for name in given], named=str(tmp_path), **options)


def test_a_directory_without_a_history_is_answered_with_what_makes_one(tmp_path):
    with pytest.raises(StoreError, match=r"there is no history in .*; `pgtrial history add BUNDLE` starts one"):
        history_command("show", named=str(tmp_path / "absent"))


def test_a_history_is_shown_with_what_confirms_its_change(tmp_path, capsys):
    HistoryDirectory(tmp_path).add("s", levels(0.0, -0.05))
    history_command("show", named=str(tmp_path))
    out = capsys.readouterr().out
    assert "2026-11-11: it fell by 5" in out
    assert "last change, measure both commits around it again: pgtrial history confirm --study FILE" in out
    history_command("show", [Path("s")], named=str(tmp_path), json=True)
    (series,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (series["history"], len(series["entries"]), series["changes"][0]["after"]) == ("s", 20, "commit 10")


def test_a_change_is_confirmed_by_a_trial_of_its_two_commits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text('[load]\nworkload = "select-only"\n')
    begun = []
    monkeypatch.setattr("pgtrial.cli.history.run_gate", lambda spec, rules: begun.append(spec) or 1)
    repository = Repository(tmp_path / "history")
    made = [repository.commit(f"{place}", {}) for place in (1, 2)]
    setups = [{"settings": {"work_mem": f"{place + 1}MB"}} for place in range(20)]
    setups[9]["extensions"] = [f"git:/builds/elsewhere@{made[0]}"]
    entries = [one.model_copy(update={"setup": setup}) for one, setup in zip(levels(0.0, -0.05), setups, strict=True)]
    HistoryDirectory(Path("history")).add("s", entries)
    with pytest.raises(StudyError, match="--study FILE is missing"):
        history_command("confirm")
    with pytest.raises(StudyError, match="there is no terminal to ask at; read what is shown above, and add --trust"):
        history_command("confirm", study="s.toml", budget="20min")
    assert begun == []
    assert history_command("confirm", study="s.toml", budget="20min", trust=True) == 1
    (spec,) = begun
    assert spec.arms["commit 9"].extensions == [f"git:{repository.path}@{made[0]}"]
    assert {arm: setup.settings for arm, setup in spec.arms.items()} == {
        "commit 9": {"work_mem": "10MB"},
        "commit 10": {"work_mem": "11MB"},
    }
    assert (spec.verdict.budget, spec.load.workload) == (1200.0, ["select-only"])
    assert "it fell by 5" in capsys.readouterr().out


def test_there_may_be_nothing_to_confirm_or_no_set_up(tmp_path, capsys):
    HistoryDirectory(tmp_path).add("s", levels(0.0, 0.0))
    assert history_command("confirm", named=str(tmp_path)) == 0
    assert "no change of the speed is known" in capsys.readouterr().out
    HistoryDirectory(tmp_path).add("t", levels(0.0, -0.05))
    with pytest.raises(StudyError, match="the history does not contain the set-up of commit 9"):
        history_command("confirm", named=str(tmp_path), study="s.toml")


def test_the_page_of_a_history_has_its_series_as_text(tmp_path):
    entries = [one.model_copy(update={"commit": f"{HOSTILE} {one.commit}"}) for one in levels(0.0, -0.05)]
    page = history_page({HOSTILE: series_of([*entries, entry(30, None)])})
    assert "<script" not in page
    assert page.count("<circle") == 20
    assert page.count('class="change"') == 1
    assert "it fell by 5" in page
    HistoryDirectory(tmp_path).add("s", entries)
    history_command("page", named=str(tmp_path), output=tmp_path / "h.html")
    assert (tmp_path / "h.html").read_text().count("<circle") == 20


# ---- many studies


def test_studies_are_published_by_their_question(tmp_path, study, capsys):
    folder = tmp_path / "bundles"
    folder.mkdir()
    mine = StudyDirectory.open(study("bundles/index", 1.0))
    build_report(mine)
    write_bundle(mine, folder / "index.tar.xz", everything=False)
    (folder / "damaged.tar.xz").write_bytes(b"no bundle")
    site = tmp_path / "site"
    assert publish_command([folder], site) == 2
    (address,) = {path.name for path in site.iterdir()} - {"index.html"}
    assert re.fullmatch(r"index-[0-9a-f]{10}\.html", address)
    page = (site / "index.html").read_text()
    assert "2 studies" in page
    assert "<h2>Is it slower?</h2>" in page
    assert f'<a href="{address}">index</a>' in page
    assert "<strong>equivalent</strong>" in page
    assert "damaged.tar.xz is not a bundle" in page
    said = capsys.readouterr()
    assert said.out == f"{site / 'index.html'}\n"
    assert "warning: " in said.err
    assert "damaged.tar.xz is not a bundle" in said.err
    (folder / "damaged.tar.xz").unlink()
    assert publish_command([folder], site) == 0


def test_no_verdict_of_an_altered_bundle_is_published(tmp_path, study):
    mine = StudyDirectory.open(study("mine"))
    build_report(mine)
    bundle = tmp_path / "mine.tar.xz"
    write_bundle(mine, bundle, everything=False)
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 1
    bundle.write_bytes(content)
    assert publish_command([bundle], tmp_path / "site") == 2
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["index.html"]
    page = (tmp_path / "site" / "index.html").read_text()
    assert "<strong>unreadable</strong>" in page
    assert "slower than on" not in page


def test_what_cannot_be_published_is_one_sentence(tmp_path, study):
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        StudyError, match=r"there is no study in .*empty; name bundles, study directories, or folders that contain them"
    ):
        publish_command([tmp_path / "empty"], tmp_path / "site")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file: File exists; use -o to choose a directory that you can write"):
        publish_command([study("a")], tmp_path / "file")


# ---- on a branch


def test_the_lines_of_the_page_keep_a_history_on_a_branch(tmp_path, study):
    """Runs the commands of docs/history.md in two CI jobs. The push of one job comes too late and is refused, so that
    it runs again.
    """
    page = (EXAMPLES.parent / "history.md").read_text().partition("## On a branch")[2]
    lines = page.split("```")[1].removeprefix("sh\n")
    origin = Repository(tmp_path / "origin")
    origin.commit("first", {"a.c": ""})
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def job(name: str, script: str = lines) -> int:
        clone = tmp_path / f"clone {name}"
        if not clone.is_dir():
            origin.git("clone", "--quiet", ".", str(clone))
            commits = [COMMITS[0], name * 40]
            study(f"study-{name}", commits=commits, at=f"2026-11-2{name}T14:12:03+00:00").rename(clone / "gate.tar.xz")
        return subprocess.run(["sh", "-ec", script], cwd=clone, env=environment, check=False).returncode

    until_push, push = lines.rstrip().rsplit("\n", 1)
    assert job("1", until_push) == 0
    assert job("2") == 0
    assert job("1", push) != 0
    assert job("1") == 0
    place = store_of(f"git:{origin.path}@speed")
    (name,) = place.names()
    assert [one.commit for one in read_history(place, name)] == ["1" * 40, "2" * 40]
    assert origin.git("rev-list", "--count", "speed") == "2"
