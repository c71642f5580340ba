"""How the number of a harness is found in what it prints, and what is said if it cannot be found."""

from __future__ import annotations

import pytest

from pgtrial.loads.printed_numbers import number_in
from pgtrial.model.errors import TrialError
from pgtrial.model.study.own_metrics import Printed

HAMMER = "Vuser 1:TEST RESULT : System achieved 123456 NOPM from 283740 PostgreSQL TPM\nVuser 1:FINISHED SUCCESS\n"
PGBENCH = "number of failed transactions: 0\nlatency average = 1.234 ms\ntps = 810.372 (without initial connection)\n"
K6 = '{"metrics": {"req": {"p(99.9)": 12.5, "rate": 300, "name": "req", "count": [1, 2], "slow": null}}}\n'


def number(text, pattern=None, json_path=None, unit=""):
    return number_in(text, Printed(pattern=pattern, json_path=json_path, unit=unit), "speed", "bench.sh")


@pytest.mark.parametrize(
    ("text", "pattern", "unit", "expected"),
    [
        (HAMMER, r"achieved (\d+) NOPM", "", 123456),
        (HAMMER, r"\d+(?= NOPM)", "", 123456),
        (PGBENCH, r"^tps = ([\d.]+)", "", 810.372),
        (PGBENCH, r"latency average = ([\d.]+)", "ms", 1.234),
        (PGBENCH, r"latency average = (.*) ms", "", 1.234),
        ("did 1,234,567.5 rows", r"did (\S+) rows", "", 1234567.5),
        ("took 1.5e-3 s", r"took (\S+)", "s", 0.0015),
        ("took 12 µs", r"took (\S+)", "us", 12),
        ("size 5 MB", r"size (\d+)", "MB", 5),
        ("42\n", None, "", 42),
    ],
)
def test_a_pattern_finds_one_number(text, pattern, unit, expected):
    assert number(text, pattern, unit=unit) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (K6, "metrics.req.rate", 300),
        (K6, "metrics.req.p(99.9)", 12.5),
        (K6, "metrics.req.count.1", 2),
        ("warming up\n" + K6 + "done\n", "metrics.req.rate", 300),
        ('[{"mean": 0.25}]', "0.mean", 0.25),
    ],
)
def test_a_path_leads_to_one_number_of_json(text, path, expected):
    assert number(text, json_path=path) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "pattern", "unit", "said"),
    [
        (
            "warming up\nno result\n",
            r"(\d+) NOPM",
            "",
            r"no number for speed that '\(\\d\+\) NOPM' matches; its last",
        ),
        ("", r"(\d+) NOPM", "", "it printed nothing"),
        (
            "10 NOPM\n12 NOPM\n",
            r"(\d+) NOPM",
            "",
            r"printed 2 numbers for speed .* \(10, 12\), but the pattern must match only one",
        ),
        ("1 2 3 4 5", r"\d", "", r"printed 5 numbers for speed .* \(1, 2, 3 and 2 more\)"),
        ("speed: fast", r"speed: (.*)", "", "printed 'fast' for speed, which is not a number"),
        ("speed: .", r"speed: (.*)", "", "which is not a number"),
        ("speed: 1.2.3", r"speed: (.*)", "", "which is not a number"),
        ("speed: 1,23", r"speed: (.*)", "", "which is not a number"),
        ("speed: 1e999", r"speed: (.*)", "", "arms cannot be compared by this value"),
        ("speed: -3", r"speed: (.*)", "", "must not be negative"),
        ("took 1.2 s", r"took ([\d.]+)", "ms", "printed speed in s, but the study says that its unit is ms"),
        ("took 1.2s", r"took ([\d.]+)", "ms", "printed speed in s, but the study says that its unit is ms"),
        (
            "took 1.2 s",
            r"took ([\d.]+)",
            "",
            "printed speed in s; let the pattern end with s, or give speed the unit s",
        ),
        ("1 2\n", None, "", "printed '1 2' for speed, which is not a number"),
        ("\n", None, "", "printed nothing, but it must print one number, speed"),
    ],
)
def test_what_is_no_number_is_said(text, pattern, unit, said):
    with pytest.raises(TrialError, match=said):
        number(text, pattern, unit=unit)


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (
            "no result",
            "rate",
            "printed no JSON, although speed is to be read from JSON at rate; its last line is 'no result'",
        ),
        ("{broken", "rate", "printed no JSON"),
        (
            K6,
            "metrics.req.mean",
            "printed JSON without metrics.req.mean, from which speed is read; its keys are metrics",
        ),
        ("[1]", "3", "it is a list of 1 item"),
        (K6, "metrics.req.name", "is the text 'req', but speed must be a single number"),
        (K6, "metrics.req.count", "is a list of 2 items"),
        (K6, "metrics.req.slow", "is null"),
        (K6, "metrics.req", "is a table"),
        ('{"a": true}', "a", "is true"),
        ('{"a.b": 1, "a": {"b": 2}}', "a.b", "leads to 2 values, but speed must be a single number"),
        ('{"a": NaN}', "a", "arms cannot be compared by this value"),
    ],
)
def test_what_is_no_number_of_json_is_said(text, path, said):
    with pytest.raises(TrialError, match=said):
        number(text, json_path=path)
