"""`pgtrial selftest`: on real servers, in a short form; and what it says of wrong input."""

from __future__ import annotations

import json
import math
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pgtrial.cli import main
from pgtrial.cli.selftest import run
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.selftest import LOOKUP, Wanted, calibration_of, lost_share, next_work, selftest_of
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.machine import Certificate, Certificates
from pgtrial.statistics.p8 import Interval
from pgtrial.statistics.paired_t import t_interval
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.state import certificate_for, keep_certificate
from pgtrial.verdict.certificate import Series, found
from tests.conduct.small import FAST, PGTRIAL, small_study
from tests.conftest import require_engine

SHORT = Wanted(scale=1, clients=1, warmup_s=0.0, duration_s=1.0, budget_s=1.0, seed=5)


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.server
def test_a_calibration_that_sigterm_ends_has_the_status_of_that_signal(tmp_path):
    require_engine()
    command = [PGTRIAL, "selftest", "--budget", "5min"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as selftest:
        assert selftest.stdout is not None
        assert any("checking the set-up" in line for line in selftest.stdout)
        selftest.terminate()
        said = selftest.stdout.read()
    assert "stopped by SIGTERM" in said
    assert selftest.returncode == 143


@pytest.mark.server
def test_a_self_test_of_a_given_server_ends_with_a_certificate_that_later_studies_name(
    start_cluster, fresh_state, tmp_path, capsys, monkeypatch
):
    require_engine()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    # so it has the fewest blocks
    monkeypatch.setattr("pgtrial.cli.selftest.check_budget", lambda wanted: None)
    # Lookups that mostly wait, also for their work: how much processor time there is beside other tests must not decide
    # whether the work can be calibrated. 20,000 rows are 5 ms of waiting, which is half of the throughput.
    lookup = tmp_path / "lookup.sql"
    waiting = "SELECT pg_sleep(current_setting('pgtrial.work')::float / 4e6);\n"
    lookup.write_text("\\sleep 5 ms\n" + LOOKUP.read_text() + waiting)
    monkeypatch.setattr("pgtrial.cli.selftest.FIRST_WORK", 20_000)
    cluster = start_cluster(settings=FAST)
    dsn = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres user={cluster.target.user}"
    assert run(replace(SHORT, server=dsn, planted=[0.3], lookup=lookup), None, as_json=False) == 0
    out = capsys.readouterr().out
    assert "This machine finds a difference of" in out
    assert "A/A: " in out
    [hits] = re.findall(r"planted 30%: found in . of . stud(?:y|ies)", out)
    [directory] = Path("results").glob("selftest-*")
    certificate = Certificate.model_validate_json((directory / "certificate.json").read_text())
    assert certificate.shared_server
    assert certificate.postgres == cluster.server.version
    assert certificate.blocks >= 9
    [planted] = certificate.planted
    assert planted.difference.value < 0
    page = (directory / "report.html").read_text()
    assert page.index('<section id="certificate"') < page.index('<section id="tps"')
    # asked for again, it is computed again from the stored trials
    before = (directory / "certificate.json").read_bytes()
    assert status_of("selftest", str(directory)) == 0
    assert (directory / "certificate.json").read_bytes() == before
    # a later study of these servers names it
    study = small_study(
        tmp_path / "later", blocks=1, arms={"a": {"dsn": dsn}, "b": {"dsn": dsn}}, server={"settings": {}}
    )
    run_study(study, lambda event: None)
    assert status_of("report", str(study.path)) == 0
    assert hits in (study.path / "report.md").read_text()
    capsys.readouterr()
    # a damaged record is told, and the study runs
    (fresh_state / "certificates.json").write_text("{")
    other = small_study(
        tmp_path / "damaged", blocks=1, arms={"a": {"dsn": dsn}, "b": {"dsn": dsn}}, server={"settings": {}}
    )
    heard: list[object] = []
    run_study(other, heard.append)
    assert any("certificates.json is ignored: it is damaged" in str(event) for event in heard)
    assert status_of("report", str(other.path)) == 0
    assert "none; \\`pgtrial selftest\\` makes one" in (other.path / "report.md").read_text()


@pytest.mark.server
def test_the_trigger_costs_what_the_setting_says(tmp_path):
    require_engine()
    wanted = replace(SHORT, workload="tpcb-like", duration_s=2.0)
    # so much that it takes nearly all of the throughput, however little the server without it gets done
    spec = calibration_of(wanted, 60_000)
    spec = spec.model_copy(
        update={
            "verdict": spec.verdict.model_copy(update={"blocks": 1}),
            "server": spec.server.model_copy(update={"settings": {**FAST, "fsync": "off"}}),
        }
    )
    study = StudyDirectory.create(tmp_path / "results", spec, make_plan(spec, 3, "2026-11-23T00:00:00+00:00"))
    run_study(study, lambda event: None)
    assert [trial.reason for trial in study.trials()] == [None, None]
    assert lost_share(study).estimate > 0.3


def test_the_work_follows_from_the_calibration():
    """Work that takes half of the throughput doubles the time of a transaction; 20% take a quarter of that time."""
    selftest = selftest_of(replace(SHORT, planted=[0.2, 0.5]), 1000, Interval(0.4, 0.5, 0.6))
    assert [(each.arm, each.work) for each in selftest.planted] == [("20% slower", 251), ("50% slower", 1000)]
    low, high = (share / (1 - share) / 4 for share in (0.4, 0.6))
    first = selftest.planted[0]
    assert (first.low, first.high) == pytest.approx((low / (1 + low), high / (1 + high)), rel=0.01)
    unknown = selftest_of(replace(SHORT, planted=[0.2]), 1000, Interval(-math.inf, 0.5, 1.0)).planted[0]
    assert (unknown.low, unknown.high) == (0.0, 1.0)


def test_what_is_measured_fits_what_was_planted_in_95_of_100_self_tests():
    """The error of a calibration of four blocks is part of the comparison: without it, 88 of 100 fit."""
    rng, noise, cost, studies, fits = np.random.default_rng(6), 0.05, 1 / 999, 400, 0
    for _ in range(studies):
        calibrated = t_interval(math.log(0.5) + noise * rng.standard_normal(4))
        lost = Interval(*(-math.expm1(end) for end in (calibrated.high, calibrated.estimate, calibrated.low)))
        planted = selftest_of(replace(SHORT, planted=[0.1]), 1000, lost).planted[0]
        true = -math.log1p((planted.work - 1) * cost)
        of = Series(list(true + noise * rng.standard_normal(60)), [1.0] * 60)
        fits += found(of, planted, 0.01).agrees is True
    assert 0.92 * studies <= fits <= 0.99 * studies


def test_a_calibration_that_is_too_light_or_too_heavy_is_tried_anew():
    assert next_work(200, 0.3, 1) is None
    assert next_work(200, 0.02, 1) == 1600
    assert next_work(200, 0.95, 1) == 25
    with pytest.raises(StudyError, match="cannot be calibrated"):
        next_work(100_000, 0.02, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "1min"], "--budget 1min is too short for this self-test; give it at least 4min"),
        (["--budget", "soon"], "--budget: 'soon' is not a duration"),
        (["--planted", "90%"], "--planted 90% is out of range; write losses between 0.5% and 50%"),
        (["--planted", "5%,5%"], "--planted 5%,5% names a share twice"),
        (["--workload", "oltp"], "--workload oltp: a self-test runs only select-only or tpcb-like"),
        (["--workload", "tpcb-like", "--server", "host=db1"], "needs a trigger"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, said, capsys):
    assert status_of("selftest", *arguments) == 3
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_another_directory_is_no_self_test(tmp_path, capsys):
    assert status_of("selftest", str(tmp_path)) == 3
    assert "is not a study directory" in capsys.readouterr().err
    study = small_study(tmp_path / "results")
    assert status_of("selftest", str(study.path)) == 3
    assert "is the directory of a study and not of a self-test" in capsys.readouterr().err


def test_the_record_keeps_the_latest_certificate_of_each_set_of_servers(tmp_path):
    one = certificate(["db1"], "2026-11-01")
    path = tmp_path / "certificates.json"
    for each in (one, certificate([], "2026-11-02"), certificate(["db1"], "2026-11-03")):
        keep_certificate(path, each)
    kept = Certificates.model_validate(json.loads(path.read_text())).certificates
    assert [(each.servers, each.created) for each in kept] == [(["db1"], "2026-11-03"), ([], "2026-11-02")]
    assert certificate_for(path, ["db2"]) is None
    path.write_text("{")
    keep_certificate(path, one)
    assert certificate_for(path, ["db1"]) == one


def test_a_record_of_a_newer_pgtrial_is_not_replaced(tmp_path):
    path = tmp_path / "certificates.json"
    path.write_text('{"format": 2, "certificates": []}')
    with pytest.raises(StoreError, match="a newer pgtrial wrote it"):
        keep_certificate(path, certificate([], "2026-11-01"))
    assert path.read_text() == '{"format": 2, "certificates": []}'


def certificate(servers: list[str], created: str) -> Certificate:
    return Certificate(
        created=created,
        pgtrial="0.1.0",
        host="here",
        cpus=2,
        servers=servers,
        postgres="18.1",
        load="select-only",
        slice_s=0.25,
        shared_server=False,
        warmup_s=1.0,
        duration_s=5.0,
        blocks=18,
        block_s=17.0,
        spread=0.02,
        reach=[],
        same=[],
        planted=[],
    )
