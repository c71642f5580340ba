"""Chooses the directory of a study: a new directory, or the directory of the same study if that study is unfinished, so
that it continues there."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path, PurePosixPath

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.lengths import expected_lengths
from pgtrial.conduct.planning.noise import noise_for, overhead_for
from pgtrial.conduct.planning.plan import plan_of
from pgtrial.conduct.planning.readings import Readings
from pgtrial.conduct.planning.stopping import Stop, ended_too_early, next_step_of
from pgtrial.conduct.preparation.own_scripts import check_scripts
from pgtrial.files.reading import read_bytes
from pgtrial.loads.command_lines.sysbench import check_sysbench
from pgtrial.model.errors import BudgetError, StoreError, StudyError
from pgtrial.model.records.plan import EarlierTry, Plan
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw, without_secrets
from pgtrial.model.study.jobs import file_of
from pgtrial.model.study.servers import Made, sources_of
from pgtrial.model.study.spec import StudySection, StudySpec
from pgtrial.model.units import slug
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import check_safe_to_write, make_folder, writing
from pgtrial.store.own_data import dump_to_be_taken, is_to_be_dumped, with_dump
from pgtrial.verdict.grid import Grid

RESULTS = Path("results")
"""The directory in which new studies get their directories. It is relative to the current directory."""


def find_or_create(
    spec: StudySpec, results: Path | None, *, anew: bool, after_budget: bool = True
) -> tuple[StudyDirectory, bool]:
    """Returns the directory of a study, and true if the directory existed already.

    If `results` is given, it is the directory. Otherwise it is the newest directory in results/ with an unfinished
    study that is identical, unless `anew` is true. If there is none, it is a new directory, named after the study and
    the time.

    With `after_budget`, a study that its budget has ended before the first look counts as unfinished. Raises StoreError
    and StudyError.
    """
    check_safe_to_write(results or RESULTS)
    if results is not None:
        if (results / "study.toml").exists():
            return same_study(spec, results), True
        spec = dump_to_be_taken(spec)
        return StudyDirectory.create(results, spec, _planned(spec, results.absolute().parent)), False
    if not anew:
        for path in reversed(_alike(spec)):
            study = StudyDirectory.open(path)
            if study.spec.scripts == spec.scripts and not _finished(study, after_budget=after_budget):
                return study, True
    spec = dump_to_be_taken(spec)
    plan = _planned(spec, RESULTS)
    return StudyDirectory.create(fresh_path(plan.name), spec, plan), False


def _finished(study: StudyDirectory, *, after_budget: bool) -> bool:
    """True if the study has ended and its report is written. With `after_budget`, the study must also have reached its
    first look.

    If pgtrial was killed before the report, the study counts as unfinished, so that the next run writes it.
    """
    if not (study.path / "report.html").exists():
        return False
    readings = Readings(study)
    step = next_step_of(study, readings)
    return isinstance(step, Stop) and not (after_budget and ended_too_early(study.plan, step, readings.trials))


def plan_now(spec: StudySpec) -> Plan:
    """Returns the plan of a study that begins now. The seed is that of the study file or, if it has none, drawn at
    random. Raises StudyError."""
    check_sysbench(spec)
    design = Design(spec)
    check_scripts(design)
    seed = spec.study.seed if spec.study.seed is not None else secrets.randbelow(2**32)
    design = interleaved(design)
    overhead_s, noise = overhead_for(design), noise_for(design, spec.load.given_s[1] or 0.0)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        return plan_of(design, seed, created, expected_lengths(design, overhead_s, noise))
    except BudgetError:
        if overhead_s is None:
            raise
        # the machine may have been busy when the overhead was recorded, and the preliminary block measures it again
        return plan_of(design, seed, created, expected_lengths(design, None, noise))


def _planned(spec: StudySpec, results: Path) -> Plan:
    """Returns the plan of a study that begins now. The plan lists the earlier studies in the directory `results` that
    ask the same question."""
    plan, tries = plan_now(spec), []
    for file in sorted(results.glob("*/study.toml")):
        with suppress(StoreError, StudyError):
            study = StudyDirectory.open(file.parent)
            if asks_the_same(spec, study.spec) and (trials := study.trials()):
                blocks = len(Grid(study.plan, trials).counted)
                name, planned = file.parent.name, study.plan.max_blocks
                tries.append(EarlierTry(directory=name, created=study.plan.created, blocks=blocks, planned=planned))
    return plan.model_copy(update={"earlier": sorted(tries, key=lambda earlier: earlier.created)})


def asks_the_same(one: StudySpec, other: StudySpec) -> bool:
    """True if two studies have the same question, as the user has written it, or the same arms and the same load.

    A study that compares other code is another one, even if its question is the same: the texts of the arms' own
    scripts, and the commits that are built, must be the same in both.
    """
    default = StudySection().question
    if one.study.question == other.study.question != default:
        return all(_code(one, arm) == _code(other, arm) for arm in one.arms.keys() & other.arms.keys())
    return _subject(one) == _subject(other)


def _code(spec: StudySpec, arm: str) -> tuple[object, ...]:
    """Returns the code that an arm runs, by its content: the text of its own script or job, the sources that are built
    or checked out, and the digests of the files of its client program."""
    keys, server = spec.arms[arm], spec.resolved(arm)
    patches = (server.patches or []) if isinstance(server, Made) else []
    script = PurePosixPath(file_of(keys.workload or "")).name
    return spec.scripts.get(script), [*sources_of(server), *patches], server.command_files


def _subject(spec: StudySpec) -> tuple[object, ...]:
    """Returns what a study compares: its load, servers, arms and scripts. It is the same question whether or not the
    study counts instructions as well."""
    public = without_secrets(spec)
    return public.load.model_copy(update={"instructions": False}), public.server, public.arms, spec.scripts


def is_same(spec: StudySpec, stored: StudySpec) -> bool:
    """True if a stored study has the same keys and scripts as the study `spec`. The name of a dump in the stored study
    is ignored, since pgtrial adds it only when it has dumped the database."""
    return freeze(with_dump(stored, None)) == freeze(spec) and stored.scripts == spec.scripts


def same_study(spec: StudySpec, results: Path) -> StudyDirectory:
    """Returns the study that is stored in a directory. Raises StoreError if it is another study than `spec`."""
    study = StudyDirectory.open(results)
    if not is_same(spec, study.spec):
        raise StoreError(f"{results} has another study than the one to run; choose another directory with --results")
    return study


def _alike(spec: StudySpec) -> list[Path]:
    """Returns the directories in results/ whose frozen study file is identical to that of `spec`, the oldest first."""
    frozen = freeze(spec)
    files = sorted(RESULTS.glob(f"{slug(spec.study.name or 'study')}-*/study.toml"))
    texts = ((file, read_bytes(file).decode(errors="replace")) for file in files if file.is_file())
    if not is_to_be_dumped(spec):
        return [file.parent for file, text in texts if text == frozen]
    return [file.parent for file, text in texts if _without_dump(text) == frozen]


def _without_dump(text: str) -> str | None:
    """Returns the text of a frozen study file without the name of the dump; None if the text is damaged."""
    with suppress(ValueError):
        return freeze(with_dump(thaw(text), None))
    return None


def fresh_path(name: str) -> Path:
    """Makes a new directory in results/ and returns its path. Two labs that do this at the same moment get different
    directories. Raises StoreError."""
    stem = f"{slug(name)}-{datetime.now():%Y-%m-%d-%H%M}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    make_folder(RESULTS, mode=0o700)
    with writing(RESULTS):
        return next(RESULTS / name for name in names if _made(RESULTS / name))


def _made(path: Path) -> bool:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True
