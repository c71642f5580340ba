"""A lab under attack: `pgtrial run`, started again until its study is complete, and what must hold then."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from tests.conduct.small import PGTRIAL, each_once, start_lab

from bench.reliability.kind import Attack, Campaign
from pgtrial.model.errors import PgtrialError
from pgtrial.servers.given_data import data_journal
from pgtrial.servers.leftovers import leftovers
from pgtrial.servers.postmaster import server_processes
from pgtrial.store.directory import StudyDirectory

PATIENCE_S = 300.0
_MOST_STARTS = 12
_SILENT_AT_MOST = 3
"""The number of times that a lab may end with an error without having been attacked since its start."""

Attacker = Callable[["Lab"], bool]
"""A function that acts on a lab in progress and returns whether it wants to be called again."""


class Lab:
    """A process of `pgtrial run`."""

    def __init__(self, process: subprocess.Popen[str], state: Path) -> None:
        self.process = process
        self._state = state
        self.was_attacked = False

    @property
    def runs(self) -> bool:
        """True if the lab has not ended."""
        return self.process.poll() is None

    def engines(self) -> list[psutil.Process]:
        """Returns the engines that the lab has started on this machine."""
        return [each for each in self._descendants() if _name(each) == "pgtrial-engine"]

    def postmasters(self) -> list[psutil.Process]:
        """Returns the postmasters of the lab's servers."""
        found = server_processes(self._state / "runs")
        numbers = {process.pid for process in found}
        return [process for process in found if _name(process) == "postgres" and _parent(process) not in numbers]

    def backends(self) -> list[psutil.Process]:
        """Returns the processes of the lab's servers that serve clients."""
        return [process for process in server_processes(self._state / "runs") if "[local]" in _words(process)]

    def _descendants(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []


def run_to_its_end(attack: Attack, folder: Path, study: str, attacker: Attacker) -> StudyDirectory | None:
    """Run a study file in a new folder until it is complete, and check what is promised; None if it never was.

    The attacker is called while a lab runs, for as long as it wants to be; each new lab goes on with the study.
    """
    folder.mkdir(parents=True)
    stored: dict[str, str] = {}
    silent = 0
    for _ in range(_MOST_STARTS):
        with _lab(attack.campaign, folder, study) as lab:
            wanted = True
            while wanted and lab.runs:
                wanted = attacker(lab)
            try:
                _, output = lab.process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                attack.defect(f"a lab did not end within {PATIENCE_S:.0f} s")
                return None
        if "Traceback" in output:
            attack.defect(f"a lab ended with a traceback: {_last_place(output)}")
        _check_kept(attack, stored, folder)
        # a lab that was killed after its report had nothing left to do, and the same command would begin a new study
        if lab.process.returncode == 0 or any(folder.glob("results/*/report.html")):
            return _check_complete(attack, folder)
        silent = 0 if lab.was_attacked else silent + 1
        if silent == _SILENT_AT_MOST:
            break
    last = output.strip().splitlines() or ["nothing"]
    attack.defect(f"a study did not go on; the lab said last: {last[-1]}")
    return None


@contextmanager
def _lab(campaign: Campaign, folder: Path, study: str) -> Iterator[Lab]:
    process = start_lab(folder, study)
    try:
        yield Lab(process, campaign.state)
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate()


def _check_kept(attack: Attack, stored: dict[str, str], folder: Path) -> None:
    """Trials that were stored are as they were; `stored` gets the new ones."""
    for trial in sorted(folder.glob("results/*/trials/[0-9]*")):
        digest = hashlib.sha256()
        for path in sorted(trial.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(trial)}\0".encode() + path.read_bytes())
        name = str(trial.relative_to(folder))
        if stored.setdefault(name, digest.hexdigest()) != digest.hexdigest():
            attack.defect(f"the stored trial {name} was changed")
    for name in stored:
        if not (folder / name).exists():
            attack.defect(f"the stored trial {name} is gone")


def _check_complete(attack: Attack, folder: Path) -> StudyDirectory | None:
    """Checks that no trial is lost or doubled, that each failed one has a reason, and that a report but nothing else
    remains.
    """
    studies = [path.parent for path in folder.glob("results/*/study.toml")]
    if len(studies) != 1:
        attack.defect(f"a study that is complete has {len(studies)} directories")
        return None
    try:
        study = StudyDirectory.open(studies[0])
        if not each_once(study):
            stored = [trial.index for trial in study.trials()]
            attack.defect(f"of {len(study.plan.trials)} planned trials these are stored: {stored}")
    except PgtrialError as error:
        attack.defect(f"a study that is complete cannot be read: {error}")
        return None
    for trial in study.trials():
        if trial.status == "failed" and not trial.reason:
            attack.defect(f"trial {trial.index} failed without a reason")
    if not (study.path / "report.html").exists():
        attack.defect("a study that is complete has no report")
    for left in leftovers(attack.campaign.state):
        attack.defect(f"left behind: {left.what} in {left.path}")
    return study


def clean_up(attack: Attack, after: str) -> None:
    """Checks that `pgtrial cleanup` ends well, and that nothing is left of labs that ended before."""
    state = attack.campaign.state
    words = [PGTRIAL, "cleanup"]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        attack.defect(f"pgtrial cleanup did not end within {PATIENCE_S:.0f} s after {after}")
        return
    if done.returncode != 0 or "Traceback" in done.stderr:
        attack.defect(f"pgtrial cleanup ended with {done.returncode} after {after}: {done.stdout}{done.stderr}")
    for left in (*leftovers(state), *data_journal(state).records()):
        attack.defect(f"left behind after {after}: {left.what}")


def forget(folder: Path) -> None:
    """Removes all that a study has written."""
    shutil.rmtree(folder, ignore_errors=True)


def _last_place(output: str) -> str:
    """Returns the last place in this project that a traceback names, and the lines after it."""
    lines = output.strip().splitlines()
    places = [number for number, line in enumerate(lines) if "/pgtrial/" in line and line.lstrip().startswith("File ")]
    return " ".join(line.strip() for line in lines[places[-1] :]) if places else lines[-1]


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def _parent(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return process.ppid()
    return 0


def _words(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
