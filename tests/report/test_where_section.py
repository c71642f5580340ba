"""The report tells where each piece ran, where that is more than one machine."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from pgtrial.cli.verdict import in_full
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.model.records.results import StudyResult
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.report.build import build_report
from pgtrial.report.data import read_data
from pgtrial.report.tables.where import where_tables
from pgtrial.store.directory import StudyDirectory
from tests.verdict.fleets import share
from tests.verdict.studies import make_plan, noisy, run

from .conftest import Studies, write_study

SPEEDS = {"10.0.0.21": 100.0, "10.0.0.22": 101.0, "10.0.0.23": 70.0}


@pytest.fixture(scope="module")
def spread_out(tmp_path_factory: pytest.TempPathFactory) -> StudyDirectory:
    """A study with two servers by ssh, one of them on a more distant FreeBSD host, and a fleet. One machine of the
    fleet is slow, since it is far from both servers.
    """
    hosts = {
        "on": [ServerHost(label="pg@debian", by="ssh", address="10.0.0.11")],
        "off": [ServerHost(label="pg@freebsd", by="ssh", address="10.0.0.12")],
    }
    plan = make_plan().model_copy(update={"hosts": hosts})
    clock = {"start_skew_us": -1250.0, "clock_offset_us": 12_400.0, "offset_error_us": 30.0}
    trials = []
    for trial in run(plan, noisy({"off": 1.4})):
        far = 80.0 if trial.arm == "off" else 0.0
        machines = [
            share(
                name, speed, **clock, with_lab=False, round_trip_us=far + (60.0 if speed > 99 else 400.0 + trial.block)
            )
            for name, speed in SPEEDS.items()
        ]
        trials.append(trial.model_copy(update={"machines": machines, "round_trip_us": 100.0 + far}))
    study = write_study(
        tmp_path_factory.mktemp("spread") / "study", plan, trials, Audit(findings=[]), "Which host is faster?"
    )
    for arm, system in (("on", "Debian 12"), ("off", None)):
        (study.path / "facts" / f"{arm}.json").unlink()
        study.write_facts(
            Facts(
                arm=arm,
                collected="now",
                facts={
                    "client": {"connection": "over the network", "distribution": "Debian 13", "kernel": "6.12"},
                    "os": {"system": "FreeBSD", "distribution": system, "kernel": "6.1" if system else "14.3"},
                    "network": {"path": "network", "interface": "eth0", "mtu": 9000, "tls": "none"},
                    "probes": {"bandwidth_mb_s": 1170.0, "clock_offset_us": 3000.0, "clock_offset_error_us": 50.0},
                },
            )
        )
    build_report(study)
    return study


def test_each_piece_is_told_with_its_machine(spread_out: StudyDirectory) -> None:
    pieces, ways, from_fleet, fleet = where_tables(read_data(spread_out))
    assert pieces.rows == [
        ["the lab", "the lab's machine", "Debian 13, 6.12", "–"],
        ["the load", "a fleet of 3 machines", "–", "–"],
        ["the server of on", "pg@debian (ssh)", "Debian 12, 6.1", "10.0.0.11"],
        ["the server of off", "pg@freebsd (ssh)", "FreeBSD, 14.3", "10.0.0.12"],
    ]
    assert ways.rows[1] == ["off", "network", "eth0", "9000", "none", "180", "180 to 180", "8", "1,170", "+3.00 ± 0.05"]
    assert "The load did not use these paths" in ways.caption
    assert (from_fleet.heads, from_fleet.marked) == (["machine", "the lab's own", "to on", "to off"], {2})
    assert from_fleet.rows[1:] == [
        ["10.0.0.22", "no", "60 (60 to 60)", "140 (140 to 140)"],
        ["10.0.0.23", "no", "404 (400 to 407) (far)", "484 (480 to 487) (far)"],
    ]
    assert fleet.marked == {2}
    assert fleet.rows[2] == [
        "10.0.0.23 (slow)", "–", "16", "0", "4", "44,800", "25.8%", "280", "0.70", "3.00", "25%", "–", "-1.25",
        "+12.40 ± 0.03",
    ]  # fmt: skip


def test_what_is_on_the_page_is_in_the_other_files_too(spread_out: StudyDirectory) -> None:
    page, markdown = ((spread_out.path / f"report.{kind}").read_text() for kind in ("html", "md"))
    for text in (page, markdown):
        assert "Where it ran" in text
        assert "The machine 10.0.0.23 of the fleet is slow" in text
        assert "404 (400 to 407) (far)" in text
        assert "174 us to on and 254 us to off (from the fleet, mean of its machines" in text
        assert "404 us to on, from the others 60 and 484 us to off, from the others 140" in text
        assert "round trip from the lab to the server" in text
        assert "180 us (180 to 180)" in text
    stored = StudyResult.model_validate_json((spread_out.path / "verdict.json").read_text())
    assert stored.where is not None
    assert [(part.machine, part.with_lab) for part in stored.where.machines] == [(name, False) for name in SPEEDS]
    assert (stored.where.ways[-1].machine, stored.where.ways[-1].round_trip_us) == ("10.0.0.23", 483.5)
    terminal = Console(width=100, record=True, file=StringIO())
    terminal.print(in_full(stored))
    lines = [line.split() for line in terminal.export_text().splitlines()]
    assert ["10.0.0.23", "(slow)", "25.8%", "404", "484"] in lines


def test_a_study_on_one_machine_says_nothing_of_it(reports: Studies) -> None:
    path: Path = reports("demo").path
    assert "where" not in json.loads((path / "verdict.json").read_text())
    assert "Where it ran" not in (path / "report.html").read_text()
