"""Tests of findings on fairness from the stored trials, and of cases without a finding."""

from __future__ import annotations

import pytest

from pgtrial.model.records.facts import Audit, Finding
from pgtrial.model.records.plan import Interleaving
from pgtrial.model.records.trial import ClientUse
from pgtrial.model.units import setting_bytes
from tests.verdict.fleets import share
from tests.verdict.studies import findings_over, make_plan, verdict_of

from .cases import facts, named, plan_of, trials_of

MB = 2.0**20


def _findings(plan, change, **known):
    return findings_over(plan, facts(**known), trials_of(plan, change))


def _checkpoints(count):
    return {"server_deltas": {"checkpointer": {"num_timed": 0.0, "num_requested": float(count)}}}


def test_trials_without_records_give_no_finding():
    assert _findings(plan_of(), lambda trial: {}) == []


def test_what_the_trials_say_is_added_to_the_stored_audit():
    plan, stored = plan_of(), Finding(rule="thp", severity="info", arms=["A"], message="m", cure="c")
    trials = trials_of(plan, lambda trial: _checkpoints(trial.arm == "B"))
    found = verdict_of(plan, trials, Audit(findings=[stored])).findings
    assert [(each.rule, each.severity) for each in found] == [("unequal_checkpoints", "warning"), ("thp", "info")]
    assert verdict_of(plan, trials_of(plan, lambda trial: {}), Audit(findings=[stored])).findings == [stored]


def test_equal_checkpoints_are_no_finding():
    assert _findings(plan_of(), lambda trial: _checkpoints(1)) == []


def test_checkpoints_in_one_arm_are_told_with_their_number():
    [finding] = _findings(plan_of(), lambda trial: _checkpoints(trial.arm == "B"))
    assert (finding.rule, finding.arms) == ("unequal_checkpoints", ["A", "B"])
    assert "in 8 of 8 blocks" in finding.message
    assert "0 in A and 8 in B" in finding.message


def test_one_odd_block_of_eight_is_tolerated_and_two_are_not():
    def odd(blocks):
        return lambda trial: _checkpoints(trial.arm == "B" and trial.block < blocks)

    assert _findings(plan_of(), odd(1)) == []
    assert named(_findings(plan_of(), odd(2))) == {("unequal_checkpoints", "warning")}


def test_checkpoints_are_information_where_their_settings_are_compared():
    plan = plan_of(["settings.max_wal_size"])
    assert named(_findings(plan, lambda trial: _checkpoints(trial.arm == "B"))) == {("unequal_checkpoints", "info")}


def test_a_failed_trial_says_nothing_about_checkpoints():
    plan = plan_of()
    trials = [
        trial.model_copy(update={"status": "failed"} if trial.arm == "B" else {})
        for trial in trials_of(plan, lambda trial: _checkpoints(trial.arm == "B"))
    ]
    assert findings_over(plan, {}, trials) == []


def test_autovacuum_in_one_arm_is_told():
    def vacuumed(trial):
        return {"server_deltas": {"maintenance": {"autovacuums": float(trial.arm == "A"), "autoanalyzes": 0.0}}}

    [finding] = _findings(plan_of(), vacuumed)
    assert (finding.rule, finding.severity) == ("unequal_autovacuum", "warning")
    assert named(_findings(plan_of(["settings.autovacuum"]), vacuumed)) == {("unequal_autovacuum", "info")}


def _tables(mb, dead=0.0):
    return {
        "relations_before": {
            "pgbench_accounts": {
                "bytes_table": mb * MB,
                "bytes_indexes": 0.0,
                "live_tuples": 1000.0 - dead,
                "dead_tuples": dead,
            }
        }
    }


def test_tables_that_are_larger_in_one_arm_before_the_load_are_told():
    [finding] = _findings(plan_of(), lambda trial: _tables(150 if trial.arm == "A" else 300))
    assert (finding.rule, finding.severity) == ("unequal_tables", "warning")
    assert "150 MB in A and 300 MB in B" in finding.message
    assert "those of B are bloated" in finding.message


def test_tables_that_differ_by_a_few_pages_are_equal():
    assert _findings(plan_of(), lambda trial: _tables(150 if trial.arm == "A" else 154)) == []


def test_an_index_that_the_study_makes_is_information():
    plan = plan_of(["server.setup_sql"])
    assert named(_findings(plan, lambda trial: _tables(150 if trial.arm == "A" else 200))) == {
        ("unequal_tables", "info")
    }


def test_dead_rows_that_are_carried_over_are_told_even_where_the_arms_are_equal():
    [finding] = _findings(plan_of(), lambda trial: _tables(150, dead=20.0 * trial.block))
    assert (finding.rule, finding.arms) == ("dead_tuples", ["A", "B"])
    assert "up to 14% of all rows" in finding.message


def test_few_dead_rows_are_no_finding():
    assert _findings(plan_of(), lambda trial: _tables(150, dead=40.0)) == []


def _data(mb):
    return lambda trial: {"relations": {"pgbench_accounts": {"bytes_table": mb * MB, "bytes_indexes": 0.0}}}


def _machine(buffers, memory, limit="unlimited"):
    return {
        "settings": {"shared_buffers": buffers},
        "memory": {"total_mb": memory},
        "limits": {"memory_mb": limit},
    }


def test_data_that_fit_the_buffers_of_one_arm_only_are_told():
    known = {"A": _machine("128MB", 8000), "B": _machine("1GB", 8000)}
    [finding] = _findings(plan_of(), _data(300), **known)
    assert (finding.rule, finding.severity) == ("data_larger_than_cache", "warning")
    assert (
        "300 MB of data and 128 MB of cache in A against 300 MB of data and 1,024 MB of cache in B" in finding.message
    )
    assert named(_findings(plan_of(["settings.shared_buffers"]), _data(300), **known)) == {
        ("data_larger_than_cache", "info")
    }


def test_data_that_fit_the_memory_of_one_arm_only_are_told():
    known = {"A": _machine("128MB", 8000), "B": _machine("128MB", 8000, limit=512)}
    [finding] = _findings(plan_of(), _data(700), **known)
    assert "the memory that the server may use" in finding.message


@pytest.mark.parametrize("mb", [100, 2000])
def test_data_that_fit_both_caches_or_neither_are_no_finding(mb):
    assert _findings(plan_of(), _data(mb), A=_machine("128MB", 8000), B=_machine("1GB", 8000)) == []


@pytest.mark.parametrize(("of_b", "rules"), [(129, set()), (140, {"data_larger_than_cache"})])
def test_data_a_few_pages_below_and_above_equal_caches_are_no_finding(of_b, rules):
    known = {arm: _machine("128MB", 8000) for arm in "AB"}
    findings = _findings(plan_of(), lambda trial: _data(127 if trial.arm == "A" else of_b)(trial), **known)
    assert {finding.rule for finding in findings} == rules


def test_an_unknown_cache_is_no_finding():
    assert _findings(plan_of(), _data(700), A=_machine("128MB", 8000), B={}) == []


@pytest.mark.parametrize(("setting", "size"), [("128MB", 2**27), ("16GB", 2**34), ("8kB", 8192), ("on", None)])
def test_sizes_are_read_as_postgresql_shows_them(setting, size):
    assert setting_bytes(setting) == size
    assert setting_bytes(None) is None


def _host(**seconds):
    """Returns the host's counters of a trial of 6 s on 2 CPUs; the load's 1.2 s are in the trial itself."""
    quiet = {"elapsed_s": 6.0, "cpu_s": 12.0, "cpu_busy_s": 9.4, "server_cpu_s": 8.0, "lab_cpu_s": 0.1}
    return {"server_deltas": {"host": {**quiet, "cpu_steal_s": 0.0, "memory_stall_s": 0.0, **seconds}}}


def test_a_quiet_host_is_no_finding():
    assert _findings(plan_of(), lambda trial: _host()) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({"cpu_steal_s": 0.6}, "5% of the CPU time was taken by the hypervisor"),
        ({"cpu_busy_s": 11.7}, "20% of the CPU time went to programs that are no part of the study"),
        ({"memory_stall_s": 0.6}, "for 10% of the time everything waited for memory"),
    ],
)
def test_what_others_took_of_the_host_is_told(seconds, words):
    [finding] = _findings(plan_of(), lambda trial: _host(**seconds))
    assert (finding.rule, finding.severity) == ("noisy_host", "warning")
    assert words in finding.message
    assert "16 of 16 trials" in finding.message


def test_one_noisy_trial_of_eight_is_tolerated():
    assert _findings(plan_of(), lambda trial: _host(**({"cpu_steal_s": 0.6} if trial.block == 0 else {}))) == []


def test_a_failed_trial_says_nothing_of_the_hosts_noise():
    def failed(trial):
        return _host(cpu_steal_s=0.6) | {"status": "failed"}

    assert [finding for finding in _findings(plan_of(), failed) if finding.rule == "noisy_host"] == []


def test_without_the_servers_share_foreign_work_is_unknown():
    def elsewhere(trial):
        deltas = _host(cpu_busy_s=11.7)["server_deltas"]["host"]
        return {"server_deltas": {"host": {name: deltas[name] for name in deltas if name != "server_cpu_s"}}}

    assert _findings(plan_of(), elsewhere) == []


def test_the_loads_own_work_is_not_foreign():
    def busy_client(trial):
        return _host(cpu_busy_s=11.7) | {
            "client": ClientUse(cpu_user_s=2.0, cpu_system_s=1.5, busiest_thread_share=0.6)
        }

    assert _findings(plan_of(), busy_client) == []


@pytest.mark.parametrize(
    ("own", "words"), [((True, True), None), ((None, None), None), ((True, False), "14%"), ((False, False), "30%")]
)
def test_of_a_fleet_only_the_machines_that_are_the_labs_own_take_the_servers_cpu_time(own, words):
    def by_two(trial):
        shares = [
            share(name, 100, cpu_user_s=1.9, cpu_system_s=0.0, with_lab=here)
            for name, here in zip("ab", own, strict=True)
        ]
        client = ClientUse(cpu_user_s=3.8, cpu_system_s=0.0, busiest_thread_share=0.6)
        return _host(cpu_busy_s=11.7) | {"client": client, "machines": shares}

    found = [finding.message for finding in _findings(plan_of(), by_two)]
    assert [f"{words} of the CPU time went to programs that are no part" in message for message in found] == (
        [True] if words else []
    )


def test_on_a_host_of_its_own_the_load_takes_nothing_from_the_server():
    def elsewhere(trial):
        host = _host(cpu_busy_s=11.7)["server_deltas"]["host"]
        del host["lab_cpu_s"]
        return {
            "server_deltas": {"host": host},
            "client": ClientUse(cpu_user_s=2.0, cpu_system_s=1.5, busiest_thread_share=0.6),
        }

    [finding] = _findings(plan_of(), elsewhere)
    assert "31% of the CPU time went to programs that are no part of the study" in finding.message


WHOLE = {"elapsed_s": 12.0, "cpu_s": 24.0, "cpu_steal_s": 0.0, "memory_stall_s": 0.0, "lab_cpu_s": 0.2}


def _in_turns(busy_s):
    """Returns the change to a trial whose arms, A and B, take turns for 12 s on 2 CPUs, each with a server that takes
    8 s and a load that takes 1.2 s of their time."""
    server = {"elapsed_s": 12.0, "server_cpu_s": 8.0}
    return lambda trial: {"server_deltas": {"host": server}, "host_deltas": {**WHOLE, "cpu_busy_s": busy_s}}


def _on_one_server(busy_s):
    """Returns the change to a trial whose arms are sessions of one server, which takes 16 s of the CPUs' time."""

    def change(trial):
        shared = {"host": {"elapsed_s": 12.0, "server_cpu_s": 16.0}}
        is_first = trial.index % 2 == 0
        return {"shared_deltas": shared, "host_deltas": {**WHOLE, "cpu_busy_s": busy_s}} if is_first else {}

    return change


def _plan_in_turns(shared):
    return plan_of().model_copy(update={"interleaving": Interleaving(slice_s=0.25, shared_server=shared)})


@pytest.mark.parametrize(("shared", "in_turns"), [(False, _in_turns), (True, _on_one_server)])
def test_while_arms_take_turns_the_work_of_all_of_them_is_no_foreign_work(shared, in_turns):
    plan = _plan_in_turns(shared)
    assert _findings(plan, in_turns(20.0)) == []
    [finding] = _findings(plan, in_turns(23.4))
    assert finding.rule == "noisy_host"
    assert "in 16 of 16 trials, of A and B: up to 20% of the CPU time went to programs" in finding.message


@pytest.mark.parametrize("missing", ["server_cpu_s", "trial"])
def test_while_arms_take_turns_foreign_work_is_unknown_without_the_share_of_each_server(missing):
    def change(trial):
        found = _in_turns(23.4)(trial)
        if trial.arm == "B":
            return found | ({"status": "failed"} if missing == "trial" else {"server_deltas": {}})
        return found

    assert "noisy_host" not in {finding.rule for finding in _findings(_plan_in_turns(False), change)}


def test_while_arms_on_two_hosts_take_turns_each_trial_has_the_noise_of_its_own_host():
    def stolen_on(host):
        def change(trial):
            stolen_s = 2.4 if trial.arm == host else 0.0
            return _in_turns(20.0)(trial) | {"host_deltas": {**WHOLE, "cpu_busy_s": 20.0, "cpu_steal_s": stolen_s}}

        return change

    plan = _plan_in_turns(False).model_copy(update={"declared": {"A": [], "B": ["server.host"]}})
    for host in "AB":
        [finding] = _findings(plan, stolen_on(host))
        assert (finding.rule, finding.arms) == ("noisy_host", [host])
        assert "in 8 of 16 trials" in finding.message


def test_foreign_work_is_known_in_the_blocks_after_an_arm_has_left():
    plan = make_plan(("A", "B", "C"), blocks=16).model_copy(
        update={"interleaving": Interleaving(slice_s=0.25), "left": {"C": 8}}
    )
    trials = [trial for trial in trials_of(plan, _in_turns(23.4)) if trial.block < 8 or trial.arm != "C"]
    [finding] = [each for each in findings_over(plan, {}, trials) if each.rule == "noisy_host"]
    assert "in 16 of 40 trials, of A and B" in finding.message
    assert "of the CPU time went to programs" in finding.message


def test_a_client_program_is_the_same_in_all_trials_of_an_arm():
    def versions(arm, block):
        return lambda trial: {"program": f"pgx {'5.1' if trial.arm == arm and trial.block >= block else '5.0'}"}

    assert _findings(plan_of(), versions("B", 0)) == []
    [finding] = _findings(plan_of(), versions("B", 3))
    assert (finding.rule, finding.severity, finding.arms) == ("changed_program", "withhold", ["B"])
    assert finding.message == "The client program of B was pgx 5.0 and pgx 5.1 in different trials."
