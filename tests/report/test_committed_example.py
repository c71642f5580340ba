"""The examples in the documentation are real studies, and their verdicts follow from their files, but for the last
digits of figures, which depend on the processor."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pgtrial.model.records.results import StudyResult
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report, differences
from pgtrial.report.markdown import escaped
from pgtrial.store.directory import StudyDirectory

from ..conftest import EXAMPLES, Example

NAMES = (
    "app-tasks",
    "create-index",
    "filesystem-durability",
    "huge-pages",
    "huge-pages-1gb",
    "managed-cloud",
    "memory-cliff",
    "order-entry",
    "os-comparison",
    "postgres-versions",
    "replay-demo",
    "reports-15-18",
)

COMPUTED = ("verdict.json", "published.json")


def test_these_are_all_examples_and_they_are_small() -> None:
    found = sorted(EXAMPLES.iterdir())
    assert [path.name for path in found if path.suffix != ".html"] == sorted(f"{name}.tar.xz" for name in NAMES)
    assert sum(path.stat().st_size for path in found) < 12_000_000


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_verdict_is_reproduced_from_the_committed_trials(
    tmp_path: Path, name: str, example: Example
) -> None:
    stored, copy = example(name).path, tmp_path / "study"
    shutil.copytree(stored, copy)
    for file in COMPUTED:
        (copy / file).unlink(missing_ok=True)
    result = build_report(StudyDirectory.open(copy))
    for file in COMPUTED:
        assert (copy / file).exists() == (stored / file).exists()
        if (stored / file).exists():
            assert json.loads((copy / file).read_text()).keys() == json.loads((stored / file).read_text()).keys()
    findings = json.loads((copy / "verdict.json").read_text())["findings"]
    (copy / "verdict.json").write_bytes((stored / "verdict.json").read_bytes())
    assert differences(StudyDirectory.open(copy), result) == []
    if (stored / "published.json").exists():
        assert (copy / "published.json").read_text() == (stored / "published.json").read_text()
    committed = StudyResult.model_validate_json((stored / "verdict.json").read_text())
    headlines = brief(committed, StudyDirectory.open(stored).plan).headlines
    assert len(headlines) == max(len(committed.primary), 1)
    assert len(findings) == len(committed.findings)
    report = (copy / "report.md").read_text()
    assert report.startswith("# ")
    for headline in headlines:
        assert f"**{escaped(headline.text)}**\n" in report
        for line in headline.lines:
            assert f"- {line.label}: {escaped(line.text)}\n" in report
    for finding in findings:
        assert escaped(finding["message"]) in report
    assert result.trials_stored == len(list((stored / "trials").iterdir()))


@pytest.mark.parametrize(("factor", "is_equal"), [(1 + 1e-13, True), (1 + 1e-6, False)])
def test_a_figure_may_differ_in_its_last_digits_alone(
    tmp_path: Path, example: Example, factor: float, is_equal: bool
) -> None:
    copy = tmp_path / "study"
    shutil.copytree(example("memory-cliff").path, copy)
    stored = json.loads((copy / "verdict.json").read_text())
    stored["cliffs"][0]["line"][0][1] *= factor
    (copy / "verdict.json").write_text(json.dumps(stored))
    assert (differences(StudyDirectory.open(copy)) == []) is is_equal


@pytest.mark.parametrize("name", NAMES)
def test_no_committed_study_tells_where_it_was_made(name: str, example: Example) -> None:
    for file in example(name).path.rglob("*"):
        if file.suffix in (".json", ".toml", ".md", ".html"):
            assert "/work/" not in file.read_text(), file


def test_the_readme_tells_the_result_of_the_example(example: Example) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    stored = example("postgres-versions").path / "verdict.json"
    result = StudyResult.model_validate_json(stored.read_text())
    for claim in result.primary:
        assert claim.difference is not None
        assert f"| {claim.arm} |" in readme
        assert claim.difference.text() in readme
