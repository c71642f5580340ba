"""Full disks: that of the results, that of a server, and those that the server's and the engine's logs are on."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conduct.small import start_lab
from tests.conduct.test_server_loss import BALLAST, FILLER

from bench.reliability.kind import Attack, Campaign, Figure, Kind, machine_unchanged
from bench.reliability.labs import PATIENCE_S, forget
from bench.reliability.served import run_engine, served

_FREE_KIB = (64, 256, 512, 1024, 2048)
"""The sizes of the file system of the results: with each it is full at another moment of the study."""

_LOG_FREE_KIB = (1024, 4096)
_VOLUMES_MB = (150, 200, 220)
_ENGINE_FREE_KIB = (4, 64)
_STUDY_S = 30.0

_STUDY = """
[study]
name = "full"
[load]
workload = "WORKLOAD"
scale = 1
clients = 2
warmup = "500ms"
duration = "2s"
interleave = "off"
[server]
settings = { shared_buffers = "64MB", huge_pages = "off"MORE }
[arms.base]
[arms."no jit"]
settings = { jit = "off" }
[verdict]
blocks = 1
"""
_PLAIN = _STUDY.replace("WORKLOAD", "simple-update").replace("MORE", "")
_LOGGING = _STUDY.replace("WORKLOAD", "simple-update").replace("MORE", ', log_statement = "all"')

_TIGHT = """
[study]
name = "tight"
[load]
workload = "filler.sql"
scale = 1
clients = 1
warmup = "400ms"
duration = "6s"
interleave = "off"
[server]
settings = { max_wal_size = "4GB", huge_pages = "off", autovacuum = "off" }
setup_sql = ["CREATE SEQUENCE turns"]
[arms.roomy]
[arms.tight]
storage = { fs = "ext4", size = "SIZEMB" }
setup_sql = BALLAST
[verdict]
blocks = 1
"""


def _run(campaign: Campaign) -> Iterator[Figure]:
    yield _results(campaign, "the disk of the results is full", _PLAIN, _FREE_KIB)
    yield _results(campaign, "the server's log fills the disk of the results", _LOGGING, _LOG_FREE_KIB)
    yield _servers(campaign)
    yield _engines(campaign)


def _results(campaign: Campaign, what: str, study: str, free_kib: tuple[int, ...]) -> Figure:
    """Checks that the lab stops with one sentence, and goes on when there is room."""
    attack = Attack(campaign, "disks", what, len(free_kib))
    stopped = 0
    for kib in free_kib:
        with machine_unchanged(attack), _small_disk(campaign.scratch / "small", kib) as disk:
            folder = disk / "study"
            folder.mkdir()
            status, output = _lab(folder, study)
            if status != 0:
                stopped += 1
                _check_sentence(attack, output, f"with {kib} KiB for the results")
                _grow(disk)
                _go_on(attack, folder, study)
        attack.done()
    return attack.figure(f"{stopped} labs stopped with one sentence, all studies were completed afterwards")


def _go_on(attack: Attack, folder: Path, study: str) -> None:
    """Checks that the same command in the same folder completes the study."""
    status, output = _lab(folder, study)
    if status != 0 or "Traceback" in output:
        attack.defect(f"with room again a lab ended with status {status}: {_last(output)}")
    stored = list(folder.glob("results/*/trials/[0-9]*/trial.json"))
    if len(stored) != 2:
        attack.defect(f"with room again {len(stored)} of 2 trials are stored")


def _servers(campaign: Campaign) -> Figure:
    """Checks that the trial fails with the server's words, or that the lab says that the data do not fit; the machine
    must be put back.
    """
    attack = Attack(campaign, "disks", "the volume of a server is full", len(_VOLUMES_MB))
    ends: Counter[str] = Counter()
    for size in _VOLUMES_MB:
        folder = campaign.scratch / "disks" / str(size)
        folder.mkdir(parents=True)
        (folder / "filler.sql").write_text(FILLER)
        text = _TIGHT.replace("SIZE", str(size)).replace("BALLAST", str(BALLAST))
        with machine_unchanged(attack):
            status, output = _lab(folder, text)
        if "Traceback" in output:
            attack.defect(f"a volume of {size} MB: {_last(output)}")
        if status == 0:
            is_full = "No space left on device" in next(folder.glob("results/*/report.md")).read_text()
            ends["with a failed trial and the server's words" if is_full else "without being full"] += 1
        else:
            _check_sentence(attack, output, f"a volume of {size} MB")
            ends["with one sentence before the trials"] += 1
        forget(folder)
        attack.done()
    return attack.figure(", ".join(f"{count} ended {how}" for how, count in sorted(ends.items())))


def _engines(campaign: Campaign) -> Figure:
    """Checks that the engine reports a full disk in one line and ends with status 1, and that its report is printed."""
    outputs = {"-l": "the transaction log", "--events": "the events"}
    attack = Attack(campaign, "disks", "the engine's log or events fill a disk", 2 * len(_ENGINE_FREE_KIB))
    with served(campaign, {"scale": 1}, {"huge_pages": "off"}) as target:
        for kib in _ENGINE_FREE_KIB:
            for option, name in outputs.items():
                with _small_disk(campaign.scratch / "small", kib) as disk:
                    (disk / "filler").write_bytes(bytes(1024 * (kib - 4)))
                    more = ["-l", f"--log-prefix={disk}/log"] if option == "-l" else [f"--events={disk}/events"]
                    run = run_engine(target, ["pgbench", "-n", "-S", "-T", "2", "-c", "2", *more])
                lines = run.stderr.strip().splitlines()
                if run.status == 0 or "No space left on device" not in run.stderr or "panicked" in run.stderr:
                    attack.defect(f"a full disk for {name}: status {run.status}, {lines[-1:]}")
                if len(lines) > 2:
                    attack.defect(f"a full disk for {name} is reported in {len(lines)} lines")
                attack.done()
    return attack.figure("each reported in one sentence")


def _lab(folder: Path, study: str) -> tuple[int, str]:
    """Runs a lab to its end; returns its status, and what it wrote to standard error."""
    lab = start_lab(folder, study)
    try:
        _, output = lab.communicate(timeout=PATIENCE_S)
    finally:
        if lab.poll() is None:
            lab.terminate()
            lab.communicate()
    return lab.returncode, output


def _check_sentence(attack: Attack, output: str, where: str) -> None:
    if "Traceback" in output:
        attack.defect(f"{where}: a traceback, {_last(output)}")
    elif not any(words in output for words in ("No space left", "disk", "space", "does not hold")):
        attack.defect(f"{where}: the lab does not say that the disk is full: {_last(output)}")


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["nothing"])[-1]


@contextmanager
def _small_disk(path: Path, kib: int) -> Iterator[Path]:
    """Yields a file system in memory of the given size in KiB, which is unmounted at the end."""
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=755", "pgtrial-reliability", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def _grow(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=256m", disk], check=True)


KIND = Kind(
    "disks",
    lambda campaign: (2 * (len(_FREE_KIB) + len(_LOG_FREE_KIB)) + len(_VOLUMES_MB)) * _STUDY_S / 2,
    _run,
)
