"""Writes the report of a study, which consists of verdict.json, report.md and report.html. Also compares a stored
verdict with the verdict that follows from the trials."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

from pgtrial import __version__
from pgtrial.files.reading import read_bytes
from pgtrial.model.errors import FULL, StoreError
from pgtrial.model.records.claims import SIDES
from pgtrial.model.records.results import JUDGED_BLOCKS, StudyResult
from pgtrial.report.data import StudyData, read_data, read_measured
from pgtrial.report.published import beside
from pgtrial.store.directory import StudyDirectory
from pgtrial.verdict.rules.case import listed

Form = Literal["md", "html"]

_ABSENT = "absent"


def render(directory: StudyDirectory, form: Form) -> str:
    """Returns the report of a study as one text, in Markdown or HTML. No file is written. Raises StoreError."""
    return _writers(read_data(directory))[form]()


def short_report(directory: StudyDirectory) -> str:
    """Returns a short report as Markdown, with the verdict, and with the throughput, differences, latencies and
    failures of the arms. No file is written. Raises StoreError."""
    from pgtrial.report import markdown  # noqa: PLC0415 - as in _writers
    from pgtrial.report.sections import SHORT, sections  # noqa: PLC0415

    data = read_data(directory)
    return markdown.render(data, sections(data, SHORT), remarks=False)


def report_for_mail(directory: StudyDirectory) -> str:
    """Returns the result of a study as plain text for a mailing list. No file is written. Raises StoreError."""
    from pgtrial.report import mail  # noqa: PLC0415 - as in _writers
    from pgtrial.report.sections import MAIL, sections  # noqa: PLC0415

    data = read_data(directory)
    return mail.render(data, sections(data, MAIL))


def _again(study: StudyDirectory) -> str:
    """Returns the command with which a user writes the report of a study again."""
    return f"pgtrial report {shlex.quote(str(study.path))}"


class ReportNotWrittenError(StoreError):
    """A report could not be written, for example because the disk is full."""

    def __init__(self, result: StudyResult, names: Sequence[str], directory: StudyDirectory, error: StoreError) -> None:
        what = str(error).partition("; ")[0]
        is_full = getattr(error.__cause__, "errno", None) in FULL
        cure = "free some space" if is_full else f"make {directory.path} writable"
        super().__init__(
            f"{what}; {listed(names)} {'are' if len(names) > 1 else 'is'} not written, and nothing measured is lost: "
            f"{cure}, then `{_again(directory)}` writes the report"
        )
        self.result = result
        """The result that the report would have shown."""


def build_report(directory: StudyDirectory) -> StudyResult:
    """Computes the result from the stored trials, writes the report into the study directory, and returns the result.

    The same files always give the same report. Raises StoreError if a file of the study cannot be read, and
    ReportNotWrittenError if the result was computed but could not be written.
    """
    data = read_data(directory)
    writers = _writers(data)
    published = beside(data)
    files: dict[str, Callable[[], str]] = {"verdict.json": lambda: data.result.model_dump_json(indent=1) + "\n"}
    if published is not None:
        files["published.json"] = lambda: published.model_dump_json(indent=1) + "\n"
    files |= {"report.md": writers["md"], "report.html": writers["html"]}
    for written, (name, text) in enumerate(files.items()):
        try:
            directory.write_file(name, text())
        except StoreError as error:
            raise ReportNotWrittenError(data.result, list(files)[written:], directory, error) from error
    return data.result


def _writers(data: StudyData) -> dict[Form, Callable[[], str]]:
    # imported here: the modules for charts and pages take a third of a second to import, which would delay the first
    # trial
    from pgtrial.report import html, markdown  # noqa: PLC0415
    from pgtrial.report.sections import sections  # noqa: PLC0415

    parts = sections(data)
    return {"md": partial(markdown.render, data, parts), "html": partial(html.render, data, parts)}


def differences(study: StudyDirectory, result: StudyResult | None = None) -> list[str]:
    """Returns the differences between verdict.json and the verdict that follows from the trials. The result is empty if
    both agree. Raises StoreError.

    `result` is the verdict that follows from the trials, if the caller has computed it already.

    Verdicts, intervals and numbers are always compared. Sentences are compared only if this version of pgtrial made the
    study, because other versions may word them differently.
    """
    path = study.path / "verdict.json"
    try:
        stored = json.loads(read_bytes(path))
    except FileNotFoundError:
        raise StoreError(f"{study.path} has no verdict.json; `{_again(study)}` writes it") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged; `{_again(study)}` writes it again") from error
    computed = (result or read_measured(study).result).model_dump(mode="json")
    if isinstance(stored, dict):
        for key in _unknown_then(stored, computed):
            stored.pop(key, None)
            computed.pop(key, None)
    if isinstance(stored, dict) and JUDGED_BLOCKS & stored.keys():
        for key in (*JUDGED_BLOCKS, "notes"):
            stored.pop(key, None)
            computed.pop(key, None)
    if isinstance(stored, dict) and computed["pgtrial"] != __version__:
        stored, computed = (_without_sentences(result) for result in (stored, computed))
    elif isinstance(stored, dict):
        stored = _with_options_of_today(stored)
    return [
        f"{path} is {_short(one)} in verdict.json and {_short(other)} by the trials"
        for path, one, other in _unequal("", stored, computed)
    ]


def _unknown_then(stored: dict[str, Any], computed: dict[str, Any]) -> set[str]:
    """Returns the keys of a result that cannot be compared with a stored verdict, because an older version of pgtrial
    wrote the verdict. That version fitted no curves. It also did not split the load points at a cliff, which is a size
    of the data above which the throughput falls, but averaged over both sides of it."""
    missing: set[str] = {key for key in ("curve", "scaling", "cliffs") if key in computed and key not in stored}
    if not missing & {"scaling", "cliffs"}:
        return missing
    split = any(part.get("regime") in SIDES for claim in computed["primary"] for part in claim.get("parts", []))
    return missing | {"notes"} | ({"primary", "sentences", "moved"} if split else set())


_SENTENCES = ("sentences", "notes", "moved")


def _without_sentences(result: dict[str, Any]) -> dict[str, Any]:
    findings = [
        {key: value for key, value in finding.items() if key not in ("message", "cure")}
        if isinstance(finding, dict)
        else finding
        for finding in result.get("findings", [])
    ]
    kept = {key: value for key, value in result.items() if key not in _SENTENCES}
    return kept | ({"findings": findings} if "findings" in result else {})


_FORMER_OPTION = re.compile(r"--blocks (?=\d+\))")
"""Matches the former option `--blocks` in the sentences of stored results. It is called `--more` now."""


def _with_options_of_today(result: dict[str, Any]) -> dict[str, Any]:
    """Returns a stored result in which former names of options in sentences are replaced by their present names."""
    of_today = {
        key: [_FORMER_OPTION.sub("--more ", line) if isinstance(line, str) else line for line in lines]
        for key in _SENTENCES
        if isinstance(lines := result.get(key), list)
    }
    return result | of_today


def _unequal(path: str, stored: Any, computed: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields the smallest values that differ between two JSON values, each with its path, such as
    `primary.0.verdict`."""
    if isinstance(stored, list) and isinstance(computed, list):
        stored, computed = dict(enumerate(stored)), dict(enumerate(computed))
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in {**computed, **stored}:
            inner = f"{path}.{key}".lstrip(".")
            yield from _unequal(inner, stored.get(key, _ABSENT), computed.get(key, _ABSENT))
    elif not _equal(stored, computed):
        yield path, stored, computed


_LAST_DIGITS = 1e-9
"""Two numbers count as equal up to this relative difference, because processors differ in the last digits of a
logarithm."""


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_LAST_DIGITS, abs_tol=_LAST_DIGITS)
    return bool(one == other)


def _short(value: Any) -> str:
    text = value if value is _ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:76]} ..."
