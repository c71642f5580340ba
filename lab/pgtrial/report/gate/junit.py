"""Writes the outcome of a gate as JUnit XML with a single test case, in the schema of Apache Ant, which continuous
integration systems read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pgtrial.model.printable import printable
from pgtrial.report.gate.outcome import Outcome
from pgtrial.report.gate.tries import Tries

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches the characters that cannot be written in XML 1.0."""


def junit(
    base: str,
    head: str,
    of_gate: Outcome,
    *,
    seconds: float,
    created: str,
    host: str,
    details: str = "",
    tries: Tries | None = None,
) -> str:
    """Returns the content of the JUnit file. `base` and `head` are the names of the two arms, `created` is a time in
    ISO 8601, `seconds` is the time that the gate took, and `details` is plain text with the results, which becomes the
    output of the test case."""
    failures, errors = int(of_gate.status == 1), int(of_gate.status > 1)
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
            "tests": "1",
            "failures": str(failures),
            "errors": str(errors),
            "time": f"{seconds:.3f}",
        },
    )
    properties = SubElement(suite, "properties")
    of_tries = [("try", str(tries.number)), ("verdict of", tries.stands or "this run")] if tries is not None else []
    for name, value in (("base", base), ("head", head), ("outcome", of_gate.word), *of_tries):
        SubElement(properties, "property", {"name": name, "value": _xml(value)})
    case = SubElement(
        suite,
        "testcase",
        {"classname": "pgtrial.gate", "name": _xml(f"{head} against {base}"), "time": f"{seconds:.3f}"},
    )
    if failures or errors:
        kind = "failure" if failures else "error"
        element = SubElement(case, kind, {"message": _xml(of_gate.sentence), "type": of_gate.word})
        element.text = _xml(details or of_gate.sentence)
    SubElement(suite, "system-out").text = _xml(details or of_gate.sentence)
    SubElement(suite, "system-err")
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", printable(text))


def _without_zone(created: str) -> str:
    """Returns a time in UTC in the form `2026-11-20T14:12:03`, because the schema does not allow time zones."""
    return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
