"""The manual pages: the lab's from its table of options, the engine's from the manual that it gives as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from typer.main import get_command

from distribution import roff
from distribution.engine_manual import FrontEnd, Option, engine_manual
from pgtrial.cli import COMMANDS, application


def manual_pages(engine: Path) -> dict[str, str]:
    """Returns the text of each manual page by its name. The options of the engine are those that the engine prints
    itself."""
    manual = engine_manual(engine)
    names = [front_end.name for front_end in manual.front_ends]
    overview = [
        *roff.title("pgtrial-engine", "makes a load on PostgreSQL and measures it"),
        *roff.section("synopsis"),
        *roff.verbatim(manual.usage),
        *roff.section("description"),
        *_text(manual.about),
        *_text(manual.notes),
        *_see_also("pgtrial", *(f"pgtrial-engine-{name}" for name in names)),
    ]
    pages = {"pgtrial": _lab_page(names), "pgtrial-engine": roff.page(overview)}
    for front_end in manual.front_ends:
        pages[f"pgtrial-engine-{front_end.name}"] = _front_end_page(front_end)
    return pages


def _front_end_page(front_end: FrontEnd) -> str:
    name = f"pgtrial-engine-{front_end.name}"
    lines = roff.title(name, f"the load engine of pgtrial: {front_end.summary}")
    lines += [*roff.section("synopsis"), *roff.verbatim(front_end.usage)]
    lines += [*roff.section("description"), *_text(front_end.about), *_text(front_end.description)]
    lines += roff.section("options")
    for group, options in groupby(front_end.options, key=lambda option: option.group):
        if group:
            lines += roff.subsection(group.removesuffix(":"))
        for option in options:
            lines += roff.option(_names(option), option.help)
    lines += [*roff.section("notes"), *_text(front_end.notes)]
    return roff.page([*lines, *_see_also("pgtrial", "pgtrial-engine")])


def _names(option: Option) -> str:
    """Returns an option with its argument, as `--help` shows it."""
    short = f"-{option.short}, " if option.short else ""
    if option.argument is None:
        return f"{short}--{option.long}"
    argument = f"[={option.argument}]" if option.argument_is_optional else f"={option.argument}"
    return f"{short}--{option.long}{argument}"


def _text(text: str) -> Iterator[str]:
    """Paragraphs with an empty line between them; lines that begin with a space stand as they are."""
    for paragraph in text.split("\n\n") if text else ():
        for is_verbatim, lines in groupby(paragraph.splitlines(), key=lambda line: line.startswith(" ")):
            if is_verbatim:
                yield from roff.verbatim(line.removeprefix("  ") for line in lines)
            else:
                yield from roff.paragraph(" ".join(lines))


def _lab_page(front_ends: Sequence[str]) -> str:
    whole = get_command(application(None))
    described = (whole.help or "").rstrip(".")
    lines = roff.title("pgtrial", described[:1].lower() + described[1:])
    lines += [*roff.section("synopsis"), *roff.verbatim(["pgtrial COMMAND [OPTIONS] [ARGUMENTS]"])]
    lines += [*roff.section("options"), *_records(whole, "pgtrial"), *roff.section("commands")]
    for name, (module, summary) in COMMANDS.items():
        lines += roff.subsection(f"pgtrial {name}")
        if module is None:
            lines += roff.paragraph(f"{summary} See `pgtrial-engine-{name}`(1).")
            continue
        command = get_command(application(name)).commands[name]  # type: ignore[attr-defined]
        usage = command.make_context(f"pgtrial {name}", [], resilient_parsing=True).get_usage()
        lines += roff.verbatim([usage.removeprefix("Usage: ")])
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            lines += roff.paragraph(" ".join(paragraph.split()))
        lines += _records(command, f"pgtrial {name}")
    return roff.page([*lines, *_see_also("pgtrial-engine", *(f"pgtrial-engine-{name}" for name in front_ends))])


def _records(command: object, called: str) -> Iterator[str]:
    """Yields the arguments and options of a Typer command."""
    context = command.make_context(called, [], resilient_parsing=True)  # type: ignore[attr-defined]
    for parameter in command.get_params(context):  # type: ignore[attr-defined]
        record = parameter.get_help_record(context)
        if record is not None:
            yield from roff.option(record[0], " ".join(record[1].split()))


def _see_also(*names: str) -> list[str]:
    return [*roff.section("see also"), *roff.paragraph(", ".join(f"`{name}`(1)" for name in names))]
