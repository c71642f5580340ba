"""The verifier that libpq computes is one that PostgreSQL takes."""

from dataclasses import replace

import psycopg
import pytest

from pgtrial.servers.access import verifier

pytestmark = [pytest.mark.quick, pytest.mark.server]


def test_the_password_of_a_verifier_logs_in_and_no_other(start_cluster):
    cluster = start_cluster(18, hba="local all postgres trust\nlocal all all scram-sha-256\n")
    with cluster.target.connect_as_user() as connection:
        connection.execute(f"CREATE ROLE guest LOGIN PASSWORD '{verifier('s3cret-_x')}'".encode())
    guest = replace(cluster.target, user="guest", password="s3cret-_x")
    with guest.connect_as_user() as connection:
        assert connection.info.user == "guest"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        replace(guest, password="s3cret").connect_as_user()
