"""`pgtrial bundle`: one compressed file of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.conduct import say
from pgtrial.model.errors import StoreError
from pgtrial.report.recompute import differences
from pgtrial.store.bundle import SUFFIX, Manifest, files_of, open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import new_file


def command(
    directory: Annotated[Path, typer.Argument(help="A study directory.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The bundle; default: DIRECTORY.tar.xz.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Keep every file, also engine.jsonl and server.log of each trial.")
    ] = False,
) -> int:
    """Make one compressed file of a study: plan, scripts, facts, trials, canaries, voided blocks, verdict and report.

    The file holds the SHA-256 of every part. `pgtrial report`, `verdict`, `facts` and `verify` read it as they read the
    directory, and `tar -xf` unpacks it. Without --all it leaves out the raw record, which reports and verdicts do not
    need. The bundle is read back before it gets its name, and replaces no other file.
    """
    study = StudyDirectory.open(directory)
    target = output or Path(f"{directory if directory.name.strip('.') else directory.resolve()}{SUFFIX}")
    if found := differences(study):
        raise StoreError(
            f"the verdict in {directory} does not follow from its trials: {found[0]}; `pgtrial report {directory}` "
            "writes it anew"
        )
    with new_file(target) as temporary:
        manifest = write_bundle(study, temporary, everything=everything)
        with open_study(temporary) as written:
            if written.trials() != study.trials():
                raise StoreError(f"{directory} has changed meanwhile, or holds links to folders; let its run end first")
    say(_summary(study, manifest, target))
    print(target)
    return 0


def _summary(study: StudyDirectory, manifest: Manifest, target: Path) -> str:
    kept = {part.name for part in manifest.parts}
    left = [name for name in files_of(study.path) if name not in kept]
    size = sum(part.size for part in manifest.parts)
    summary = f"{len(kept)} parts, {_megabytes(size)} in {_megabytes(target.stat().st_size)}"
    if not left:
        return summary
    kinds = ", ".join(sorted({Path(name).name for name in left})[:5])
    size = sum((study.path / name).stat().st_size for name in left)
    return f"{summary}; left out: {len(left)} files of {_megabytes(size)} ({kinds}), which --all keeps"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"
