"""The engine's event loop in simulated time: runs with servers that fail in all ways, each drawn from a seed."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.reliability.kind import Attack, Campaign, Figure, Kind, Missing

_ENGINE = Path(__file__).parents[2] / "engine"
_BUILD_S = 120.0
_AT_ONCE = 10_000
_SEEDS = 1 << 40
_BROKEN = re.compile(r"^seed (\d+):\n((?:  \S.*\n)+)", re.MULTILINE)


def _run(campaign: Campaign) -> Iterator[Figure]:
    test = ["cargo", "test", "--quiet", "--release", "--locked", "-p", "drive", "simulat"]
    campaign.report("  building the simulation")
    if (
        built := subprocess.run([*test, "--no-run"], cwd=_ENGINE, capture_output=True, text=True, check=False)
    ).returncode:
        raise Missing(f"the simulation could not be built: {built.stderr.strip().splitlines()[-1]}")
    attack = Attack(campaign, "simulated", "a simulated run of the event loop", 0)
    first, ends = campaign.chance.randrange(_SEEDS), time.monotonic() + campaign.fuzz_s
    while time.monotonic() < ends and not attack.defects:
        seeds = f"{first + attack.count}..{first + attack.count + _AT_ONCE}"
        environment = {**os.environ, "PGTRIAL_SIMULATION": seeds}
        done = subprocess.run(test, cwd=_ENGINE, env=environment, capture_output=True, text=True, check=False)
        for seed, promises in _BROKEN.findall(done.stdout):
            attack.defect(f"seed {seed}: {'; '.join(line.strip() for line in promises.splitlines())}")
        if done.returncode and not attack.defects:
            attack.defect(f"seeds {seeds}: the simulation ended with status {done.returncode}")
        attack.count += _AT_ONCE
        campaign.report(f"  {attack.count} runs, {max(0.0, ends - time.monotonic()) / 60:.0f} min left")
    yield attack.figure(f"seeds {first} to {first + attack.count - 1}")


KIND = Kind("simulated", lambda campaign: _BUILD_S + campaign.fuzz_s, _run, needs_root=False)
