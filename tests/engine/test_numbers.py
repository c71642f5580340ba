"""Options whose values are fractions are read as by the original, which reads them by `atof`."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.server

NUMBERS = [
    "0x10",
    "0x400",
    "0x1p3",
    "0x.8p1q",
    "0x",
    "0x1.8",
    "1e3",
    "1e",
    "1e-400",
    " 5",
    "5x",
    ".5",
    "5.",
    "+3",
    "1,5",
]
REFUSED = ["0", "-1", "", "x"]
ENDLESS = ["inf", "-inf", "nan", "-nan", "nan(1)", "infx", "1e400", "0x1p2000"]


@pytest.fixture
def said(peers, loaded, tmp_path):
    """Status, errors and the limit in the report of both, with these options."""

    def run(*args: str):
        results = []
        for program in peers:
            done = program.run(loaded(18), "-n", "-S", "-t", "1", *args, directory=tmp_path)
            results.append((done.status, done.stderr, re.findall(r"above the (\S+) ms latency limit", done.stdout)))
        return results

    return run


@pytest.mark.parametrize("number", NUMBERS + REFUSED)
def test_numbers(said, number):
    theirs, mine = said("-L", number)
    assert mine == theirs
    theirs, mine = said("--sampling-rate", number, "-l")
    assert mine == theirs


@pytest.mark.parametrize("number", ["0x400", "0x1p10q", "2e3x", *REFUSED])
def test_rates(said, number):
    theirs, mine = said("-R", number)
    assert mine == theirs


@pytest.mark.parametrize("number", ENDLESS)
def test_what_is_not_finite_is_refused(peers, loaded, number):
    """The original takes it, and limits by negative times or does not wait for its own schedule."""
    for option, name in (("-L", "latency limit"), ("-R", "rate limit"), ("--sampling-rate", "sampling rate")):
        done = peers[1].run(loaded(18), "-n", "-S", "-t", "1", "-l", option, number)
        assert (done.status, done.stderr) == (1, f'pgbench: error: invalid {name}: "{number}"\n')
