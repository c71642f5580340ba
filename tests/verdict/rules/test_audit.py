"""Tests of the findings of the audit, and of cases without a finding."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.evidence.collect.collect import collect
from pgtrial.model.records.facts import Facts
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.verdict.rules import audit
from tests.conftest import VERSIONS

pytestmark = pytest.mark.machine


_SERVER = {"version": "18.6", "data_checksums": "on", "debug_assertions": "off", "collate": "C", "build_flags": "-O2"}
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "synchronous_standby_names": ""}
_STORAGE = {"filesystem": "ext4", "mount_options": "relatime,rw"}


def _spec(a=None, b=None, **sections):
    return StudySpec.model_validate({**sections, "arms": {"A": a or {}, "B": b or {}}})


def _facts(arm, settings=None, defaults=None, **groups):
    content = {
        "cpu": {"governor": None, "model": "X"} | groups.get("cpu", {}),
        "memory": {"thp": "madvise", "total_mb": 8} | groups.get("memory", {}),
        "storage": _STORAGE | groups.get("storage", {}),
        "os": groups.get("os", {}),
        "server": _SERVER | groups.get("server", {}),
        "settings": settings or {},
        "defaults": {
            name: value
            for name, value in {**_DURABLE, "work_mem": "4MB", "wal_buffers": "4MB", **(defaults or {})}.items()
            if name not in (settings or {})
        },
    }
    return Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts=content)


def _findings(spec, a=None, b=None):
    facts = {"A": _facts("A", **(a or {})), "B": _facts("B", **(b or {}))}
    return audit(make_plan(spec, 1, "2026-11-20T14:12:00Z"), facts, Design(spec)).findings


def _rules(findings):
    return {(finding.rule, finding.severity) for finding in findings}


def test_equal_arms_give_no_finding():
    assert _findings(_spec()) == []


def test_a_declared_difference_is_no_finding():
    spec = _spec(b={"settings": {"work_mem": "64MB"}})
    assert _findings(spec, b={"settings": {"work_mem": "64MB"}}) == []


def test_an_undeclared_difference_names_both_values():
    [finding] = _findings(_spec(), b={"settings": {"work_mem": "64MB"}})
    assert (finding.rule, finding.severity, finding.arms) == ("undeclared_difference", "warning", ["A", "B"])
    assert "settings.work_mem" in finding.message
    assert "4MB in A and 64MB in B" in finding.message


def test_an_undeclared_difference_of_the_machine_is_found():
    [finding] = _findings(_spec(), b={"cpu": {"model": "Y"}})
    assert "cpu.model" in finding.message


def test_an_unknown_fact_is_no_difference():
    assert _findings(_spec(), b={"cpu": {"model": None}}) == []


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes"])
def test_unequal_durability_that_is_not_declared_withholds_the_verdict(name):
    findings = _findings(_spec(), b={"settings": {name: "off"}})
    assert _rules(findings) == {("durability", "withhold")}
    assert name in findings[0].message


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes"])
def test_unequal_durability_that_is_declared_is_told(name):
    findings = _findings(_spec(b={"settings": {name: "off"}}), b={"settings": {name: "off"}})
    assert _rules(findings) == {("durability", "warning")}
    assert "after a crash arm B may have lost" in findings[0].message


def test_the_weaker_arm_is_named_even_when_it_is_the_baseline():
    spec = _spec(a={"settings": {"fsync": "off"}})
    findings = _findings(spec, a={"settings": {"fsync": "off"}})
    assert "after a crash arm A may have lost" in findings[0].message


def test_declaring_one_durability_setting_does_not_cover_another():
    spec = _spec(b={"settings": {"synchronous_commit": "off"}})
    findings = _findings(spec, b={"settings": {"synchronous_commit": "off", "fsync": "off"}})
    assert _rules(findings) == {("durability", "warning"), ("durability", "withhold")}
    assert findings[0].severity == "withhold"


def test_without_standbys_local_is_as_durable_as_on():
    spec = _spec()
    findings = _findings(spec, b={"settings": {"synchronous_commit": "local"}})
    assert ("durability", "withhold") not in _rules(findings)


def test_mount_options_that_weaken_flushes_withhold_the_verdict():
    findings = _findings(_spec(), b={"storage": {"mount_options": "nobarrier,relatime,rw"}})
    assert ("durability", "withhold") in _rules(findings)


def test_a_file_system_in_memory_against_a_disk_withholds_the_verdict():
    findings = _findings(_spec(), b={"storage": {"filesystem": "tmpfs"}})
    assert ("durability", "withhold") in _rules(findings)


def test_zfs_that_ends_flushes_at_once_withholds_the_verdict():
    safe, unsafe = ({"filesystem": "zfs", "filesystem_parameters": {"sync": sync}} for sync in ("standard", "disabled"))
    findings = [
        each for each in _findings(_spec(), {"storage": safe}, {"storage": unsafe}) if each.rule == "durability"
    ]
    assert [finding.severity for finding in findings] == ["withhold"]
    assert "sync of ZFS of the data directory is standard in arm A and disabled in arm B" in findings[0].message
    unknown = {"storage": {"filesystem": "zfs", "filesystem_parameters": None}}
    assert ("durability", "withhold") not in _rules(_findings(_spec(), {"storage": safe}, unknown))


def test_wal_in_memory_in_one_arm_withholds_the_verdict():
    findings = _findings(_spec(), b={"storage": {"wal_filesystem": "tmpfs", "wal_mount_options": "rw"}})
    [finding] = [finding for finding in findings if finding.rule == "durability"]
    assert finding.severity == "withhold"
    assert "the file system of the WAL is ext4 in arm A and tmpfs in arm B" in finding.message


UNLOGGED = {"server": {"unlogged_tables": ["public.orders"]}}
LOGGED = {"server": {"unlogged_tables": []}}


def test_unlogged_tables_of_one_arm_withhold_the_verdict_unless_the_study_declares_them():
    by_sql = _spec(b={"setup_sql": ["ALTER TABLE orders SET UNLOGGED"]})
    [finding] = _findings(by_sql, a=LOGGED, b=UNLOGGED)
    assert (finding.rule, finding.severity) == ("durability", "withhold")
    assert "the list of unlogged tables is empty in arm A and public.orders in arm B" in finding.message
    assert "less_durable = true" in finding.cure
    declared = _spec(b={"setup_sql": ["ALTER TABLE orders SET UNLOGGED"], "less_durable": True})
    assert _rules(_findings(declared, a=LOGGED, b=UNLOGGED)) == {("durability", "warning")}
    assert _rules(_findings(_spec(), a=UNLOGGED, b=UNLOGGED)) == {("not_durable", "warning")}
    assert ("durability", "withhold") not in _rules(_findings(_spec(), b=UNLOGGED)), "not known of older facts"


def test_equal_but_absent_durability_is_a_warning():
    off = {"settings": {"fsync": "off"}}
    findings = _findings(_spec(server=off), a=off, b=off)
    assert _rules(findings) == {("not_durable", "warning")}
    assert "fsync is off in A and B" in findings[0].message


def test_differences_that_follow_from_a_declared_version_are_one_finding():
    spec = _spec(a={"postgres": "17"}, b={"postgres": "18"})
    findings = _findings(
        spec,
        a={"server": {"version": "17.10"}, "defaults": {"effective_io_concurrency": "1", "jit_cost": "1"}},
        b={"defaults": {"effective_io_concurrency": "16", "jit_cost": "2"}},
    )
    assert _rules(findings) == {("following_difference", "info")}
    assert "settings.effective_io_concurrency and settings.jit_cost" in findings[0].message


def test_a_setting_that_the_study_makes_does_not_hide_behind_the_version():
    spec = _spec(a={"postgres": "17"}, b={"postgres": "18"}, server={"settings": {"work_mem": "8MB"}})
    findings = _findings(spec, a={"settings": {"work_mem": "8MB"}}, b={"settings": {"work_mem": "16MB"}})
    assert ("undeclared_difference", "warning") in _rules(findings)


def test_what_the_server_works_out_from_a_declared_setting_is_information():
    spec = _spec(b={"settings": {"shared_buffers": "1GB"}})
    findings = _findings(spec, b={"settings": {"shared_buffers": "1GB"}, "defaults": {"wal_buffers": "16MB"}})
    assert _rules(findings) == {("following_difference", "info")}
    assert "From the declared settings.shared_buffers of B follow differences in settings.wal_buffers" in (
        findings[0].message
    )


@pytest.mark.parametrize(
    ("arm", "group", "follows", "does_not"),
    [
        ({"sysctl": {"vm.swappiness": 1}}, "memory", "swappiness", "thp"),
        ({"sysctl": {"vm.dirty_bytes": 100_000_000}}, "memory", "dirty_ratio", "swappiness"),
        ({"huge_pages": "2MB"}, "memory", "huge_page_pools", "thp"),
        ({"huge_pages": "2MB"}, "defaults", "shared_memory_size_in_huge_pages", "wal_compression"),
        ({"io_scheduler": "bfq"}, "storage", "queue_requests", "rotational"),
    ],
)
def test_of_a_host_no_more_follows_from_a_declared_key_than_what_it_changes(arm, group, follows, does_not):
    def undeclared(name):
        findings = _findings(_spec(b=arm), a={group: {name: "1"}}, b={group: {name: "2"}})
        return [name in each.message for each in findings if each.rule == "undeclared_difference"]

    assert undeclared(follows) == []
    assert undeclared(does_not) == [True]


def test_what_the_server_works_out_from_other_settings_than_the_declared_one_is_undeclared():
    spec = _spec(b={"settings": {"work_mem": "64MB"}})
    findings = _findings(spec, b={"settings": {"work_mem": "64MB"}, "defaults": {"wal_buffers": "16MB"}})
    assert _rules(findings) == {("undeclared_difference", "warning")}


def test_a_derivable_setting_that_an_arm_has_set_itself_does_not_hide_behind_a_declared_one():
    spec = _spec(b={"settings": {"shared_buffers": "1GB"}})
    findings = _findings(spec, b={"settings": {"shared_buffers": "1GB", "wal_buffers": "64MB"}})
    assert _rules(findings) == {("undeclared_difference", "warning")}
    assert "settings.wal_buffers" in findings[0].message


@pytest.mark.server
@pytest.mark.parametrize("major", VERSIONS)
@pytest.mark.parametrize("declared", [{"shared_buffers": "16MB"}, {"max_connections": "300"}], ids=["buffers", "slots"])
def test_real_servers_with_one_declared_setting_differ_only_in_what_follows_from_it(
    clusters, start_cluster, major, declared
):
    spec = _spec(b={"settings": declared})
    one = clusters(major)
    other = start_cluster(major, settings={**one.settings, **declared})
    facts = {
        "A": collect("A", one.target, one.data_directory),
        "B": collect("B", other.target, other.data_directory),
    }
    findings = audit(make_plan(spec, 1, "2026-11-20T14:12:00Z"), facts, Design(spec)).findings
    assert [finding.message for finding in findings if finding.rule == "undeclared_difference"] == []
    assert ("following_difference", "info") in _rules(findings)


def test_checksums_that_differ_by_version_are_a_warning_of_their_own():
    spec = _spec(a={"postgres": "17"}, b={"postgres": "18"})
    findings = _findings(spec, a={"server": {"version": "17.10", "data_checksums": "off"}})
    assert ("data_checksums", "warning") in _rules(findings)


def test_checksums_that_differ_by_declared_initdb_options_are_no_finding():
    spec = _spec(b={"initdb": ["--no-data-checksums"]})
    assert _findings(spec, b={"server": {"data_checksums": "off"}}) == []


def test_a_difference_of_locale_is_a_warning():
    findings = _findings(_spec(), b={"server": {"collate": "en_US.UTF-8"}})
    assert _rules(findings) == {("locale", "warning")}


def test_transparent_huge_pages_always_is_a_warning():
    always = {"memory": {"thp": "always"}}
    assert _rules(_findings(_spec(), a=always, b=always)) == {("thp", "warning")}


@pytest.mark.parametrize(
    "build", [{"debug_assertions": "on"}, {"build_configure": "'--enable-cassert'"}, {"build_flags": "-g -O2 -O0"}]
)
def test_a_debugging_build_is_a_warning(build):
    both = {"server": build}
    assert ("debug_build", "warning") in _rules(_findings(_spec(), a=both, b=both))


def test_a_build_for_small_size_is_a_warning_where_the_others_are_not():
    small = {"server": {"build_flags": "-g -O2 -Os"}}
    assert ("small_build", "warning") in _rules(_findings(_spec(), b=small))
    assert ("small_build", "info") in _rules(_findings(_spec(), a=small, b=small))


def test_a_change_that_waits_for_a_restart_is_a_warning():
    findings = _findings(_spec(), b={"server": {"pending_restart": ["shared_buffers"]}})
    assert ("pending_restart", "warning") in _rules(findings)


def test_all_withholding_findings_come_first():
    findings = _findings(_spec(), a={"memory": {"thp": "always"}}, b={"settings": {"fsync": "off"}})
    assert findings[0].severity == "withhold"


@pytest.mark.server
def test_two_real_servers_of_one_kind_give_no_finding_about_differences(clusters, start_cluster):
    spec = _spec()
    one = clusters(18)
    other = start_cluster(settings=one.settings)
    facts = {
        "A": collect("A", one.target, one.data_directory),
        "B": collect("B", other.target, other.data_directory),
    }
    findings = audit(make_plan(spec, 1, "2026-11-20T14:12:00Z"), facts, Design(spec)).findings
    assert not {finding.rule for finding in findings} & {"undeclared_difference", "following_difference", "durability"}


@pytest.mark.server
@pytest.mark.parametrize("major", VERSIONS[:-1])
def test_real_servers_of_two_versions_differ_only_by_the_declared_version(clusters, major):
    spec = _spec(a={"postgres": str(major)}, b={"postgres": "18"})
    one, other = clusters(major), clusters(18)
    facts = {
        "A": collect("A", one.target, one.data_directory),
        "B": collect("B", other.target, other.data_directory),
    }
    findings = audit(make_plan(spec, 1, "2026-11-20T14:12:00Z"), facts, Design(spec)).findings
    rules = _rules(findings)
    assert ("following_difference", "info") in rules
    assert ("data_checksums", "warning") in rules
    assert not {rule for rule, _ in rules} & {"undeclared_difference", "durability", "locale"}


@pytest.mark.parametrize(("randomised", "rules"), [("0", {("fixed_layout", "info")}), ("2", set()), (None, set())])
def test_a_layout_of_memory_that_is_the_same_in_every_trial_is_told(randomised, rules):
    own = {"os": {"address_randomisation": randomised}}
    assert _rules(_findings(_spec(), own, own)) == rules


def test_tables_that_pgtrial_has_not_made_are_named():
    own = {"server": {"tables_of_others": ["pgbench's tables of scale 1"]}}
    [found] = [each for each in _findings(_spec(), own, own) if each.rule == "tables_of_others"]
    assert found.severity == "info"
    assert len(found.arms) == 2
    assert "runs on pgbench's tables of scale 1 that pgtrial has not made: they are used as they are" in found.message
