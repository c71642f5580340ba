"""Arms on a server that is somebody else's, as the tests of given servers have them."""

from __future__ import annotations

from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.arms import make_arms

PASSWORD = "correct horse"


def spec_of(dsn, settings=None, reset=None, **load):
    server = {"dsn": dsn, "settings": settings or {}} | ({"reset": reset} if reset else {})
    return StudySpec.model_validate(
        {"load": {"scale": 1, "clients": 2, **load}, "server": server, "arms": {"A": {}, "B": {}}}
    )


def silent(line):
    del line


def dsn_of(cluster, dbname="postgres", user="postgres"):
    return f"host={cluster.socket_directory} port={cluster.port} dbname={dbname} user={user}"


def arm_of(spec, workspace):
    return make_arms(spec, workspace)["A"]


def checked(spec, workspace):
    arm = arm_of(spec, workspace)
    arm.check(Needs.of(spec))
    return arm


def served(arm, tmp_path, inside=lambda target: None):
    """A trial's use of the arm, without tables: what `inside` returns for its target."""
    with arm.serve(NO_TABLES, tmp_path / "log", {}) as target:
        return inside(target)
