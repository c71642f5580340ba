"""An account of a host that is not root and may become it, by the real sudo."""

from __future__ import annotations

import shutil

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import measuring, small_study
from tests.conftest import require, require_engine
from tests.machines.ssh.hosts import Host

pytestmark = [pytest.mark.server, pytest.mark.machine]


def test_an_account_with_sudo_changes_its_host_as_root_does_and_puts_it_back(tmp_path, hosts, postgres):
    require_engine()
    require(shutil.which("sudo"), "sudo")
    host: Host = hosts[1]
    before = host.ttl()
    set_up = {
        "ssh": host.login,
        "sudo": True,
        "data": str(host.data),
        "postgres": postgres,
        "storage": {"fs": "tmpfs", "size": "300MB"},
        "sysctl": {"net.ipv4.ip_default_ttl": "77"},
    }
    study = small_study(tmp_path / "s", blocks=1, arms={"a": set_up, "b": {**set_up, "settings": {"jit": "off"}}})
    seen: list[tuple[str, int]] = []

    def look(event):
        if measuring(event):
            seen.append((host.ttl(), len(host.mounts())))

    with host.account_with_sudo():
        run_study(study, look)
    study = StudyDirectory.open(study.path)
    assert [(trial.status, trial.reason) for trial in study.trials()] == [("completed", None)] * 2
    assert set(seen) == {("77", 1)}
    for facts in study.facts().values():
        assert facts.facts["storage"]["filesystem"] == "tmpfs"
    assert host.ttl() == before
    assert host.left_in_the_end() == []
