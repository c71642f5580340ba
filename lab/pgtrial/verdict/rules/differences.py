"""Rules on differences between the arms that the study does not declare, and on differences between the deployments of
one arm, which are several servers of the same product."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from pgtrial.model.known_settings import KNOWN
from pgtrial.model.records.facts import Facts
from pgtrial.model.study.setup import KEYS, LOCALE
from pgtrial.model.units import grouped
from pgtrial.verdict.rules import network
from pgtrial.verdict.rules.case import Case, Concern, Difference, as_shown, compared, listed, rule
from pgtrial.verdict.rules.hygiene import is_debugging

_FOLLOWS = {shows[0]: key.follows for key in KEYS.values() if key.follows and (shows := key.shown(None, None))}
"""For each property (fact) that a key of the study file sets: patterns for the names of other facts that may change as
a consequence."""
_OTHER_RULES = frozenset({"data_checksums", "debug_assertions", "pending_restart", *LOCALE})
_DURABILITY = frozenset(
    {"settings.fsync", "settings.full_page_writes", "settings.synchronous_commit", "server.unlogged_tables"}
)
_NETWORK_PATH = frozenset({"client.connection", *(f"network.{name}" for name in network.COMPARED)})


def _keys(differences: Sequence[Difference]) -> str:
    return listed(difference.key for difference in differences)


@rule("undeclared_difference", "undeclared differences")
def undeclared_differences(case: Case) -> Iterator[Concern]:
    """Finds differences between the arms that the study does not declare and that do not follow from a declared
    difference. It yields one concern (problem) for each property (fact) that differs."""
    undeclared = (difference for difference in _without_own_rule(case) if _origin(case, difference) is None)
    for key, of_key in grouped((difference.key, difference) for difference in undeclared).items():
        values = {case.baseline: of_key[0].baseline_value} | {one.arm: one.value for one in of_key}
        by_arm = listed(f"{as_shown(value)} in {arm}" for arm, value in values.items())
        yield Concern(
            list(values),
            f"The arms differ in {key}, which the study does not declare: {by_arm}.",
            f"Make {key} equal, or declare it in the study; as it is, the verdict is for all differences at once.",
        )


@rule("following_difference", "differences that follow from declared ones")
def following_differences(case: Case) -> Iterator[Concern]:
    """Finds differences between the arms that follow from a difference that the study declares. It yields one concern
    (problem) for each declared difference."""
    origins = [(difference, _origin(case, difference)) for difference in _without_own_rule(case)]
    following = (
        ((difference.arm, origin), difference) for difference, origin in origins if origin not in (None, difference.key)
    )
    for (arm, origin), of_origin in grouped(following).items():
        yield Concern(
            [case.baseline, arm],
            f"From the declared {origin} of {arm} follow differences in {_keys(of_origin)}.",
            "Nothing to do: these differences are part of what is compared; to exclude one of them, set it for all "
            "arms in [server].",
            "info",
        )


@rule("swapped_places", "the arms take turns on unlike places")
def swapped_places(case: Case) -> Iterator[Concern]:
    """Finds differences of storage between arms that exchange their storage locations at random from block to block.

    The facts (settings and other properties) of an arm were collected in a single trial, and describe only the location
    that the arm had in that trial.
    """
    swapped = ((difference.arm, difference) for difference in case.differences if _of_storage(case, difference))
    for arm, of_arm in grouped(swapped).items():
        yield Concern(
            [case.baseline, arm],
            f"{case.baseline} and {arm} exchange {listed(case.design.listed_storage(arm))} at random from block to "
            f"block; when the facts were collected they were at different ones, and so differed in {_keys(of_arm)}.",
            "Nothing to do: over all blocks both arms are at each place.",
            "info",
        )


@rule("data_checksums", "data checksums differ")
def data_checksums(case: Case) -> Iterator[Concern]:
    """Finds arms with different data checksums, which cost time. Since PostgreSQL 18 they are on by default, so that
    versions differ in them."""
    for difference in case.differences:
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
    """Finds arms with different locales. Their collations differ in speed and in the order of rows."""
    of_locale = (
        difference for difference in case.differences if difference.group == "server" and difference.name in LOCALE
    )
    undeclared = (
        (difference.arm, difference) for difference in of_locale if not case.declared(difference.arm, "server.initdb")
    )
    for arm, of_arm in grouped(undeclared).items():
        values = listed(f"{one.name} ({as_shown(one.baseline_value)} and {as_shown(one.value)})" for one in of_arm)
        yield Concern(
            [case.baseline, arm],
            f"{case.baseline} and {arm} differ in {values}: comparing text costs more in some locales.",
            'Give all arms one locale: [server] initdb = ["--locale=C", "--encoding=UTF8"].',
        )


def _origin(case: Case, difference: Difference) -> str | None:
    """Returns the declared key that explains a difference: the key of the difference itself, or a key from which it
    follows. Returns None if no declared key explains it."""
    arm = difference.arm
    for key in (difference.key, *_possible_origins(case, difference)):
        if case.declared(arm, key):
            return key
    parents = [key for key in _parents(case, difference) if case.declared(arm, key)]
    return listed(parents) if parents else None


def _parents(case: Case, difference: Difference) -> list[str]:
    """Returns the settings from which the servers of both arms derive the default of this setting. The result is empty
    if an arm has set the setting itself."""
    if not case.is_unset(difference):
        return []
    return sorted(f"settings.{name}" for name in KNOWN.members(KNOWN.parents.get(difference.name, frozenset())))


def _possible_origins(case: Case, difference: Difference) -> list[str]:
    """Returns the keys from which a difference may follow: first the declared keys of its volume, then all keys with a
    matching pattern, declared or not, the most specific pattern first."""
    set_by_study = any(difference.name in case.design.servers[arm].settings for arm in (case.baseline, difference.arm))
    # if the study sets a setting, the version of the server does not explain its value
    if difference.group in ("settings", "server") and set_by_study:
        return []
    matching = [
        (pattern, fact)
        for fact, patterns in _FOLLOWS.items()
        for pattern in patterns
        if fnmatchcase(difference.key, pattern)
    ]
    by_key = [fact for _, fact in sorted(matching, key=lambda entry: -len(entry[0]))]
    return [*(key for key in case.plan.declared.get(difference.arm, []) if _of_volume(key, difference)), *by_key]


def _of_volume(key: str, difference: Difference) -> bool:
    """True if a key describes a volume and the difference is on the same volume. A volume may explain all differences
    of storage on it."""
    if key in _FOLLOWS or not key.startswith("storage.") or difference.group != "storage":
        return False
    return difference.name.startswith("wal_") or not key.startswith("storage.wal_")


def _of_storage(case: Case, difference: Difference) -> bool:
    """True if a difference of storage exists only because two arms exchange their storage locations at random between
    trials."""
    swapped = difference.group == "storage" and case.design.listed_storage(case.baseline, difference.arm)
    return bool(swapped) and not case.declared(difference.arm, difference.key)


def _without_own_rule(case: Case) -> Iterator[Difference]:
    return (difference for difference in case.differences if not _has_own_rule(case, difference))


def _has_own_rule(case: Case, difference: Difference) -> bool:
    values = (difference.baseline_value, difference.value)
    return (
        difference.key in _DURABILITY
        or _of_storage(case, difference)
        or difference.key in _NETWORK_PATH
        or (difference.group == "server" and difference.name in _OTHER_RULES)
        or (difference.group == "settings" and any(is_debugging(difference.name, value) for value in values))
    )


@rule("unlike_deployments", "deployments of one arm differ")
def unlike_deployments(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each fact (a setting or other property) that differs between the deployments of
    an arm, which are several servers of the same product. Unknown values do not count as different."""
    for arm, deployments in case.deployments.items():
        for group, name, values in compared(deployments):
            known = [index for index, value in enumerate(values) if value is not None]
            alike = grouped((json.dumps(values[index], sort_keys=True), index) for index in known).values()
            if len(alike) > 1:
                shown = listed(
                    f"{as_shown(values[indices[0]])} in {_numbers(deployments, indices)}" for indices in alike
                )
                yield Concern(
                    [arm],
                    f"The deployments of {arm} differ in {group}.{name}: {shown} (numbered from 1).",
                    "Order them alike, or give those that differ as arms of their own; as it is, the difference "
                    "is a part of what tells deployments apart.",
                )


@rule("changed_in_between", "something had changed when the study went on")
def changed_in_between(case: Case) -> Iterator[Concern]:
    """Yields one concern (problem) for each fact (a setting or other property) that changed while a study was
    interrupted, that is, between the run that stopped and the run that continued it. The concern names all arms with
    this change."""
    changes = [
        ((change.block + 1, change.key, as_shown(change.before), as_shown(change.now)), arm)
        for arm in case.arms
        for facts in case.deployments.get(arm, [case.facts[arm]])
        for change in facts.changed
    ]
    # deployments with the same change are reported as one arm
    for (block, key, before, now), arms in grouped(dict.fromkeys(changes)).items():
        yield Concern(
            arms,
            f"When the study went on before block {block}, {key} of {listed(arms)} had changed from {before} to {now}.",
            "For a verdict of one state alone run the study again; as it is, the verdict is for both together.",
        )


def _numbers(deployments: Sequence[Facts], indices: Sequence[int]) -> str:
    numbers = [str(1 + (deployments[index].deployment or 0)) for index in indices]
    return f"deployment{'s' if len(numbers) > 1 else ''} {listed(numbers)}"
