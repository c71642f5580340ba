"""Writes the outcome of a gate as JUnit XML with a test case for each of its studies. The schema is that of Apache Ant,
which continuous integration systems read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pgtrial.model.printable import printable
from pgtrial.report.gate.outcome import Outcome
from pgtrial.report.gate.tries import Tries

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches the characters that cannot be written in XML 1.0."""


@dataclass(frozen=True)
class Case:
    """A test case of the JUnit file: the comparison of HEAD with BASE in one study."""

    of_gate: Outcome
    seconds: float
    """The time that the comparison took, in seconds."""
    details: str = ""
    """Plain text with the results, which becomes the output of the test case."""
    study: str | None = None
    """The name of the study in a gate of several studies; None if the gate has only one study."""

    @property
    def output(self) -> str:
        """Returns the output of the test case: the results, or else the outcome."""
        return self.details or self.of_gate.sentence


def junit(
    base: str,
    head: str,
    of_gate: Outcome,
    cases: Sequence[Case],
    *,
    created: str,
    host: str,
    tries: Tries | None = None,
) -> str:
    """Returns the content of the JUnit file. `base` and `head` are the names of the two arms, `of_gate` is the outcome
    of the whole gate, and `created` is a time in ISO 8601."""
    statuses = [case.of_gate.status for case in cases]
    seconds = sum(case.seconds for case in cases)
    suites = Element("testsuites")
    suite = SubElement(
        suites,
        "testsuite",
        {
            "id": "0",
            "package": "pgtrial",
            "name": "pgtrial gate",
            "timestamp": _without_zone(created),
            "hostname": _xml(host) or "localhost",
            "tests": str(len(cases)),
            "failures": str(statuses.count(1)),
            "errors": str(sum(status > 1 for status in statuses)),
            "time": f"{seconds:.3f}",
        },
    )
    properties = SubElement(suite, "properties")
    of_tries = [("try", str(tries.number)), ("verdict of", tries.stands or "this run")] if tries is not None else []
    for name, value in (("base", base), ("head", head), ("outcome", of_gate.word), *of_tries):
        SubElement(properties, "property", {"name": name, "value": _xml(value)})
    for case in cases:
        _add(suite, f"{head} against {base}", case)
    texts = [case.output if case.study is None else f"{case.study}: {case.output}" for case in cases]
    SubElement(suite, "system-out").text = _xml("\n\n".join(texts))
    SubElement(suite, "system-err")
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _add(suite: Element, pair: str, case: Case) -> None:
    name = pair if case.study is None else f"{case.study}: {pair}"
    added = SubElement(
        suite,
        "testcase",
        {"classname": "pgtrial.gate", "name": _xml(name), "time": f"{case.seconds:.3f}"},
    )
    if case.of_gate.status:
        kind = "failure" if case.of_gate.status == 1 else "error"
        message = {"message": _xml(case.of_gate.sentence), "type": case.of_gate.word}
        SubElement(added, kind, message).text = _xml(case.output)


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", printable(text))


def _without_zone(created: str) -> str:
    """Returns a time in UTC in the form `2026-11-20T14:12:03`, because the schema does not allow time zones."""
    return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
