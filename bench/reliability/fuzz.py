"""The fuzz targets of engine/fuzz, each for a while."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing

_FOLDER = Path(__file__).parents[2] / "engine" / "fuzz"
_TARGETS = sorted(path.stem for path in (_FOLDER / "fuzz_targets").glob("*.rs"))
_COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
_BUILD_S = 240.0
_LONGEST_INPUT_S = 30
_SAID_S = 60.0
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_PEAK = re.compile(r"stat::peak_rss_mb:\s+(\d+)")
_COVERED = re.compile(r"cov: (\d+)")
_TOLD = re.compile(rb"#\d+\t|stat::|.*(panicked|ERROR: libFuzzer)")


def _run(campaign: Campaign) -> Iterator[Figure]:
    programs = _build(campaign)
    for name in _TARGETS:
        yield _fuzz(campaign, name, programs / name)


def _build(campaign: Campaign) -> Path:
    """Builds all targets and returns the directory of the programs."""
    verbose = subprocess.check_output(["rustc", "-vV"], text=True)
    host = next(line.removeprefix("host: ") for line in verbose.splitlines() if line.startswith("host: "))
    target = Path(os.environ.get("CARGO_TARGET_DIR", _FOLDER / "target"))
    campaign.report(f"  building {', '.join(_TARGETS)}")
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", host, "--bins"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "RUSTFLAGS": " ".join(_COVERAGE)}
    done = subprocess.run(command, cwd=_FOLDER, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f"the fuzz targets could not be built: {done.stderr.strip().splitlines()[-1]}")
    return target / host / "release"


def _fuzz(campaign: Campaign, name: str, program: Path) -> Figure:
    """Runs one fuzz target. An input that breaks it is kept in engine/fuzz/artifacts."""
    attack = Attack(campaign, "fuzz", f"fuzz target `{name}`", 1)
    corpus, kept = campaign.scratch / "corpus" / name, _FOLDER / "artifacts" / name
    for folder in (corpus, kept):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={campaign.fuzz_s:.0f}", f"-timeout={_LONGEST_INPUT_S}", "-print_final_stats=1"]
    command = [program, *options, f"-artifact_prefix={kept}/", corpus]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as fuzz:
        assert fuzz.stdout is not None
        reader = threading.Thread(target=_keep_lines, args=(fuzz.stdout, lines))
        reader.start()
        _watch(campaign, name, fuzz)
        reader.join()
    printed = "\n".join(lines)
    runs, peak = (int(found[-1]) if (found := pattern.findall(printed)) else 0 for pattern in (_RUNS, _PEAK))
    covered = _COVERED.findall(printed)
    if fuzz.returncode != 0:
        why = next((line for line in lines if "panicked" in line or "ERROR: libFuzzer" in line), "it died")
        attack.defect(f"{name}: {why.strip()}; the input is in {kept}")
    attack.count = runs
    return attack.figure(f"{covered[-1] if covered else 0} places of the code reached, {peak} MB of memory at most")


def _keep_lines(output: IO[bytes], lines: list[str]) -> None:
    """Keeps the fuzzer's output, and why the target died; a target prints gigabytes of servers' messages."""
    lines += [line.decode(errors="replace") for line in output if _TOLD.match(line)]


def _watch(campaign: Campaign, name: str, fuzz: subprocess.Popen[bytes]) -> None:
    """Reports the progress of the fuzzer, and ends it with the campaign."""
    began = time.monotonic()
    try:
        while True:
            try:
                fuzz.wait(_SAID_S)
                return
            except subprocess.TimeoutExpired:
                left = max(0, campaign.fuzz_s - (time.monotonic() - began))
                campaign.report(f"  {name}: {left / 60:.0f} min left")
    finally:
        fuzz.kill()


KIND = Kind("fuzz", lambda campaign: _BUILD_S + len(_TARGETS) * campaign.fuzz_s, _run, needs_root=False)
