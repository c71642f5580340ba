"""Tests that every run of the corpus has the same output, exit status, log files and rows with pgbench and with the
engine.
"""

from __future__ import annotations

import pytest

from tests.engine.cases import Case, all_cases, perform

CASES = list(all_cases())


@pytest.mark.server
@pytest.mark.like_pgbench
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_run_of_the_corpus_is_the_same(both, corpus_database, tmp_path, case: Case):
    def act(program):
        directory = tmp_path / program.name
        directory.mkdir()
        return perform(case, program, corpus_database, directory)

    theirs, mine = both(act, file=f"corpus/{case.file}")
    assert theirs["stdout"] + theirs["stderr"], "the original has to say something"
    for words in case.words:
        assert words in theirs["stdout"] + theirs["stderr"]
    assert mine == theirs


def test_the_corpus_is_large_and_each_of_its_runs_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) > 300
