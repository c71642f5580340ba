"""Numbers of servers and jobs of killed labs that were given to processes of somebody else's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from tests.conduct.small import STUDY, start_lab
from tests.machines.strangers import REUSED, is_untouched, record_of_a_job, started_in
from tests.servers.intruder import as_account

from bench.reliability.hosts import host
from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing
from bench.reliability.labs import Lab, clean_up, forget
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.ssh.machine import RemoteMachine
from pgtrial.servers.run_directory import servers_account

_SHARE = 0.15
"""The number of attacks of this kind, as a share of the option `--kills`."""
_NUMBER_S = 6.0
_MOMENT_S = 3.0
"""The longest time from the start of a server until the lab is killed, seconds."""


def _run(campaign: Campaign) -> Iterator[Figure]:
    account = servers_account(LOCAL)
    if account is None:
        raise Missing("files that name a server are those of an account that is not root's")
    what = "numbers of servers and jobs of killed labs that other processes have now"
    attack = Attack(campaign, "numbers", what, campaign.part(_SHARE))
    servers = jobs = 0
    with host(campaign) as other:
        for number in range(attack.planned):
            with started_in(campaign.scratch / f"stranger-{number}") as stranger:
                if number % 2:
                    jobs += _stale_jobs(campaign, other.login, stranger)
                else:
                    servers += _stale_servers(campaign, account, stranger.pid)
                    clean_up(attack, "the number of a server was given again")
                if not is_untouched(stranger):
                    attack.defect("a process of somebody else's was ended or stopped by its number")
            attack.done()
    yield attack.figure(f"{servers} files of servers and {jobs} records of jobs named a process that was left alone")


def _stale_jobs(campaign: Campaign, login: str, stranger: object) -> int:
    """Lets a lab end recorded jobs on a host whose process numbers now belong to another process, which the lab must
    not end; returns the number of jobs."""
    machine = RemoteMachine(login)
    jobs = Path("/tmp") / f"pgtrial-{campaign.chance.randrange(1 << 32):08x}-jobs"
    machine.begin_jobs(jobs)
    for reused in REUSED:
        (jobs / reused).mkdir()
        (jobs / reused / "pid").write_text(record_of_a_job(stranger, reused))
    machine.end_jobs(jobs)
    machine.close()
    return len(REUSED)


def _stale_servers(campaign: Campaign, account: str, number: int) -> int:
    """Kills a lab and its servers, and writes the number of an unrelated process into the servers' postmaster.pid
    files; returns the number of files."""
    folder = campaign.scratch / "numbers"
    forget(folder)
    folder.mkdir()
    with start_lab(folder, STUDY) as process:
        lab = Lab(process, campaign.state)
        while lab.runs and not lab.postmasters():
            time.sleep(0.01)
        time.sleep(campaign.chance.uniform(0, _MOMENT_S))
        process.kill()
        process.communicate()
        servers = lab.postmasters()
        files = [Path(server.cwd()) / "postmaster.pid" for server in servers]
        for server in servers:
            server.kill()
        psutil.wait_procs(servers)

    def write() -> int:
        for file in files:
            file.write_text(f"{number}\n{file.parent}\n")
        return len(files)

    return as_account(account, write)


KIND = Kind("numbers", lambda campaign: campaign.part(_SHARE) * _NUMBER_S, _run)
