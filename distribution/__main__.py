"""`python -m distribution`: what `make dist` makes, in build/dist."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from distribution import engine
from distribution.completion import completions
from distribution.debian import make_deb
from distribution.lab import lab_wheel, source_distribution
from distribution.manual import manual_pages
from distribution.running import DistributionError
from distribution.targets import TARGETS, Target, this_machine
from distribution.wheels import make_wheel
from pgtrial.loads.process import engine_path

_NAMES = [target.name for target in TARGETS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the source distribution, and a wheel and a Debian package for each platform. 1 if one could not be made."""
    parser = argparse.ArgumentParser(prog="python -m distribution", description=main.__doc__)
    parser.add_argument("--here", action="store_true", help="for this machine alone, with the engine that is built")
    parser.add_argument("--only", action="append", choices=_NAMES, help="a platform; repeatable (default: all)")
    parser.add_argument("--output", type=Path, default=engine.ROOT / "build" / "dist", help="(default: build/dist)")
    options = parser.parse_args(arguments)
    output = options.output.absolute()
    targets = [this_machine()] if options.here else [t for t in TARGETS if t.name in (options.only or _NAMES)]
    output.mkdir(parents=True, exist_ok=True)
    work = output.with_name(f"{output.name}-work")
    failed = False
    try:
        shutil.rmtree(work / "source", ignore_errors=True)
        source = source_distribution(output)
        print(source)
        maker = _Maker(output, work, lab_wheel(source, work / "source"), manual_pages(engine_path()))
        for target in targets:
            try:
                maker.make(target)
            except DistributionError as error:
                failed = True
                print(f"{target.name} could not be made: {error}", file=sys.stderr)
    except DistributionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return int(failed)


class _Maker:
    """Makes the files of the platforms, one after the other, from the files that they share."""

    def __init__(self, output: Path, work: Path, lab: Path, pages: dict[str, str]) -> None:
        self._output = output
        self._work = work
        self._lab = lab
        self._manual = {f"man/man1/{name}.1": page.encode() for name, page in pages.items()}

    def make(self, target: Target) -> None:
        """Makes the wheel of a platform, and its Debian package if it has one. Raises DistributionError."""
        built = engine.build(target, self._work) if target.triple else engine.stripped(engine_path(), self._work)
        shared = {**self._manual, **completions(engine_path())}
        made = make_wheel(self._lab, built, shared, target, self._work / "wheel")
        wheel = Path(shutil.move(made, self._output / made.name))
        print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)", flush=True)
        if target.debian is not None and target.glibc is not None:
            shared = {**self._manual, **completions(engine_path(), zsh="vendor-completions")}
            print(make_deb(target, built, wheel, shared, self._work / "deb"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
