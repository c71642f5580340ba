"""The manifests for Kubernetes: its published schemas, the image that is named, its user and its commands."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import tomllib

import pytest

from pgtrial import __version__
from pgtrial.conduct.planning.plan import make_plan
from pgtrial.store.study_file import build_study
from tests.conftest import require
from tests.distribution.manifests import MANIFESTS, ROOT, of_kind, pods

OBJECTS = [(name, each["kind"], each) for name, objects in MANIFESTS.items() for each in objects]
FLEET = "kubernetes-fleet.yaml"
OLDEST = "1.29.0"
"""The published schemas of older ones ask for `onPodConditions` in each rule of a podFailurePolicy."""


def of_containerfile(instruction: str) -> str:
    (value,) = re.findall(rf"^{instruction} (.*)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    return value


def refusals(manifest):
    """Returns what each version of Kubernetes objects to in a manifest: unknown keys, wrong types, missing keys."""
    require(importlib.util.find_spec("kubernetes_validate"), "kubernetes-validate (the extra dev)")
    import kubernetes_validate  # noqa: PLC0415

    found = {}
    versions = kubernetes_validate.utils.all_versions()
    for version in versions[versions.index(OLDEST) :]:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found[version] = error.message
    return found


@pytest.mark.parametrize(("kind", "manifest"), [each[1:] for each in OBJECTS], ids=[f"{n}-{k}" for n, k, _ in OBJECTS])
def test_kubernetes_knows_all_keys_of_a_manifest(kind, manifest):
    assert refusals(manifest) == {}


def test_a_key_that_kubernetes_does_not_know_is_found():
    job = copy.deepcopy(of_kind("Job")["pgtrial-study"])
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["volumeMount"] = container.pop("volumeMounts")
    assert all("volumeMount" in message for message in refusals(job).values())
    assert len(refusals(job)) > 5


@pytest.mark.parametrize("name", pods())
def test_a_pod_has_the_image_and_the_user_of_the_containerfile(name):
    pod = pods()[name]
    user, group = map(int, of_containerfile("USER").split(":"))
    security = pod["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (user, group, group)
    assert security["runAsNonRoot"] is True
    for container in pod["containers"]:
        assert container["image"] == f"registry.example/pgtrial:{__version__}"


@pytest.mark.parametrize("file", MANIFESTS)
def test_what_a_pod_refers_to_is_there(file):
    beside = [file] if of_kind("Job", file) else list(MANIFESTS)
    claims, maps = of_kind("PersistentVolumeClaim", *beside), of_kind("ConfigMap", *beside)
    for pod in pods(file).values():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for volume in volumes.values():
            assert volume.get("configMap", {}).get("name") in {None, *maps}
            assert volume.get("persistentVolumeClaim", {}).get("claimName") in {None, *claims}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)


@pytest.mark.parametrize("name", of_kind("ConfigMap"))
def test_the_study_of_a_manifest_has_a_plan(name):
    (text,) = of_kind("ConfigMap")[name]["data"].values()
    assert make_plan(build_study(tomllib.loads(text), name), 1, "now").trials


def test_the_commands_without_a_program_are_of_the_image():
    assert json.loads(of_containerfile("ENTRYPOINT")) == ["pgtrial"]
    arguments = {
        name: pod["containers"][0]["args"] for name, pod in pods().items() if "command" not in pod["containers"][0]
    }
    assert arguments == {
        "pgtrial-study": ["run", "/study/study.toml"],
        "pgtrial-results": ["serve", "--port", "8000", "--no-browser"],
    }


def test_a_fleet_joins_the_head_in_the_pod_of_the_lab():
    jobs, (service,) = of_kind("Job", FLEET), of_kind("Service", FLEET).values()
    lab, machines = jobs["pgtrial-lab"]["spec"]["template"], jobs["pgtrial-machines"]
    assert service["spec"]["selector"].items() <= lab["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    (machine,) = machines["spec"]["template"]["spec"]["containers"]
    assert f"--address={service['metadata']['name']}:{port['port']}" in machine["command"]
    (script,) = lab["spec"]["containers"][0]["args"]
    assert f"--port={port['port']}" in script
    study = build_study(tomllib.loads(of_kind("ConfigMap", FLEET)["pgtrial-fleet"]["data"]["study.toml"]), FLEET)
    assert study.fleet is not None
    spec = machines["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    assert study.fleet.machines == 4
    assert "-gt 4 " in script


def test_the_page_names_what_the_manifests_have():
    page = (ROOT / "docs" / "containers.md").read_text()
    assert set(re.findall(r"-f (\S+\.yaml)", page)) == set(MANIFESTS)
    assert set(re.findall(r"\bjobs?[/ ](\S+)", page)) <= of_kind("Job").keys()
    assert set(re.findall(r"kubectl (?:port-forward|cp) ([\w-]+)", page)) == of_kind("Pod").keys()
    assert set(re.findall(r"image:(\S+)|example/pgtrial:(\S+)", page)) == {(__version__, ""), ("", __version__)}
    (secret,) = re.findall(r"secret generic (\S+)", page)
    wanted = re.findall(r"secretKeyRef: \{name: (\S+), key: (\S+)\}", (ROOT / "docs" / "fleet" / FLEET).read_text())
    assert set(wanted) == {(secret, key) for key in re.findall(r"--from-\w+=([\w-]+)=", page)}
