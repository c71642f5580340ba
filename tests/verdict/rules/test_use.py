"""Tests of the finding that a load did not use what the arms differ in, by the counters of the trials and the plans of
statements.
"""

from __future__ import annotations

import pytest

from pgtrial.model.known_settings import KNOWN
from pgtrial.model.records.facts import Facts
from pgtrial.model.records.plan import Spending
from pgtrial.model.records.trial import LoadStatement
from pgtrial.verdict.rules.use import USES, LoadUse, evidence_of
from tests.verdict import studies

SORT = "SELECT * FROM t ORDER BY a"
IN_MEMORY = ["Sort", "  Sort Key: a", "  ->  Seq Scan on t"]
BY_INDEX = ["Index Scan using t_a on t"]
COMPILED = [*IN_MEMORY, "JIT:", "  Functions: 4"]


def _found(
    declared,
    deltas=None,
    plans=(None, None),
    *,
    rule="unused_difference",
    shared=None,
    tables=None,
    facts=None,
    status=("completed", "completed"),
    tps=1000.0,
    chosen=None,
):
    """Returns severity and message of the rule's finding in a study of two arms, or None if the rule finds nothing."""
    plan = studies.make_plan(("on", "off"), blocks=2).model_copy(update={"declared": {"on": [], "off": declared}})
    trials = []
    for planned in plan.trials:
        trial = studies.make_trial(plan, planned, tps)
        arm = planned.arm == "off"
        lines = plans[arm] if planned.block == 0 else None
        trials.append(
            trial.model_copy(
                update={
                    "status": status[arm],
                    "server_deltas": (deltas or ({}, {}))[arm],
                    "shared_deltas": shared or {},
                    "relations": tables or {},
                    "statements": {} if lines is None else {SORT: LoadStatement(text=SORT, plan=lines, chosen=chosen)},
                }
            )
        )
    named = {
        arm: Facts(arm=arm, collected=studies.START.isoformat(), facts=of_arm) for arm, of_arm in (facts or {}).items()
    }
    found = [one for one in studies.findings_over(plan, named, trials) if one.rule == rule]
    return (found[0].severity, found[0].message) if found else None


def test_what_nothing_shows_is_named_with_the_evidence_and_the_number_of_trials():
    quiet = {"database": {"temp_files": 0.0}}
    assert _found(["settings.work_mem"], (quiet, quiet), (IN_MEMORY, IN_MEMORY)) == (
        "warning",
        "In 4 trials the load never used what differs between on and off: work_mem (no temporary file was written, the "
        "plans of the statements that were seen are the same, no statement that was seen makes or maintains tables or "
        "indexes).",
    )


@pytest.mark.parametrize(
    ("deltas", "plans"),
    [
        (({"database": {"temp_files": 0.0}}, {"database": {"temp_files": 1.0}}), (IN_MEMORY, IN_MEMORY)),
        (({"database": {"temp_files": 1.0}}, {"database": {"temp_files": 0.0}}), (IN_MEMORY, IN_MEMORY)),
        (({"database": {"temp_files": 0.0}}, {"database": {"temp_files": 0.0}}), (IN_MEMORY, BY_INDEX)),
    ],
)
def test_one_evidence_on_one_arm_suffices(deltas, plans):
    assert _found(["settings.work_mem"], deltas, plans) is None


def test_what_is_not_known_is_no_finding():
    quiet = {"database": {"temp_files": 0.0}}
    assert _found(["settings.work_mem"], (quiet, quiet)) is None
    assert _found(["settings.work_mem"], None, (IN_MEMORY, IN_MEMORY)) is None
    assert _found(["settings.random_page_cost"], (quiet, quiet), (IN_MEMORY, None)) is None
    assert _found(["settings.plan_cache_mode"], (quiet, quiet), (IN_MEMORY, IN_MEMORY)) is None
    assert _found(["settings.random_page_cost"], None, (BY_INDEX, BY_INDEX), status=("completed", "failed")) is None


def test_plans_of_statements_whose_values_are_not_known_prove_nothing():
    alike = (BY_INDEX, BY_INDEX)
    for setting in ("random_page_cost", "jit", "plan_cache_mode"):
        assert _found([f"settings.{setting}"], None, alike, chosen="custom") is not None
        assert _found([f"settings.{setting}"], None, alike, chosen="unknown") is None


def test_plans_of_statements_that_run_others_prove_nothing():
    one = LoadStatement(text=SORT, plan=IN_MEMORY, chosen="literals")
    for hides, known in ((False, True), (True, False)):
        statements = {SORT: one.model_copy(update={"hides_statements": hides})}
        assert bool(LoadUse(statements, statements, all_seen=True).unused("settings.jit")) is known


def test_sequential_scans_that_the_server_has_counted_are_use_whatever_the_plans_say():
    def busy(rows):
        counted = {"bgwriter": {"buffers_alloc": 1e6}, "tables": {"rows_read_sequentially": rows}}
        return {**counted, "maintenance": {"autovacuums": 0.0, "autoanalyzes": 0.0}}

    for setting in ("io_method", "effective_io_concurrency", "io_combine_limit"):
        assert _found([f"settings.{setting}"], (busy(1e9), busy(1e9)), (BY_INDEX, BY_INDEX)) is None
        assert _found([f"settings.{setting}"], (busy(0.0), busy(0.0)), (BY_INDEX, BY_INDEX)) is not None


def _of_decided(tps, view, spending=None):
    """Returns the remedies that a finding proposes where the load never used what the arms differ in. The noise of the
    trials is small.
    """
    plan = studies.make_plan(("on", "off"), blocks=8).model_copy(update={"spending": spending})
    plan = plan.model_copy(update={"declared": {"on": [], "off": ["settings.random_page_cost"]}})
    trials = [
        trial.model_copy(
            update={
                "server_deltas": {view: {"updated": 0.0}},
                "statements": {SORT: LoadStatement(text=SORT, plan=IN_MEMORY, chosen="literals")},
            }
        )
        for trial in studies.run(plan, studies.noisy({"off": tps}, sd=0.005))
    ]
    found = [one for one in studies.verdict_of(plan, trials).findings if one.rule == "unused_difference"]
    assert not (view == "tables" and any("cause" in one.cure for one in found))
    return [one.cure for one in found]


def test_a_difference_that_is_decided_all_the_same_is_said_beside_what_is_unused():
    (cure,) = _of_decided(1.5, "tables", Spending(end=8, kept=0.01))
    assert cure.startswith("A difference was found all the same: ")
    assert _of_decided(1.0, "tables", Spending(end=8, kept=0.01)) == [
        "Choose a load that uses what differs between these arms; more trials of this load would not help."
    ]


def test_a_study_by_p8_whose_difference_is_decided_does_not_say_that_something_is_unused():
    assert _of_decided(1.0, "tables")
    assert not _of_decided(1.5, "tables")
    assert not _of_decided(0.6, "tables")
    assert _of_decided(0.6, "wal")  # trials that are older than this keep what was said of them


def test_a_part_of_what_differs_is_told_and_does_not_warn():
    severity, message = _found(["settings.random_page_cost", "settings.jit"], None, (COMPILED, COMPILED))
    assert severity == "info"
    assert "never used a part of what differs between on and off: random_page_cost (the plans" in message
    assert "jit" not in message
    severity, message = _found(["settings.random_page_cost", "settings.jit"], None, (BY_INDEX, BY_INDEX))
    assert severity == "warning"
    assert "random_page_cost (" in message
    assert "and jit (no plan" in message


def _reads(pages):
    return {
        "bgwriter": {"buffers_alloc": pages, "buffers_clean": 0.0, "buffers_backend": 0.0},
        "io": {"written_by_clients": 0.0},
    }


def test_counters_are_weighed_by_trials_and_transactions():
    at_most, more = _reads(200.0), _reads(201.0)
    assert _found(["settings.shared_buffers"], (at_most, at_most)) is not None
    assert _found(["settings.shared_buffers"], (at_most, more)) is None
    assert _found(["settings.shared_buffers"], (at_most, more), tps=50_000.0) is not None
    assert _found(["settings.shared_buffers"], (_reads(300.0), _reads(301.0)), tps=50_000.0) is None


def test_counters_of_a_shared_server_are_those_of_all_arms():
    assert _found(["settings.temp_tablespaces"], shared={"database": {"temp_files": 3.0}}) is None
    quiet = {"database": {"temp_files": 0.0}, "io": {"temporary_pages": 0.0}}
    assert _found(["settings.temp_tablespaces"], shared=quiet) is not None


def test_all_conditions_of_an_evidence_must_hold():
    busy = {"bgwriter": {"buffers_alloc": 1e6}, "maintenance": {"autovacuums": 0.0, "autoanalyzes": 0.0}}
    assert _found(["settings.io_method"], (busy, busy), (BY_INDEX, BY_INDEX)) is not None
    assert _found(["settings.io_method"], (busy, busy), (IN_MEMORY, IN_MEMORY)) is None


def test_huge_pages_that_both_arms_have_or_lack_are_not_used():
    on = {"server": {"huge_pages_status": "on"}}
    off = {"server": {"huge_pages_status": "off"}}
    assert _found(["settings.huge_pages"], facts={"on": on, "off": off}) is None
    assert _found(["settings.huge_pages"], facts={"on": off, "off": off}) is not None


def _built(configure, jit="on"):
    return {"server": {"build_configure": configure}, "defaults": {"jit": jit}}


WITH_LLVM, WITHOUT_LLVM = _built("'--prefix=/usr' '--with-llvm'"), _built("'--prefix=/usr'")


def test_plans_compiled_just_in_time_in_arms_that_can_are_named_beside_one_that_cannot():
    facts = {"on": WITH_LLVM, "off": WITHOUT_LLVM}
    assert _found(["server.version"], plans=(COMPILED, IN_MEMORY), rule="unequal_jit", facts=facts) == (
        "warning",
        "Plans of on are compiled just in time. The server of off is built without LLVM and cannot do that: it may be "
        "a part of the difference.",
    )


@pytest.mark.parametrize(
    ("plan", "other"),
    [
        (IN_MEMORY, WITHOUT_LLVM),  # no plan costs enough
        (COMPILED, WITH_LLVM),
        (COMPILED, _built("'--prefix=/usr'", jit="off")),  # a setting of the study, which is named otherwise
        (COMPILED, _built("")),  # by meson
        (COMPILED, _built(None)),
    ],
)
def test_just_in_time_compilation_is_no_finding_where_all_can_or_none_does(plan, other):
    facts = {"on": WITH_LLVM, "off": other}
    assert _found(["server.version"], plans=(plan, IN_MEMORY), rule="unequal_jit", facts=facts) is None


JIT_ON, JIT_OFF = {"defaults": {"jit": "on"}, "settings": {}}, {"defaults": {"jit": "off"}, "settings": {}}


def test_defaults_that_differ_and_that_the_load_uses_are_named():
    facts = {"on": JIT_ON, "off": JIT_OFF}
    assert _found(["server.version"], plans=(COMPILED, IN_MEMORY), rule="other_defaults", facts=facts) == (
        "warning",
        "By default on and off differ in jit (on in on, off in off). The load uses that: it is part of the difference "
        "measured.",
    )


@pytest.mark.parametrize(
    ("plan", "base", "other"),
    [
        (IN_MEMORY, JIT_ON, JIT_OFF),  # no plan costs enough
        (COMPILED, JIT_ON, JIT_ON),
        (COMPILED, JIT_ON, {"defaults": {}, "settings": {"jit": "off"}}),  # somebody has set it
        (COMPILED, {"defaults": {}, "settings": {"jit": "on"}}, JIT_OFF),
        (None, JIT_ON, JIT_OFF),  # no plan is known
    ],
)
def test_defaults_are_no_finding_where_the_load_does_not_use_them_or_somebody_has_set_them(plan, base, other):
    facts = {"on": base, "off": other}
    assert _found(["server.version"], plans=(plan, IN_MEMORY), rule="other_defaults", facts=facts) is None


def test_defaults_that_follow_from_another_setting_are_no_finding():
    full = {"wal": {"wal_buffers_full": 9.0}}
    sizes = [{"defaults": {"wal_buffers": size}, "settings": {"shared_buffers": size}} for size in ("4MB", "16MB")]
    facts = dict(zip(("on", "off"), sizes, strict=True))
    assert _found(["settings.shared_buffers"], (full, full), rule="other_defaults", facts=facts) is None


@pytest.mark.parametrize(("toast_tables", "used"), [(0.0, False), (1.0, True)])
def test_compression_is_used_where_a_table_can_hold_long_values(toast_tables, used):
    tables = {"short": {"bytes_table": 8192.0, "toast_tables": 0.0}, "long": {"toast_tables": toast_tables}}
    found = _found(["settings.default_toast_compression"], tables=tables)
    assert (found is None) == used
    assert _found(["settings.default_toast_compression"], tables={"old": {"bytes_table": 8192.0}}) is None


def test_every_entry_names_evidences_that_are_there_and_all_are_used():
    named = {name for names in USES.uses.values() for name in names}
    assert named == set(USES.evidence)
    assert len(USES.uses) >= 60


def test_the_longest_pattern_decides():
    assert evidence_of("settings.autovacuum_work_mem") == [USES.evidence["maintenance"]]
    assert evidence_of("settings.no_such_setting") == []
    assert evidence_of("settings.enable_hashjoin") == [USES.evidence["plans"]]
    assert all(not evidence_of(f"settings.{name}") for name in KNOWN.locations)
