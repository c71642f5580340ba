"""Commands on stored studies: `verdict`, `report`, `bundle`, `verify`, `metrics` and `serve`."""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.output import json_line, json_text, line, print_message, warn
from pgtrial.cli.terminal import Terminal
from pgtrial.cli.trust import Allow, Trust, check_trust, warn_of_cut_values
from pgtrial.cli.verdict import in_full, in_short
from pgtrial.conduct.provider_metrics import import_metrics, measured_arms
from pgtrial.conduct.study_directory import RESULTS
from pgtrial.machines.interrupt import Interrupted, interruptible
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.study.effects import effects_of
from pgtrial.model.units import plural
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report, differences, render, report_for_mail, short_report
from pgtrial.report.data import read_measured
from pgtrial.store.bundle import SUFFIX, Manifest, check_parts, files_of, manifest_of, open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import new_file, values_of
from pgtrial.store.histories.stores import HISTORY
from pgtrial.store.temporary import temporary_folder


def verdict_command(
    studies: Annotated[
        list[Path], typer.Argument(help="Study directories and bundles, e.g. results/wal-*.", metavar="STUDY...")
    ],
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the complete result as JSON, with one line for each study if there are several."
        ),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also print all findings, notes and load points.")] = False,
) -> int:
    """Print the verdict of each study. No file is written. Exit status: 0 no regression, 1 an arm is worse than the
    baseline, 2 no verdict.

    For several studies the exit status is 1 if any study has a regression, and otherwise 2 if any study has no verdict.
    A loss that is certainly smaller than the margin is not a regression.
    """
    statuses = set()
    for study in studies:
        with open_study(study) as opened, values_of(study):
            data = read_measured(opened)
        result, several = data.result, len(studies) > 1
        statuses.add(result.exit_status)
        if json and several:
            json_line({"study": str(study), "result": result.model_dump(mode="json")})
        elif json:
            json_text(result.model_dump_json(indent=1))
        else:
            if several:
                Terminal().print_line(f"{study}:")
            short = in_short(brief(result, data.plan, study if study.is_dir() else None, data.trials))
            Terminal().print(in_full(result) if everything else short)
    return 1 if 1 in statuses else max(statuses)


_PAGES = ("", ".html", ".htm", ".md")
"""The endings that the file name of a report may have."""


def report_command(
    study: Annotated[Path, typer.Argument(help="A study directory, or a bundle.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write only this file, as Markdown if its name ends in .md, otherwise as HTML. Default: report.html "
            "and report.md in the study directory; for a bundle, a file with the name of the bundle and the "
            "ending .html.",
            show_default=False,
        ),
    ] = None,
    short: Annotated[
        bool,
        typer.Option(
            "--short",
            help="Print a short report as Markdown, with the verdict, the speeds, the differences and the failures. "
            "With -o the short report is written to the file.",
        ),
    ] = False,
    mail: Annotated[
        bool,
        typer.Option(
            "--mail", help="Print the result for a mailing list, as plain text of 78 columns, with plans and costs."
        ),
    ] = False,
) -> int:
    """Compute the verdict of a study again from its stored trials, and write verdict.json, report.md and report.html.
    The study need not be finished.

    The files are written into the study directory. For a bundle a single HTML page is written next to the bundle; an
    existing file is not replaced.
    """
    if mail and short:
        raise StudyError("--mail prints plain text, and --short prints Markdown; leave one of the two out")
    if mail and output is not None:
        raise StudyError(
            f"--mail prints its text and writes no file; leave out -o, and write > {shlex.quote(str(output))} after "
            "the command"
        )
    if output is not None and output.suffix not in _PAGES:
        raise StudyError(
            f"the format of a report follows from its file name, and {output} is neither HTML nor Markdown; end "
            "the name in .html or .md"
        )
    with open_study(study) as opened, values_of(study):
        if mail:
            line(report_for_mail(opened).rstrip("\n"))
            return 0
        if short:
            text = short_report(opened)
            if output is None:
                line(text.rstrip("\n"))
                return 0
            if output.suffix != ".md":
                raise StudyError(
                    "a short report is written as Markdown; end the file name after -o in .md, or leave -o out"
                )
            with new_file(output) as new:
                new.file.write(text.encode())
            line(output)
            return 0
        if output is None and study.is_dir():
            build_report(opened)
            line(opened.path / "report.html")
            return 0
        page = output or study.with_name(f"{study.name.removesuffix(SUFFIX)}.html")
        text = render(opened, "md" if page.suffix == ".md" else "html")
    with new_file(page) as new:
        new.file.write(text.encode())
    line(page)
    return 0


def bundle_command(
    directory: Annotated[Path, typer.Argument(help="A study directory.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file of the bundle. Default: DIRECTORY.tar.xz.", show_default=False),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Include every file of the study, even the large engine.jsonl and server.log of each trial."
        ),
    ] = False,
) -> int:
    """Pack a study into one compressed file (a bundle), with its plan, scripts, facts, trials, verdict and report.

    The bundle contains the SHA-256 of each of its files. `pgtrial report`, `verdict`, `facts` and `verify` read a
    bundle like a study directory, and `tar -xf` unpacks it. Without --all the raw output of each trial is left out,
    since reports and verdicts do not need it. pgtrial reads the bundle back before it gives the file its name. An
    existing file is not replaced.
    """
    study = StudyDirectory.open(directory)
    target = output or Path(f"{directory if directory.name.strip('.') else directory.resolve()}{SUFFIX}")
    if unlike := differences(study):
        raise StoreError(
            f"the verdict in {directory} does not follow from its trials: {unlike[0]}; `pgtrial report {directory}` "
            "computes the verdict again"
        )
    with new_file(target) as new:
        manifest = write_bundle(study, new.file, everything=everything)
        new.flush()
        with open_study(new.path) as written:
            if written.trials() != study.trials():
                raise StoreError(
                    f"{directory} has changed while it was bundled, or holds links to folders; wait until its run has "
                    "ended, replace such links by the folders themselves, and bundle it again"
                )
    print_message(_kept(study, manifest, target))
    warn_of_cut_values(study.spec)
    line(target)
    return 0


def _kept(study: StudyDirectory, manifest: Manifest, target: Path) -> str:
    kept = {part.name for part in manifest.parts}
    left = [name for name in files_of(study.path) if name not in kept]
    size = sum(part.size for part in manifest.parts)
    summary = f"{len(kept)} parts, {_megabytes(size)} in {_megabytes(target.stat().st_size)}"
    if not left:
        return summary
    kinds = ", ".join(sorted({Path(name).name for name in left})[:5])
    size = sum((study.path / name).lstat().st_size for name in left)
    return f"{summary}; left out: {len(left)} files of {_megabytes(size)} ({kinds}), which --all keeps"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB"


def verify_command(study: Annotated[Path, typer.Argument(help="A bundle, or a study directory.")]) -> int:
    """Check the digest of each file of a bundle, compute the verdict again from the trials, and compare this verdict
    with the stored verdict.

    Exit status: 0 all files are unchanged and the verdict follows from them, 3 otherwise. For a study directory the
    digests are checked only if the directory was unpacked from a bundle.
    """
    line(_verified(study))
    return 0


def _verified(path: Path) -> str:
    with open_study(path) as study, values_of(path):
        manifest = manifest_of(study)
        if manifest is not None and path.is_dir():
            check_parts(path, manifest)
        unlike = differences(study)
        trials = len(study.trials())
    if unlike:
        more = f" (and {len(unlike) - 1} more)" if len(unlike) > 1 else ""
        raise StoreError(f"the verdict of {path} does not follow from its trials: {unlike[0]}{more}")
    parts = f"{len(manifest.parts)} parts are as they were bundled, and " if manifest is not None else ""
    return f"{path}: {parts}the verdict follows from the {plural(trials, 'trial')}"


def metrics_command(
    directory: Annotated[Path, typer.Argument(help="A study directory.")], *, trust: Trust = False, allow: Allow = None
) -> int:
    """Import the metrics of cloud providers that the arms of a study name in `monitoring`, as far as they are not
    stored yet, and write the report again.

    `pgtrial run` imports the metrics that are available when the study ends. The metrics of the last trials become
    available some minutes later. The exit status is 2 if some metrics are still missing.
    """
    study = StudyDirectory.open(directory)
    if not measured_arms(study):
        raise StudyError(
            f"no arm of the study in {directory} names the metrics of a cloud provider; write for example "
            'monitoring = { cloudwatch = "..." } into an arm, and run the study again'
        )
    if not study.made_here:
        asked = [effect for effect in effects_of(study.spec) if effect.kind == "servers"]
        check_trust(str(directory), asked, trust=trust, allow=allow)
    missing = import_metrics(study, print_message)
    for sentence in missing:
        warn(sentence)
    build_report(study)
    line(study.path / "report.html")
    return 2 if missing else 0


def serve_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Study directories, bundles, folders that contain studies or histories, and branches "
            "with histories (git:PATH@BRANCH). Default: results and history.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="The port of the web server. Default: a free port.", min=1, max=65535, show_default=False),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and do not open a browser.")
    ] = False,
) -> int:
    """Show studies in a browser: their reports, running studies live, two studies side by side, and the throughput in
    each second of a trial. Histories are shown as series of commits, with the commits at which the speed changed.

    The command prints an address that contains a random token, and serves the pages to this machine only, until you
    press Ctrl-C. The pages change nothing, except for a button that makes a running study stop after its current block.
    """
    # imported here, since other commands start sooner without the libraries of the web server
    from pgtrial.report.serve.catalogue import check_paths  # noqa: PLC0415
    from pgtrial.report.serve.histories import Histories, is_branch  # noqa: PLC0415
    from pgtrial.report.serve.server import serving  # noqa: PLC0415

    served = paths or [RESULTS, Path(HISTORY)]
    check_paths([path for path in served if not is_branch(path) and (paths or path.exists())])
    Histories(served).check_branches()
    try:
        with interruptible(), serving(served, port) as server:
            line(server.address)
            print_message("press Ctrl-C to stop the web server")
            with _shown(server.address, wanted=not no_browser):
                server.thread.join()
    except Interrupted:
        return 0
    return 0


@contextmanager
def _shown(address: str, *, wanted: bool) -> Iterator[None]:
    """Opens an address in the user's browser, if there is a screen. The browser gets a private file that leads to the
    address, because other users of this machine can see the browser's command line and so the token in the address."""
    has_screen = sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if not wanted or not has_screen:
        yield
        return
    with temporary_folder() as folder:
        page = folder / "open.html"
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">')
        webbrowser.open(page.as_uri())
        yield
