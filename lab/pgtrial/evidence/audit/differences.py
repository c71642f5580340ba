"""Rules on undeclared differences between the arms, and between the deployments of one arm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pgtrial.evidence.audit import network
from pgtrial.evidence.audit.case import Case, Concern, Difference, as_shown, compared, known_value, listed, rule
from pgtrial.evidence.audit.hygiene import is_debugging
from pgtrial.evidence.collect.server import KNOWN
from pgtrial.model.records.facts import Facts
from pgtrial.model.study.places import listed_places

_BY_INITDB = frozenset(
    {
        "data_checksums",
        "wal_segment_size",
        "encoding",
        "locale_provider",
        "collate",
        "ctype",
        "provider_locale",
        "collation_version",
    }
)
_BY_PAGES = frozenset({"huge_pages", "huge_page_size", "huge_pages_status", "shared_memory_size_in_huge_pages"})
_LOCALE = ("encoding", "locale_provider", "collate", "ctype", "provider_locale")
_OTHER_RULES = frozenset({"data_checksums", "debug_assertions", "pending_restart", *_LOCALE})
_WHOLE_SERVERS = ("server.dsn", "server.host")
"""Declared by arms whose servers are given, or on hosts of their own: then everything may differ."""
_DURABILITY = frozenset({"settings.fsync", "settings.full_page_writes", "settings.synchronous_commit"})
_SHOWN_BY = {
    "memory.huge_pages": ("memory.huge_page",),
    "storage.scheduler": ("storage.scheduler", "storage.queue_"),
}
"""Prefixes of the facts that follow from these keys of a host; of its memory no other key has followers."""
_NETWORK_PATH = frozenset({"client.connection", *(f"network.{name}" for name in network.COMPARED)})


_Key = TypeVar("_Key")


def _grouped(
    case: Case, key: Callable[[Difference], _Key], wanted: Callable[[Difference], bool]
) -> Iterator[tuple[_Key, list[Difference]]]:
    found: dict[_Key, list[Difference]] = defaultdict(list)
    for difference in case.differences():
        if wanted(difference):
            found[key(difference)].append(difference)
    yield from found.items()


def _arm(difference: Difference) -> str:
    return difference.arm


def _keys(differences: Sequence[Difference]) -> str:
    return listed(difference.key for difference in differences)


@rule("undeclared_difference", "undeclared differences")
def undeclared_differences(case: Case) -> Iterator[Concern]:
    """A difference that nobody declared and that follows from nothing declared; one concern for each fact."""

    def wanted(difference: Difference) -> bool:
        return _origin(case, difference) is None and not _has_own_rule(case, difference)

    for key, found in _grouped(case, lambda difference: difference.key, wanted):
        values = {case.baseline: found[0].baseline_value} | {one.arm: one.value for one in found}
        by_arm = listed(f"{as_shown(value)} in {arm}" for arm, value in values.items())
        yield Concern(
            list(values),
            f"The arms differ in {key}, which the study does not declare: {by_arm}.",
            f"Make {key} equal, or declare it in the study; as it is, the verdict is for all differences at once.",
        )


@rule("following_difference", "differences that follow from declared ones")
def following_differences(case: Case) -> Iterator[Concern]:
    """Differences that follow from one that the study declares, one concern for each of those."""

    def wanted(difference: Difference) -> bool:
        return _origin(case, difference) not in (None, difference.key) and not _has_own_rule(case, difference)

    for (arm, origin), found in _grouped(case, lambda each: (each.arm, _origin(case, each)), wanted):
        yield Concern(
            [case.baseline, arm],
            f"From the declared {origin} of {arm} follow differences in {_keys(found)}.",
            "Nothing to do: they are part of what is compared; set those that should not be in [server].",
            "info",
        )


@rule("swapped_places", "the arms take turns on unlike places")
def swapped_places(case: Case) -> Iterator[Concern]:
    """What differs because the facts were collected in one trial of each arm, at the place that this trial drew."""
    for arm, found in _grouped(case, _arm, lambda difference: _of_the_place(case, difference)):
        yield Concern(
            [case.baseline, arm],
            f"{case.baseline} and {arm} take turns on {listed(listed_places(case.spec, arm))} by the "
            f"coin; when the facts were collected they were at different ones, and differed in {_keys(found)}.",
            "Nothing to do: over the blocks both arms are at each place.",
            "info",
        )


@rule("data_checksums", "data checksums differ")
def data_checksums(case: Case) -> Iterator[Concern]:
    """Checksums cost time; since PostgreSQL 18 they are on by default, so versions differ silently."""
    for difference in case.differences():
        if difference.key == "server.data_checksums" and not case.declared(difference.arm, "server.initdb"):
            yield Concern(
                [case.baseline, difference.arm],
                f"Data checksums are {difference.baseline_value} in {case.baseline} and "
                f"{difference.value} in {difference.arm}: that is part of the difference measured.",
                'Set [server] initdb = ["--data-checksums"] to have them on in all arms '
                "(off: --no-data-checksums for PostgreSQL 18 and later).",
            )


@rule("locale", "locales differ")
def locale(case: Case) -> Iterator[Concern]:
    """Collations differ in speed, and in the order of rows."""

    def wanted(difference: Difference) -> bool:
        undeclared = not case.declared(difference.arm, "server.initdb")
        return undeclared and difference.group == "server" and difference.name in _LOCALE

    for arm, found in _grouped(case, _arm, wanted):
        values = listed(f"{one.name} ({as_shown(one.baseline_value)} and {as_shown(one.value)})" for one in found)
        yield Concern(
            [case.baseline, arm],
            f"{case.baseline} and {arm} differ in {values}: comparing text costs more in some locales.",
            'Give all arms one locale: [server] initdb = ["--locale=C", "--encoding=UTF8"].',
        )


def _origin(case: Case, difference: Difference) -> str | None:
    """The declared key that a difference is or follows from, or None if it is undeclared."""
    arm = difference.arm
    if case.declared(arm, difference.key):
        return difference.key
    for key in _possible_origins(case, difference):
        if case.declared(arm, key):
            return key
    parents = [key for key in _parents(case, difference) if case.declared(arm, key)]
    return listed(parents) if parents else None


def _parents(case: Case, difference: Difference) -> list[str]:
    """The settings from which the servers of both arms derive this one; none where an arm has set it itself."""
    if any(difference.name in case.facts[arm].facts.get("settings", {}) for arm in (case.baseline, difference.arm)):
        return []
    return sorted(f"settings.{name}" for name in KNOWN.members(KNOWN.parents.get(difference.name, frozenset())))


def _possible_origins(case: Case, difference: Difference) -> list[str]:
    if difference.group == "settings":
        chosen = any(difference.name in case.spec.resolved(name).settings for name in (case.baseline, difference.arm))
        # what the study sets is not the version's doing
        by_pages = ["memory.huge_pages"] if difference.name in _BY_PAGES else []
        return [] if chosen else [*by_pages, "server.version", *_WHOLE_SERVERS]
    if difference.group == "server":
        if difference.name == "extensions":
            return ["server.setup_sql", "server.version", *_WHOLE_SERVERS]
        if difference.name == "huge_pages_status":
            return ["memory.huge_pages", "server.version", *_WHOLE_SERVERS]
        by_initdb = ["server.initdb"] if difference.name in _BY_INITDB else []
        return [*by_initdb, "server.version", *_WHOLE_SERVERS]
    of_the_host = [key for key in case.plan.declared.get(difference.arm, []) if _shows_in(key, difference)]
    return [*of_the_host, *_WHOLE_SERVERS]


def _shows_in(key: str, difference: Difference) -> bool:
    """Whether what a declared key changes of the host may show in this fact: all of a volume, or what is known."""
    if key in _SHOWN_BY:
        return difference.key.replace("storage.wal_", "storage.").startswith(_SHOWN_BY[key])
    if key.startswith("storage.wal_"):
        return difference.group == "storage" and difference.name.startswith("wal_")
    return difference.group == "storage" and key.startswith("storage.")


def _of_the_place(case: Case, difference: Difference) -> bool:
    """Whether a difference of storage is one of places that the coin swaps."""
    swapped = difference.group == "storage" and listed_places(case.spec, case.baseline, difference.arm)
    return bool(swapped) and not case.declared(difference.arm, difference.key)


def _has_own_rule(case: Case, difference: Difference) -> bool:
    values = (difference.baseline_value, difference.value)
    return (
        difference.key in _DURABILITY
        or _of_the_place(case, difference)
        or difference.key in _NETWORK_PATH
        or (difference.group == "server" and difference.name in _OTHER_RULES)
        or (difference.group == "settings" and any(is_debugging(difference.name, value) for value in values))
    )


@rule("unlike_deployments", "deployments of one arm differ")
def unlike_deployments(case: Case) -> Iterator[Concern]:
    """One concern for each fact in which an arm's deployments differ; unknown values are no difference."""
    for arm, deployments in case.deployments.items():
        for group, name in compared(deployments):
            by_value = _by_value(deployments, group, name)
            if len(by_value) > 1:
                values = listed(f"{as_shown(value)} in {_numbers(numbers)}" for value, numbers in by_value)
                yield Concern(
                    [arm],
                    f"The deployments of {arm} differ in {group}.{name}: {values} (numbered from 1).",
                    "Order them alike, or give those that differ as arms of their own; as it is, the difference "
                    "is a part of what tells deployments apart.",
                )


@rule("changed_in_between", "something had changed when the study went on")
def changed_in_between(case: Case) -> Iterator[Concern]:
    """One concern for each fact that changed between two runs of a study, with all arms that it changed in alike."""
    found: dict[tuple[int, str, str, str], list[str]] = defaultdict(list)
    for arm in case.arms:
        changed = [change for facts in case.deployments.get(arm, [case.facts[arm]]) for change in facts.changed]
        shown = [(change.block + 1, change.key, as_shown(change.before), as_shown(change.now)) for change in changed]
        for change in dict.fromkeys(shown):  # deployments that changed alike are one arm
            found[change].append(arm)
    for (block, key, before, now), arms in found.items():
        yield Concern(
            arms,
            f"When the study went on before block {block}, {key} of {listed(arms)} had changed from {before} to {now}.",
            "For a verdict of one state alone run the study anew; as it is, the verdict is for both together.",
        )


def _by_value(deployments: Sequence[Facts], group: str, name: str) -> list[tuple[Any, list[int]]]:
    """Each known value with the deployments that have it, in the order of their numbers."""
    found: list[tuple[Any, list[int]]] = []
    for facts in deployments:
        value = known_value(facts, group, name)
        if value is None:
            continue
        known = next((numbers for other, numbers in found if other == value), None)
        if known is None:
            found.append((value, known := []))
        known.append(1 + (facts.deployment or 0))
    return found


def _numbers(numbers: Sequence[int]) -> str:
    return f"deployment{'s' if len(numbers) > 1 else ''} {listed(map(str, numbers))}"
