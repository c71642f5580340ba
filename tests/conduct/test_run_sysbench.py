"""A study of tests of sysbench, its own and a script, on real servers with the real engine."""

from __future__ import annotations

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.servers.arm import Needs
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import small_study, templates_with
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server


SCRIPT = """
local statements = require("statements")
sysbench.cmdline.options = { tables = {"Tables", 1}, table_size = {"Rows", 100} }
function prepare()
   local connection = sysbench.sql.driver():connect()
   connection:query("CREATE TABLE counters(id int PRIMARY KEY, value int)")
   connection:query("INSERT INTO counters SELECT g, 0 FROM generate_series(1, " .. sysbench.opt.table_size .. ") g")
end
function thread_init() connection = sysbench.sql.driver():connect() end
function event() connection:query(statements.update(sysbench.rand.uniform(1, sysbench.opt.table_size))) end
function thread_done() connection:disconnect() end
"""
MODULE = 'return { update = function(id) return "UPDATE counters SET value = value + 1 WHERE id = " .. id end }'


@pytest.fixture(scope="module")
def study(tmp_path_factory, workspace):
    """Returns a finished study, read again from disk."""
    require_engine()
    require_server(18)
    folder = tmp_path_factory.mktemp("own")
    (folder / "counters.lua").write_text(SCRIPT)
    (folder / "statements.lua").write_text(MODULE)
    load = {
        "workload": ["oltp_update_non_index", "counters.lua"],
        "sysbench": {"tables": 2, "table_size": 500},
        "warmup": 1,
        "duration": "5s",
    }
    created = small_study(folder / "results", blocks=1, folder=folder, load=load)
    (folder / "statements.lua").unlink()
    run_study(created, lambda event: None)
    return StudyDirectory.open(created.path)


def test_its_trials_have_warm_up_and_measured_part_as_pgbenchs_have(study):
    assert len(study.trials()) == 4
    for trial in study.trials():
        assert (trial.status, trial.reason) == ("completed", None)
        assert trial.warmup is not None
        assert trial.measured is not None
        assert trial.warmup.transactions > 0
        assert trial.measured.duration_s == pytest.approx(5, abs=0.01)
        assert trial.measured.latency_us is not None
        assert trial.client is not None
        assert trial.checkpoint_s is not None
        assert trial.round_trip_us is not None
        # the delta may begin late by what the lab was held up
        assert trial.server_deltas["database"]["xact_commit"] > trial.measured.transactions / 10


def test_every_trial_starts_from_what_was_prepared(study):
    found = {trial.load_point.workload: set[float]() for trial in study.trials()}
    for trial in study.trials():
        found[trial.load_point.workload] |= {each["live_tuples"] for each in trial.relations_before.values()}
    assert found == {"oltp_update_non_index": {1000.0}, "counters.lua": {500.0}}


def test_each_test_has_a_template_of_its_own(study, workspace):
    brought = Needs.of(study.design).data
    assert len(brought) == 2
    for data in brought:
        assert len(templates_with(workspace.templates, data)) == 1
