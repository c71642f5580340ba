"""Managed services are told by what their servers have and others have not."""

from __future__ import annotations

import pytest

from pgtrial.evidence.collect.server import SIGNS, provider_of

# names among pg_settings, pg_roles and pg_proc of servers of each service, as their documentation and clients have them
SERVERS = {
    "Amazon RDS": (
        {"server_version", "rds.extensions", "rds.force_ssl", "rds.logical_replication"},
        {"postgres", "rdsadmin", "rds_superuser", "rds_replication", "rds_iam", "rds_password"},
        {"version"},
    ),
    "Amazon Aurora": (
        {"server_version", "rds.extensions", "apg_plan_mgmt.use_plan_baselines"},
        {"postgres", "rdsadmin", "rds_superuser"},
        {"version", "aurora_version", "aurora_db_instance_identifier"},
    ),
    "Google Cloud SQL": (
        {"server_version", "cloudsql.supported_extensions", "cloudsql.iam_authentication"},
        {"postgres", "cloudsqladmin", "cloudsqlagent", "cloudsqlsuperuser"},
        {"version"},
    ),
    "Google AlloyDB": (
        {"server_version", "google_columnar_engine.enabled", "alloydb.iam_authentication"},
        {"postgres", "alloydbadmin", "alloydbsuperuser", "alloydbiamuser"},
        {"version"},
    ),
    "Azure Database for PostgreSQL": (
        {"server_version", "azure.extensions", "pg_qs.query_capture_mode"},
        {"azuresu", "azure_pg_admin", "replication"},
        {"version"},
    ),
    "Neon": ({"server_version", "neon.tenant_id", "neon.timeline_id"}, {"cloud_admin", "neon_superuser"}, {"version"}),
    "Supabase": (
        {"server_version", "supautils.reserved_roles"},
        {"postgres", "anon", "authenticator", "service_role", "supabase_admin"},
        {"version"},
    ),
}


@pytest.mark.parametrize(("provider", "server"), SERVERS.items(), ids=SERVERS.keys())
def test_each_service_is_told(provider, server):
    assert provider_of(*server) == provider


def test_every_service_that_is_known_is_tested():
    assert {signs.provider for signs in SIGNS} == set(SERVERS)


def test_a_service_is_told_although_the_role_sees_no_settings_of_its_own():
    settings, roles, functions = SERVERS["Amazon RDS"]
    assert provider_of({name for name in settings if "." not in name}, roles, functions) == "Amazon RDS"


def test_any_other_server_is_not_taken_for_one():
    names = {"server_version", "shared_buffers", "plpgsql.variable_conflict"}
    assert provider_of(names, {"postgres", "pg_monitor"}, {"version", "now"}) is None
