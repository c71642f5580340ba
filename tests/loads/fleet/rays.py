"""Ray on this machine, started anew where it gives up: tests beside it take the processors too."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tests.conftest import require

STARTS = 6
"""The number of attempts to start Ray. Ray 2.60 allows some of its processes 15 s to start and a node 30 s, which is
sometimes too short on a busy machine. No option changes these limits.
"""

PATIENCE_S = 120.0


def ray_of_this_machine() -> Any:
    """Returns the class with which Ray starts a cluster whose nodes are all on this machine, or skips the test."""
    try:
        from ray.cluster_utils import Cluster  # noqa: PLC0415
    except ImportError:
        Cluster = None
    require(Cluster, "Ray (pip install 'pgtrial[ray]')")
    return Cluster


def cluster_of_two_nodes() -> Any:
    """Returns a cluster of a head and another node, with a processor each."""
    for _ in range(STARTS - 1):
        cluster = ray_of_this_machine()()
        try:
            return _with_two_nodes(cluster)
        except Exception as error:
            cluster.shutdown()
            if "timed out during startup" not in str(error):
                raise
    return _with_two_nodes(ray_of_this_machine()())


def _with_two_nodes(cluster: Any) -> Any:
    # a port that is fixed, as the last one is by default, may be in use
    cluster.add_node(wait=False, num_cpus=1, include_dashboard=False, dashboard_agent_listen_port=0)
    cluster.add_node(wait=False, num_cpus=1)
    cluster.wait_for_nodes(PATIENCE_S)
    return cluster


def remove_sessions() -> None:
    """Removes the files that Ray has written for the clusters of this process."""
    for session in Path("/tmp/ray").glob(f"session_*_{os.getpid()}"):
        shutil.rmtree(session, ignore_errors=True)
