"""Settings that may hold secrets: their values are in no facts, and still show where arms differ."""

from __future__ import annotations

import pytest

from pgtrial.evidence.collect.collect import collect

pytestmark = pytest.mark.server

_SECRET = "s3cr3t-Pa55w0rd"
_HOLDING_IT = {
    "primary_conninfo": f"host=db1 user=repl password={_SECRET}",
    "archive_command": f"curl -H 'Authorization: {_SECRET}' https://wal.example.org/%f",
    "restore_command": f"AWS_SECRET_ACCESS_KEY={_SECRET} wal-g wal-fetch %f %p",
    "recovery_end_command": f"notify {_SECRET}",
    "archive_cleanup_command": f"clean {_SECRET}",
    "ssl_passphrase_command": f"echo {_SECRET}",
    "basebackup_to_shell.command": f"upload --token {_SECRET}",
}
_EXTENSION = {"shared_preload_libraries": "basebackup_to_shell"}


@pytest.mark.parametrize("mode", ["off", "on"])
def test_values_of_settings_that_may_hold_secrets_stay_on_the_server(start_cluster, mode):
    one = start_cluster(
        settings={**_HOLDING_IT, "archive_mode": mode, **_EXTENSION, "app.jwt_secret": _SECRET, "jit": "off"}
    )
    facts = collect("A", one.target, one.data_directory)
    assert _SECRET not in facts.model_dump_json()
    settings = facts.facts["settings"]
    withheld = {name for name in _HOLDING_IT if settings[name].startswith("set, not shown (digest ")}
    # where archive_mode is off the server shows "(disabled)" in place of the command
    assert withheld == _HOLDING_IT.keys() - ({"archive_command"} if mode == "off" else set())
    assert settings["jit"] == "off"
    assert facts.facts["defaults"]["search_path"] == '"$user", public'


def test_two_servers_differ_where_the_values_that_are_not_told_differ(start_cluster):
    values = [_SECRET, _SECRET, "another"]
    same, again, other = (
        collect("A", one.target, one.data_directory).facts["settings"]["restore_command"]
        for one in (start_cluster(settings={"restore_command": text}) for text in values)
    )
    assert same == again != other


def test_the_digest_of_one_setting_tells_nothing_of_another(start_cluster):
    one = start_cluster(settings={"recovery_end_command": _SECRET, "restore_command": _SECRET})
    settings = collect("A", one.target, one.data_directory).facts["settings"]
    assert settings["recovery_end_command"] != settings["restore_command"]
