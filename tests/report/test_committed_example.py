"""The examples in the documentation are real studies, and their verdicts follow from their files bit for bit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgtrial.model.records.results import StudyResult
from pgtrial.report.build import build_report
from pgtrial.report.words import interval_text
from pgtrial.store.directory import StudyDirectory

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAMES = (
    "app-tasks",
    "filesystem-durability",
    "huge-pages",
    "huge-pages-1gb",
    "managed-cloud",
    "os-comparison",
    "postgres-versions",
)

WRITTEN = ("verdict.json", "published.json", "report.md")
"""What the lab computes from a study; report.html says the same, with the code that draws it."""


def test_these_are_all_examples() -> None:
    assert sorted(path.parent.name for path in EXAMPLES.glob("*/study.toml")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_verdict_is_reproduced_from_the_committed_trials(tmp_path: Path, name: str) -> None:
    example, copy = EXAMPLES / name, tmp_path / "study"
    shutil.copytree(example, copy)
    committed = {file: (copy / file).read_bytes() for file in WRITTEN if (copy / file).exists()}
    for file in committed:
        (copy / file).unlink()
    result = build_report(StudyDirectory.open(copy))
    assert committed == {file: (copy / file).read_bytes() for file in WRITTEN if (copy / file).exists()}
    assert result.trials_stored == len(list((example / "trials").iterdir()))


@pytest.mark.parametrize("name", NAMES)
def test_no_committed_study_tells_where_it_was_made(name: str) -> None:
    for file in (EXAMPLES / name).rglob("*"):
        if file.suffix in (".json", ".toml", ".md", ".html"):
            assert "/work/" not in file.read_text(), file


def test_the_readme_tells_the_result_of_the_example() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    result = StudyResult.model_validate_json((EXAMPLES / "postgres-versions" / "verdict.json").read_text())
    for claim in result.primary:
        assert claim.difference is not None
        assert f"| {claim.arm} |" in readme
        assert interval_text(claim.difference, sign=True) in readme
