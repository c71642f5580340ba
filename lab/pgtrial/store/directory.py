"""Reads and writes a study directory. It contains, in plain files, the study file with all defaults written out, the
plan, the facts about the arms, and each trial as soon as it is complete.

The directory of a trial is written under a hidden temporary name, and is renamed when it is complete. If pgtrial is
killed, at most the running trial is lost, and no trial is stored twice.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import polars as pl
from pydantic_core import from_json

from pgtrial.files.reading import read_bytes
from pgtrial.model.errors import StoreError
from pgtrial.model.latencies import Latencies
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.model.records.instructions import InstructionCounts
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.replay import StatementPlans
from pgtrial.model.records.trial import SliceRow, Trial
from pgtrial.model.study.cut_values import cut
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.packs import MANIFEST
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import slug
from pgtrial.store.arm_scripts import FOLDER
from pgtrial.store.files import (
    check_readable,
    damaged,
    hidden,
    intact,
    make_folder,
    parse_record,
    read_record,
    record_at,
    refuse_newer,
    sync_directory,
    sync_tree,
    write_atomically,
    write_in_folder,
    writing,
)
from pgtrial.store.machine_key import is_sealed, seal
from pgtrial.store.running import locked
from pgtrial.store.tables import SCHEMAS, again, committed_of_each, read_frame
from pgtrial.store.workloads import digest

PLAN, STUDY = "plan.json", "study.toml"
STUDIES = "studies.json"
"""The file with the plan of a gate of several studies. The directory and the bundle of such a gate have it in place of
a study file."""

_KEY = "sha256"
"""The key in plan.json that holds two digests: the SHA-256 of study.toml, and the SHA-256 of the plan, written as
compact JSON with sorted keys. By these digests pgtrial notices later changes."""
_SEAL = "made here"
"""The key in plan.json, next to the two digests, that holds a text which only this account on this machine can compute
(`machine_key.seal`). It shows that the study was planned here."""
_CURE_OF_PLAN = "restore it from a copy, or run the study again"

_PROVIDER = "provider.parquet"
_PLANS = "statement_plans.json"
_INSTRUCTIONS = "instructions.json"
_RECORD = "trial.json"
"""The file that is written last into the directory of a trial: if it exists, the trial is complete."""

JOB_PROGRESS = "progress.json"
"""The file with the progress of a job, in the directory of the trial that runs it."""


class StudyDirectory:
    """A study on disk. `spec` and `plan` never change; everything else is read from the files at each call.

    `made_here` is true if this account planned the study on this machine. A study that was not made here may come from
    a stranger, so pgtrial does not trust its files.
    """

    def __init__(self, path: Path, spec: StudySpec, plan: Plan, *, made_here: bool = False):
        self.path = path
        self.spec = spec
        self.plan = plan
        self.made_here = made_here

    @property
    def design(self) -> Design:
        """The design of the study: the study file with everything that follows from it, such as the load points and the
        server of each arm. Whether the trials of a load point alternate in slices is taken from the plan."""
        return Design.planned(self.spec, self.plan)

    @classmethod
    def create(cls, path: Path, spec: StudySpec, plan: Plan) -> StudyDirectory:
        """Creates a new study directory. `path` must either not exist or be an empty directory. Raises StoreError if
        the directory cannot be written or is not empty, and then leaves `path` as it was."""
        existed = path.exists()
        make_folder(path, mode=0o700)
        with writing(path):
            if any(path.iterdir()):
                raise StoreError(
                    f"{path} is not empty, and does not contain this study; choose another directory with --results"
                )
        try:
            return cls._filled(path, spec, plan)
        except BaseException:
            # otherwise the next attempt would be refused, since the directory is not empty
            with suppress(OSError):
                for folder in ("trials", "facts", FOLDER):
                    shutil.rmtree(path / folder, ignore_errors=True)
                (path / PLAN).unlink(missing_ok=True)
                if not existed:
                    path.rmdir()
            raise

    @classmethod
    def _filled(cls, path: Path, spec: StudySpec, plan: Plan) -> StudyDirectory:
        """Writes the files of a new study into an empty directory. Raises StoreError if they cannot be written."""
        with writing(path):
            (path / "trials").mkdir()
            (path / "facts").mkdir()
            for name in spec.scripts:
                (path / FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        for name, text in spec.scripts.items():
            write_atomically(path / FOLDER / name, text)
        frozen = freeze(spec)
        _write_plan(path, plan, frozen, made_here=True)
        # this file is written last: if it exists, the study directory is complete
        write_atomically(path / STUDY, frozen)
        return cls(path, thaw(frozen).with_scripts(spec.scripts), plan, made_here=True)

    @classmethod
    def open(cls, path: Path) -> StudyDirectory:
        """Reads an existing study directory. Raises StoreError if it is damaged, or does not contain a study."""
        if path.is_dir():
            check_readable(path)
        if not path.exists():
            raise StoreError(f"{path} does not exist; name the directory of a study, or its bundle")
        if (path / STUDIES).is_file():
            raise StoreError(
                f"{path} holds the studies of a gate; name the directory or the bundle of one of them (tar -xf unpacks "
                "the bundle of a gate)"
            )
        if not (path / STUDY).is_file():
            raise StoreError(f"{path} is not a study directory: it has no study.toml; `pgtrial run` makes one")
        try:
            frozen = read_bytes(path / STUDY).decode()
            spec = thaw(frozen)
        except (OSError, ValueError) as error:
            refuse_newer(path / PLAN)
            raise damaged(path / STUDY, error, "restore it from a copy") from error
        plan, made_here = _read_plan(path, frozen)
        return cls(path, spec.with_scripts(_read_scripts(path / FOLDER, plan)), plan, made_here=made_here)

    def extend(self, plan: Plan) -> None:
        """Replaces the stored plan by one with further blocks. Raises StoreError if it cannot be written."""
        _write_plan(self.path, plan, read_bytes(self.path / STUDY).decode(), made_here=self.made_here)
        self.plan = plan

    def without_secrets(self) -> dict[str, str]:
        """Returns the texts of study.toml and plan.json without values that may be secrets, by the name of the file. A
        bundle contains these texts in place of the files. The result is empty if the study has no such values."""
        spec, paths_of_values = cut(self.spec)
        if not paths_of_values:
            return {}
        frozen = freeze(spec)
        return {STUDY: frozen, PLAN: _plan_text(self.plan, frozen, made_here=self.made_here)}

    def script(self, point: LoadPoint) -> Path | None:
        """Returns the path, in the study directory, of the workload's file if it is a script of the user, or of its
        folder if it is a pack, a suite or several scripts with weights; None for a built-in workload."""
        if point.kind.folder is not None:
            return self.path / FOLDER / point.kind.folder
        if point.mix:
            return self.path / FOLDER
        return self.script_called(point.workload.partition("/")[0])

    def script_called(self, name: str) -> Path | None:
        """Returns the path of a script of the user, or of the folder of a pack, with this name; None if the study has
        no script and no pack of this name."""
        is_own = name in self.plan.scripts or f"{name}/{MANIFEST}" in self.plan.scripts
        return self.path / FOLDER / name if is_own else None

    # ---- trials

    def trials(self) -> list[Trial]:
        """Returns all stored trials in the order in which they ran. If one is damaged, raises StoreError with its path
        and a remedy."""
        trials = [self._read_trial(path) for path in sorted((self.path / "trials").glob("[0-9]*"))]
        indices: set[int] = set()
        for trial in trials:
            if trial.index in indices:
                raise StoreError(
                    f"{self.path / 'trials'} contains trial {trial.index} twice; delete one of the two directories"
                )
            indices.add(trial.index)
        return sorted(trials, key=lambda trial: trial.index)

    def missing(self) -> list[PlannedTrial]:
        """Returns the planned trials that are not stored yet, in the order in which they will run."""
        stored = {trial.index for trial in self.trials()}
        return [planned for planned in self.plan.wanted if planned.index not in stored]

    def trial_path(self, trial: Trial | PlannedTrial) -> Path:
        """Returns the directory of a trial, such as trials/0007-b03-2MB-tpcb-like-s50-c8."""
        point = trial.load_point if isinstance(trial, Trial) else self.plan.load_points[trial.load_point]
        name = f"{trial.index:04d}-b{trial.block:02d}-{slug(trial.arm)}-{point.slug}"
        return self.path / "trials" / name

    def table_path(self, trial: Trial, name: str) -> Path:
        """Returns the path of a table of the trial, such as `timeline` or `waits`, even if the trial does not have
        it."""
        return self.trial_path(trial) / f"{name}.parquet"

    def timeline(self, trial: Trial) -> pl.DataFrame:
        """Returns the table with one row for each second of the trial (columns of TIMELINE_SCHEMA); empty for a failed
        trial without one. Raises StoreError if the file is damaged."""
        return self._table(trial, "timeline", may_lack=trial.status == "failed")

    def slices(self, trial: Trial) -> pl.DataFrame:
        """Returns the table of the slices of an interleaved trial, which alternates with other trials in slices
        (columns of SLICES_SCHEMA); empty for other trials. Raises StoreError if the file is damaged."""
        return self._table(trial, "slices")

    def waits(self, trial: Trial) -> pl.DataFrame:
        """Returns the table of the wait events of sessions (columns of WAITS_SCHEMA); empty if they were not observed.
        Raises StoreError if the file is damaged."""
        return self._table(trial, "waits")

    def observed(self, trial: Trial) -> pl.DataFrame:
        """Returns the table of the counters by second (columns of OBSERVED_SCHEMA); empty if they were not observed.
        Raises StoreError if the file is damaged."""
        return self._table(trial, "observed")

    def provider_metrics(self, trial: Trial) -> pl.DataFrame:
        """Returns the table of the provider's metrics (columns of PROVIDER_SCHEMA); empty if they were not imported.
        Raises StoreError if the file is damaged."""
        return self._table(trial, "provider")

    def has_provider_metrics(self, trial: Trial) -> bool:
        """True if the provider's metrics of a trial have been imported."""
        return (self.trial_path(trial) / _PROVIDER).exists()

    def write_provider_metrics(self, trial: Trial, metrics: pl.DataFrame) -> None:
        """Stores the provider's metrics of a trial that is already stored. They are stored after the trial, since the
        provider's monitoring has them only some minutes later."""
        file = io.BytesIO()
        metrics.write_parquet(file)
        write_in_folder(self.trial_path(trial) / _PROVIDER, file.getvalue())

    def latencies(self, trial: Trial) -> Latencies | None:
        """Returns the latencies of the measured phase; None if the trial has none. Raises StoreError if the file is
        damaged."""
        path = self.trial_path(trial) / "latency.hdr"
        if not path.exists():
            return None
        with intact(path, again(path.parent)):
            return Latencies.read(read_bytes(path).decode().strip())

    def begin_trial(self, planned: PlannedTrial) -> Path:
        """Creates the hidden directory in which the files of a trial are written until `write_trials` completes it, and
        returns its path."""
        temporary = self.hidden_path(planned)
        with writing(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
        return temporary

    def hidden_path(self, planned: PlannedTrial) -> Path:
        """Returns the path of the hidden directory in which the files of a trial are written while it is in
        progress."""
        return hidden(self.trial_path(planned))

    def write_trials(self, trials: Sequence[Trial]) -> None:
        """Completes trials that ran at the same time: first all their files are flushed to the disk, and then the
        directories get their final names.

        Each trial must have been begun with `begin_trial`. If pgtrial is killed after the flush but before all
        directories have their names, `finish_trials` renames the others later.
        """
        for trial in trials:
            temporary = hidden(self.trial_path(trial))
            with writing(temporary):
                sync_tree(temporary)
            write_atomically(temporary / _RECORD, trial.model_dump_json(indent=1))
        self._name([self.trial_path(trial) for trial in trials])

    def finish_trials(self) -> None:
        """Completes trials whose files were all written when pgtrial was killed: gives their directories the final
        names. Raises StoreError if a directory cannot be renamed."""
        complete = {path for path in self.unfinished() if (path / _RECORD).exists()}
        for together in self._groups() if complete else ():
            paths = [self.trial_path(planned) for planned in together]
            written = [path for path in paths if hidden(path) in complete]
            if all(path in written or path.exists() for path in paths):
                self._name(written)

    def together(self, planned: PlannedTrial) -> list[PlannedTrial]:
        """Returns the planned trials that run at the same time as `planned`, including this one. Raises StoreError if
        only some of them are stored."""
        group = next(group for group in self._groups() if group[0].index <= planned.index <= group[-1].index)
        for one in group:
            if self.trial_path(one).exists():
                raise StoreError(
                    f"{self.trial_path(one)} is stored without the trials that ran at the same time; move it out of "
                    "the study directory, and run the study again"
                )
        return group

    def _groups(self) -> Iterator[list[PlannedTrial]]:
        """Yields the planned trials in groups. The trials of a group run at the same time."""
        if self.plan.interleaving is None:
            yield from ([planned] for planned in self.plan.wanted)
            return
        for _, group in itertools.groupby(self.plan.wanted, key=lambda planned: (planned.block, planned.load_point)):
            yield list(group)

    def _name(self, paths: Sequence[Path]) -> None:
        for path in paths:
            with writing(path):
                hidden(path).rename(path)
                sync_directory(path.parent)

    def unfinished(self) -> list[Path]:
        """Returns the hidden directories of trials that were interrupted."""
        return sorted((self.path / "trials").glob(".*"))

    def voided_blocks(self) -> list[int]:
        """Returns the numbers of the blocks that an earlier version of pgtrial moved to voided/bNN-K. A block that was
        moved several times occurs several times in the list."""
        names = (re.fullmatch(r"b(\d+)-\d+", path.name) for path in (self.path / "voided").glob("b*"))
        return sorted(int(name[1]) for name in names if name)

    # ---- facts

    def facts(self) -> dict[str, Facts]:
        """Returns the stored facts by arm, in the order of the plan. If an arm has several deployments (several servers
        of one product), only the facts of the first stored one are returned. Raises StoreError if a file is damaged."""
        return {arm: known[0] for arm, known in self.deployment_facts().items()}

    def deployment_facts(self) -> dict[str, list[Facts]]:
        """Returns, for each arm, the stored facts of all its deployments (its servers, of which most arms have only
        one). Raises StoreError if a file is damaged."""
        numbers: Sequence[int | None] = range(self.plan.deployments) if self.plan.deployments > 1 else [None]
        paths = {arm: [self._facts_path(arm, number) for number in numbers] for arm in self.plan.arms}
        stored = {
            arm: [read_record(path, Facts, f"delete {path} and run again") for path in of_arm if path.exists()]
            for arm, of_arm in paths.items()
        }
        return {arm: known for arm, known in stored.items() if known}

    def write_facts(self, facts: Facts) -> None:
        """Stores the facts of an arm or, if the arm has several deployments (servers), the facts of one of them."""
        write_in_folder(self._facts_path(facts.arm, facts.deployment), facts.model_dump_json(indent=1))

    def audit(self) -> Audit | None:
        """Returns the audit, in which pgtrial judges from the facts whether the comparison of the arms is fair; None
        until the facts of all arms are stored. Raises StoreError if the file is damaged."""
        path = self.path / "facts" / "audit.json"
        return record_at(path, Audit, f"delete {path} and run again")

    def write_audit(self, audit: Audit) -> None:
        """Stores the audit (pgtrial's judgement whether the comparison is fair) as facts/audit.json."""
        write_in_folder(self.path / "facts" / "audit.json", audit.model_dump_json(indent=1))

    def statement_plans(self) -> StatementPlans | None:
        """Returns PostgreSQL's plans of the statements that became slower in a replay; None if they were not collected.
        Raises StoreError if the file is damaged."""
        path = self.path / _PLANS
        return record_at(path, StatementPlans, f"delete {path} and run again")

    def write_statement_plans(self, plans: StatementPlans) -> None:
        """Stores PostgreSQL's plans of the statements that became slower in a replay."""
        write_in_folder(self.path / _PLANS, plans.model_dump_json(indent=1))

    def instructions(self) -> InstructionCounts | None:
        """Returns the counted instructions of the arms; None if they were not counted. Raises StoreError if the file is
        damaged."""
        path = self.path / _INSTRUCTIONS
        return record_at(path, InstructionCounts, f"delete {path} and run again")

    def write_instructions(self, counts: InstructionCounts) -> None:
        """Stores the counted instructions of the arms."""
        write_in_folder(self.path / _INSTRUCTIONS, counts.model_dump_json())

    def write_file(self, name: str, data: str | bytes) -> Path:
        """Stores a file in the study directory, such as report.html, and returns its path."""
        write_in_folder(self.path / name, data)
        return self.path / name

    def locked(self) -> AbstractContextManager[None]:
        """Holds the lock of the study directory within the context, for the lab that runs the study. Raises StoreError
        if another lab holds it."""
        return locked(self.path)

    def _facts_path(self, arm: str, deployment: int | None) -> Path:
        """Returns the path of the facts of an arm: facts/ARM.json, or facts/ARM/NUMBER.json if the arm has several
        deployments (servers) and `deployment` is the number of one of them."""
        twins = [name for name in self.plan.arms if slug(name) == slug(arm)]
        suffix = f"-{twins.index(arm) + 1}" if len(twins) > 1 or slug(arm) == "audit" else ""
        name = f"{slug(arm)}{suffix}"
        return self.path / "facts" / (f"{name}.json" if deployment is None else f"{name}/{deployment}.json")

    def _table(self, trial: Trial, name: str, *, may_lack: bool = True) -> pl.DataFrame:
        """Returns a table of a trial. If its file is missing and `may_lack` is true, the table has no rows. Raises
        StoreError if the file is damaged."""
        path = self.table_path(trial, name)
        return pl.DataFrame(schema=SCHEMAS[name]) if may_lack and not path.exists() else read_frame(path)

    def _read_trial(self, path: Path) -> Trial:
        trial = read_record(path / _RECORD, Trial, again(path))
        planned = self.plan.trials[trial.index] if 0 <= trial.index < len(self.plan.trials) else None
        if planned is None or path != self.trial_path(trial) or (planned.arm, planned.seed) != (trial.arm, trial.seed):
            raise StoreError(
                f"{path} is not a trial of this study's plan; move it out of the study directory, and run the study "
                "again"
            )
        return trial


def _write_plan(directory: Path, plan: Plan, study: str, *, made_here: bool) -> None:
    """Writes plan.json for a study; `study` is the text of its study.toml. Raises StoreError if the file cannot be
    written."""
    write_atomically(directory / PLAN, _plan_text(plan, study, made_here=made_here))


def _plan_text(plan: Plan, study: str, *, made_here: bool) -> str:
    content = json.loads(plan.model_dump_json())
    digests = {PLAN: _digest_of(content), STUDY: digest(study)}
    content[_KEY] = {**digests, **({_SEAL: seal(_as_one(digests))} if made_here else {})}
    return json.dumps(content, indent=1, ensure_ascii=False)


def _read_plan(directory: Path, study: str) -> tuple[Plan, bool]:
    """Returns the plan of a study, and true if this account planned it on this machine. `study` is the text of its
    study.toml.

    Raises StoreError if plan.json or study.toml was changed after the study was planned. Plans of early versions, which
    had no digests, are not checked.
    """
    path = directory / PLAN
    with intact(path, _CURE_OF_PLAN):
        content = from_json(read_bytes(path))
        expected = content.pop(_KEY, None) if isinstance(content, dict) else None
    plan = parse_record(path, json.dumps(content), Plan, _CURE_OF_PLAN)
    if expected is None:
        return plan, False
    digests = {PLAN: _digest_of(content), STUDY: digest(study)}
    for name, actual in digests.items():
        if not isinstance(expected, dict) or expected.get(name) != actual:
            raise StoreError(
                f"{directory / name} was changed after the study began (its SHA-256 differs from the one in "
                f"{PLAN}); {_CURE_OF_PLAN}"
            )
    return plan, is_sealed(_as_one(digests), expected.get(_SEAL))


def _as_one(digests: dict[str, str]) -> str:
    return " ".join(digests.values())


def _digest_of(content: dict[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True, separators=(",", ":")))


def _read_scripts(folder: Path, plan: Plan) -> dict[str, str]:
    """Returns the texts of the study's scripts, by their paths. Raises StoreError if a script was changed after the
    study was planned."""
    texts: dict[str, str] = {}
    for name, expected in plan.scripts.items():
        with intact(folder / name, "restore it from a copy"):
            texts[name] = read_bytes(folder / name).decode()
        if digest(texts[name]) != expected:
            raise StoreError(
                f"{folder / name} was changed after the study was planned; restore it from a copy, or start a new study"
            )
    return texts


def slices_of(study: StudyDirectory, trials: Sequence[Trial]) -> dict[int, list[SliceRow]]:
    """Returns the slices of interleaved trials by the index of the trial, sorted by time. Raises StoreError if a file
    is damaged."""
    if study.plan.interleaving is None:
        return {}
    frames = {trial.index: study.slices(trial) for trial in trials}
    return {
        index: [SliceRow.model_validate(row) for row in frame.sort("planned_begin_s").iter_rows(named=True)]
        for index, frame in frames.items()
        if not frame.is_empty()
    }


def committed_seconds(study: StudyDirectory, trials: Sequence[Trial]) -> dict[int, list[int]]:
    """Returns the number of committed transactions in each second of the measured phase, by the index of the trial.
    Raises StoreError if a file is damaged."""
    timelines = ((trial, study.table_path(trial, "timeline")) for trial in trials)
    stored = {trial.index: path for trial, path in timelines if trial.status != "failed" or path.exists()}
    committed = committed_of_each(stored)
    return {trial.index: committed.get(trial.index, []) for trial in trials}
