"""Every run of the corpus leaves the same words, status, log files and rows behind, whichever of the two does it."""

from __future__ import annotations

import pytest

from tests.engine.cases import Case, all_cases, perform

CASES = list(all_cases())


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_run_of_the_corpus_is_the_same(peers, corpus_database, tmp_path, case: Case):
    theirs, mine = (
        perform(case, program, corpus_database, directory)
        for program, directory in zip(peers, _directories(tmp_path), strict=True)
    )
    assert theirs.stdout + theirs.stderr, "the original has to say something"
    for words in case.words:
        assert words in theirs.stdout + theirs.stderr
    assert mine == theirs


def _directories(path):
    for name in ("theirs", "mine"):
        (path / name).mkdir()
        yield path / name


def test_the_corpus_is_large_and_each_of_its_runs_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) > 300
