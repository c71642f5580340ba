"""The manifests for Kubernetes as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
MANIFESTS = {
    path.name: list(yaml.safe_load_all(path.read_text())) for path in ROOT.glob("docs/fleet/kubernetes-*.yaml")
}
"""The objects of each manifest, by file name."""


def of_kind(kind: str, *files: str) -> dict[str, Any]:
    """Returns the objects of this kind in these files, or in all manifests, by their names."""
    objects = (each for name in files or MANIFESTS for each in MANIFESTS[name])
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def pods(*files: str) -> dict[str, Any]:
    """Returns the specification of each pod by the name of its Job, or by its own name if it has no Job."""
    of_jobs = {name: job["spec"]["template"]["spec"] for name, job in of_kind("Job", *files).items()}
    return {**of_jobs, **{name: pod["spec"] for name, pod in of_kind("Pod", *files).items()}}
