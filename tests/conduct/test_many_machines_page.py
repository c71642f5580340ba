"""Tests that the examples of docs/many-machines.md can be read by the programs for which they are written."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.store.study_file import build_study

from ..conftest import require

DOCS = Path(__file__).parents[2] / "docs"


def test_the_study_is_one_with_a_fleet_and_two_hosts():
    [text] = re.findall(r"```toml\n(.*?)```", (DOCS / "many-machines.md").read_text(), re.DOTALL)
    spec = build_study(tomllib.loads(text), "the page")
    plan = make_plan(spec, 1, "now")
    assert spec.fleet is not None
    assert spec.fleet.machines == 4
    assert [host.by for hosts in plan.hosts.values() for host in hosts] == ["ssh", "ssh"]


def test_the_cluster_file_has_only_keys_that_rays_launcher_knows():
    found = importlib.util.find_spec("ray")
    require(found is not None, "ray")
    assert found is not None
    assert found.origin is not None
    from jsonschema import validate  # noqa: PLC0415 - both come with ray
    from yaml import safe_load  # noqa: PLC0415

    aws = safe_load((DOCS / "fleet" / "aws.yaml").read_text())
    validate(aws, json.loads((Path(found.origin).parent / "autoscaler" / "ray-schema.json").read_text()))
    load = aws["available_node_types"]["load"]
    assert load["min_workers"] == load["max_workers"] == aws["max_workers"]
