"""`pgtrial verify`: whether a study is whole, and its verdict follows from its trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.model.errors import StoreError
from pgtrial.report.recompute import differences
from pgtrial.store.bundle import check_parts, manifest_of, open_study


def command(study: Annotated[Path, typer.Argument(help="A bundle, or a study directory.")]) -> int:
    """Check the digest of every part of a bundle, compute the verdict anew from the trials, and compare.

    Exit status: 0 the parts are as they were bundled and the verdict follows, 1 they are not, or it does not. In a
    study directory the digests are checked if it was unpacked from a bundle.
    """
    try:
        print(_verified(study))
    except StoreError as error:
        error.exit_status = 1
        raise
    return 0


def _verified(path: Path) -> str:
    with open_study(path) as study:
        manifest = manifest_of(study)
        if manifest is not None and path.is_dir():
            check_parts(path, manifest)
        found = differences(study)
        trials = len(study.trials())
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise StoreError(f"the verdict of {path} does not follow from its trials: {found[0]}{more}")
    parts = f"{len(manifest.parts)} parts are as they were bundled, and " if manifest is not None else ""
    return f"{path}: {parts}the verdict follows from the {trials} trials"
