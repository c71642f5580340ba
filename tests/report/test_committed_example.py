"""The example in the documentation is a real study, and its verdict follows from its files bit for bit."""

from __future__ import annotations

import shutil
from pathlib import Path

from pgtrial.analyse.records import StudyResult
from pgtrial.analyse.words import interval_text
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "postgres-versions"


def test_the_committed_verdict_is_reproduced_from_the_committed_trials(tmp_path: Path) -> None:
    copy = tmp_path / "study"
    shutil.copytree(EXAMPLE, copy)
    (copy / "verdict.json").unlink()
    result = build_report(StudyDirectory.open(copy))
    assert (copy / "verdict.json").read_text() == (EXAMPLE / "verdict.json").read_text()
    assert (copy / "report.md").read_text() == (EXAMPLE / "report.md").read_text()
    assert result.trials_stored == result.trials_planned


def test_the_readme_tells_the_result_of_the_example() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    result = StudyResult.model_validate_json((EXAMPLE / "verdict.json").read_text())
    for claim in result.primary:
        assert claim.difference is not None
        assert f"| {claim.arm} |" in readme
        assert interval_text(claim.difference, sign=True) in readme
