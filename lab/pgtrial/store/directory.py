"""A study directory: the frozen study and plan, the trials as they are completed, the facts; plain files.

A trial's directory is written under a hidden temporary name and renamed when it is complete, so that a crash of the
lab loses at most the trial that was running, and no trial is there twice.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl
from pydantic_core import from_json

from pgtrial.files.reading import read_bytes
from pgtrial.model.errors import StoreError
from pgtrial.model.latencies import Latencies
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Plan, PlannedTrial
from pgtrial.model.records.replay import StatementPlans
from pgtrial.model.records.trial import SliceRow, Trial
from pgtrial.model.study.cut_values import cut
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

_KEY = "sha256"
"""Key of plan.json beside the plan's own: the SHA-256 of study.toml, and of the plan as compact JSON, keys sorted."""
_SEAL = "made here"
"""Beside these two: the mark of this account on this machine (`machine_key.seal`)."""
_CURE_OF_PLAN = "restore it from a copy, or run the study anew"

_PROVIDER = "provider.parquet"
_PLANS = "statement_plans.json"
_RECORD = "trial.json"
"""Written last: a directory with it has all that a trial needs."""

JOB_PROGRESS = "progress.json"
"""In the directory of a trial under way that is a job: how far it is."""


class StudyDirectory:
    """One study on disk. `spec` and `plan` are frozen; the rest is read from the files at each call.

    `made_here` is true if this account planned it on this machine. Anything else may be a stranger's.
    """

    def __init__(self, path: Path, spec: StudySpec, plan: Plan, *, made_here: bool = False):
        self.path = path
        self.spec = spec
        self.plan = plan
        self.made_here = made_here

    @classmethod
    def create(cls, path: Path, spec: StudySpec, plan: Plan) -> StudyDirectory:
        """Make a new study directory; `path` must be absent or empty. Raises StoreError."""
        make_folder(path, mode=0o700)
        with writing(path):
            if any(path.iterdir()):
                raise StoreError(f"{path} is not empty and holds no study like this one; choose another with --results")
            (path / "trials").mkdir()
            (path / "facts").mkdir()
            for name in spec.scripts:
                (path / FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        for name, text in spec.scripts.items():
            write_atomically(path / FOLDER / name, text)
        frozen = freeze(spec)
        _write_plan(path, plan, frozen, made_here=True)
        # written last: a directory with a study.toml has all that a study needs
        write_atomically(path / STUDY, frozen)
        return cls(path, thaw(frozen).with_scripts(spec.scripts), plan, made_here=True)

    @classmethod
    def open(cls, path: Path) -> StudyDirectory:
        """Read an existing study directory. Raises StoreError."""
        if path.is_dir():
            check_readable(path)
        if not path.exists():
            raise StoreError(f"there is no {path}; name the directory of a study, or its bundle")
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
        """Go on by this plan, which adds to the one that is there. Raises StoreError."""
        _write_plan(self.path, plan, read_bytes(self.path / STUDY).decode(), made_here=self.made_here)
        self.plan = plan

    def without_secrets(self) -> dict[str, str]:
        """Returns by name the texts of files that others get in place of these: without values that may be secrets."""
        spec, places = cut(self.spec)
        if not places:
            return {}
        frozen = freeze(spec)
        return {STUDY: frozen, PLAN: _plan_text(self.plan, frozen, made_here=self.made_here)}

    def script(self, point: LoadPoint) -> Path | None:
        """The file of a workload of the study's own, of a pack, a suite or a mix the folder; None: a built-in one."""
        if point.kind.folder is not None:
            return self.path / FOLDER / point.kind.folder
        if point.mix:
            return self.path / FOLDER
        return self.script_called(point.workload.partition("/")[0])

    def script_called(self, name: str) -> Path | None:
        """The file of a script of the study's own, or the folder of a pack; None for another name."""
        is_own = name in self.plan.scripts or f"{name}/{MANIFEST}" in self.plan.scripts
        return self.path / FOLDER / name if is_own else None

    # ---- trials

    def trials(self) -> list[Trial]:
        """All stored trials in the order of execution. Raises StoreError naming a damaged one and the cure."""
        trials = [self._read_trial(path) for path in sorted((self.path / "trials").glob("[0-9]*"))]
        indices: set[int] = set()
        for trial in trials:
            if trial.index in indices:
                raise StoreError(f"{self.path / 'trials'} holds trial {trial.index} twice; delete one of the two")
            indices.add(trial.index)
        return sorted(trials, key=lambda trial: trial.index)

    def missing(self) -> list[PlannedTrial]:
        """The planned trials that are not stored yet, in the order of execution."""
        stored = {trial.index for trial in self.trials()}
        return [planned for planned in self.plan.wanted if planned.index not in stored]

    def trial_path(self, trial: Trial | PlannedTrial) -> Path:
        """Directory of one trial, e.g. trials/0007-b03-2MB-tpcb-like-s50-c8."""
        point = trial.load_point if isinstance(trial, Trial) else self.plan.load_points[trial.load_point]
        name = f"{trial.index:04d}-b{trial.block:02d}-{slug(trial.arm)}-{point.slug}"
        return self.path / "trials" / name

    def table_path(self, trial: Trial, name: str) -> Path:
        """Where a table of the trial is stored, if it has one: `timeline`, `waits`."""
        return self.trial_path(trial) / f"{name}.parquet"

    def timeline(self, trial: Trial) -> pl.DataFrame:
        """The trial's seconds (columns of TIMELINE_SCHEMA); empty for a failed trial without any. Raises StoreError."""
        return self._table(trial, "timeline", may_lack=trial.status == "failed")

    def slices(self, trial: Trial) -> pl.DataFrame:
        """The slices of an interleaved trial (columns of SLICES_SCHEMA); empty for other trials. Raises StoreError."""
        return self._table(trial, "slices")

    def waits(self, trial: Trial) -> pl.DataFrame:
        """What sessions waited for (columns of WAITS_SCHEMA); empty where it was not observed. Raises StoreError."""
        return self._table(trial, "waits")

    def observed(self, trial: Trial) -> pl.DataFrame:
        """Counters by second (columns of OBSERVED_SCHEMA); empty where they were not observed. Raises StoreError."""
        return self._table(trial, "observed")

    def provider_metrics(self, trial: Trial) -> pl.DataFrame:
        """What the provider measured (columns of PROVIDER_SCHEMA); empty if not imported. Raises StoreError."""
        return self._table(trial, "provider")

    def has_provider_metrics(self, trial: Trial) -> bool:
        """Whether they have been imported."""
        return (self.trial_path(trial) / _PROVIDER).exists()

    def write_provider_metrics(self, trial: Trial, metrics: pl.DataFrame) -> None:
        """Store them beside a trial that is there: monitoring knows some minutes after it."""
        file = io.BytesIO()
        metrics.write_parquet(file)
        write_in_folder(self.trial_path(trial) / _PROVIDER, file.getvalue())

    def latencies(self, trial: Trial) -> Latencies | None:
        """The latencies of the measured part; None when the trial has none. Raises StoreError."""
        path = self.trial_path(trial) / "latency.hdr"
        if not path.exists():
            return None
        with intact(path, again(path.parent)):
            return Latencies.read(read_bytes(path).decode().strip())

    def begin_trial(self, planned: PlannedTrial) -> Path:
        """A fresh hidden directory in which one trial is written before `write_trials` completes it."""
        temporary = self.hidden_path(planned)
        with writing(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
        return temporary

    def hidden_path(self, planned: PlannedTrial) -> Path:
        """Directory of a trial that is under way."""
        return hidden(self.trial_path(planned))

    def write_trials(self, trials: Sequence[Trial]) -> None:
        """Complete trials that belong together: all their files reach the disk, then they get their names.

        They were begun with `begin_trial`. `finish_trials` does the second half after a crash.
        """
        for trial in trials:
            temporary = hidden(self.trial_path(trial))
            with writing(temporary):
                sync_tree(temporary)
            write_atomically(temporary / _RECORD, trial.model_dump_json(indent=1))
        self._name([self.trial_path(trial) for trial in trials])

    def finish_trials(self) -> None:
        """Give trials their names that were all written when the lab was killed. Raises StoreError."""
        complete = {path for path in self.unfinished() if (path / _RECORD).exists()}
        for together in self._groups() if complete else ():
            paths = [self.trial_path(planned) for planned in together]
            written = [path for path in paths if hidden(path) in complete]
            if all(path in written or path.exists() for path in paths):
                self._name(written)

    def together(self, planned: PlannedTrial) -> list[PlannedTrial]:
        """The trials that run at the same time as a planned one, with it. Raises StoreError if only some are stored."""
        group = next(group for group in self._groups() if group[0].index <= planned.index <= group[-1].index)
        for one in group:
            if self.trial_path(one).exists():
                raise StoreError(
                    f"{self.trial_path(one)} is there without the trials that ran at the same time; move it away and "
                    "run again"
                )
        return group

    def _groups(self) -> Iterator[list[PlannedTrial]]:
        """The planned trials, those together that run at the same time."""
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
        """Hidden directories of trials that were interrupted."""
        return sorted((self.path / "trials").glob(".*"))

    def voided_blocks(self) -> list[int]:
        """Numbers of the blocks that an earlier version set aside in voided/bNN-K, one for each time."""
        names = (re.fullmatch(r"b(\d+)-\d+", path.name) for path in (self.path / "voided").glob("b*"))
        return sorted(int(name[1]) for name in names if name)

    # ---- facts

    def facts(self) -> dict[str, Facts]:
        """The facts collected so far, by arm in the plan's order; those of one deployment. Raises StoreError."""
        return {arm: known[0] for arm, known in self.deployment_facts().items()}

    def deployment_facts(self) -> dict[str, list[Facts]]:
        """The facts collected so far of each arm's deployments; of most arms one. Raises StoreError."""
        numbers: Sequence[int | None] = range(self.plan.deployments) if self.plan.deployments > 1 else [None]
        paths = {arm: [self._facts_path(arm, number) for number in numbers] for arm in self.plan.arms}
        stored = {
            arm: [read_record(path, Facts, f"delete {path} and run again") for path in of_arm if path.exists()]
            for arm, of_arm in paths.items()
        }
        return {arm: known for arm, known in stored.items() if known}

    def write_facts(self, facts: Facts) -> None:
        """Store what one arm, or one of its deployments, is."""
        write_in_folder(self._facts_path(facts.arm, facts.deployment), facts.model_dump_json(indent=1))

    def audit(self) -> Audit | None:
        """What the facts say about fairness; None before the facts are complete. Raises StoreError."""
        path = self.path / "facts" / "audit.json"
        return record_at(path, Audit, f"delete {path} and run again")

    def write_audit(self, audit: Audit) -> None:
        """Store the audit."""
        write_in_folder(self.path / "facts" / "audit.json", audit.model_dump_json(indent=1))

    def statement_plans(self) -> StatementPlans | None:
        """Plans of the statements of a replay that got slower; None before they were taken. Raises StoreError."""
        path = self.path / _PLANS
        return record_at(path, StatementPlans, f"delete {path} and run again")

    def write_statement_plans(self, plans: StatementPlans) -> None:
        """Store them."""
        write_in_folder(self.path / _PLANS, plans.model_dump_json(indent=1))

    def write_file(self, name: str, data: str | bytes) -> Path:
        """Store a file beside the study, e.g. report.html; returns its path."""
        write_in_folder(self.path / name, data)
        return self.path / name

    def locked(self) -> AbstractContextManager[None]:
        """Hold the directory for one running lab. Raises StoreError when another one holds it."""
        return locked(self.path)

    def _facts_path(self, arm: str, deployment: int | None) -> Path:
        """facts/ARM.json, or facts/ARM/NUMBER.json of one of several deployments."""
        twins = [name for name in self.plan.arms if slug(name) == slug(arm)]
        suffix = f"-{twins.index(arm) + 1}" if len(twins) > 1 or slug(arm) == "audit" else ""
        name = f"{slug(arm)}{suffix}"
        return self.path / "facts" / (f"{name}.json" if deployment is None else f"{name}/{deployment}.json")

    def _table(self, trial: Trial, name: str, *, may_lack: bool = True) -> pl.DataFrame:
        """A table of a trial, without rows where it lacks and may lack. Raises StoreError."""
        path = self.table_path(trial, name)
        return pl.DataFrame(schema=SCHEMAS[name]) if may_lack and not path.exists() else read_frame(path)

    def _read_trial(self, path: Path) -> Trial:
        trial = read_record(path / _RECORD, Trial, again(path))
        planned = self.plan.trials[trial.index] if 0 <= trial.index < len(self.plan.trials) else None
        if planned is None or path != self.trial_path(trial) or (planned.arm, planned.seed) != (trial.arm, trial.seed):
            raise StoreError(f"{path} is not a trial of this study's plan; move it away and run again")
        return trial


def _write_plan(directory: Path, plan: Plan, study: str, *, made_here: bool) -> None:
    """Write the plan of a study whose study.toml has this text. Raises StoreError."""
    write_atomically(directory / PLAN, _plan_text(plan, study, made_here=made_here))


def _plan_text(plan: Plan, study: str, *, made_here: bool) -> str:
    content = json.loads(plan.model_dump_json())
    digests = {PLAN: _digest_of(content), STUDY: digest(study)}
    content[_KEY] = {**digests, **({_SEAL: seal(_as_one(digests))} if made_here else {})}
    return json.dumps(content, indent=1, ensure_ascii=False)


def _read_plan(directory: Path, study: str) -> tuple[Plan, bool]:
    """The plan of a study whose study.toml has this text, and whether this account made it on this machine.

    Raises StoreError if either was changed since it was written. A plan that was written before there were digests is
    not checked.
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
    """The texts of the planned scripts. Raises StoreError for one that is not as it was planned."""
    texts: dict[str, str] = {}
    for name, expected in plan.scripts.items():
        with intact(folder / name, "restore it from a copy"):
            texts[name] = read_bytes(folder / name).decode()
        if digest(texts[name]) != expected:
            raise StoreError(
                f"{folder / name} is not the script that was planned; restore it from a copy, or run a study of its own"
            )
    return texts


def slices_of(study: StudyDirectory, trials: Sequence[Trial]) -> dict[int, list[SliceRow]]:
    """The slices of trials that alternated, in order of time, by index of the trial. Raises StoreError."""
    if study.plan.interleaving is None:
        return {}
    frames = {trial.index: study.slices(trial) for trial in trials}
    return {
        index: [SliceRow.model_validate(row) for row in frame.sort("planned_begin_s").iter_rows(named=True)]
        for index, frame in frames.items()
        if not frame.is_empty()
    }


def committed_seconds(study: StudyDirectory, trials: Sequence[Trial]) -> dict[int, list[int]]:
    """Committed transactions in each second of the measured part, by index of the trial. Raises StoreError."""
    timelines = ((trial, study.table_path(trial, "timeline")) for trial in trials)
    stored = {trial.index: path for trial, path in timelines if trial.status != "failed" or path.exists()}
    committed = committed_of_each(stored)
    return {trial.index: committed.get(trial.index, []) for trial in trials}
