"""The manual pages: the lab's from its table of options, the engine's from what its front ends answer to --help."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from typer.main import get_command

from distribution import roff
from distribution.running import run
from pgtrial.cli import COMMANDS, application

_FRONT_END = re.compile(r"^  pgtrial-engine ([a-z-]+) \[.*? {2,}(\S.*?); see ", re.MULTILINE)
_OPTION = re.compile(r"^ {2,4}(-.*?)(?: {2,}(\S.*))?$")
_CLOSE_OPTION = re.compile(r"^(--\S+) (\S.*)$")
"""sysbench aligns the descriptions to its longest option, one space behind it."""

_OWN_LINE = re.compile(r"^(\w: |\()")
"""Lines of a description that pgbench begins anew."""


def manual_pages(engine: Path) -> dict[str, str]:
    """The text of each page by its name. The engine is asked for its help."""
    help_text = run([engine, "--help"])
    summaries = dict(_FRONT_END.findall(help_text))
    pages = {"pgtrial": _lab_page(list(summaries)), "pgtrial-engine": _overview(help_text, list(summaries))}
    for front_end, summary in summaries.items():
        name = f"pgtrial-engine-{front_end}"
        head = roff.title(name, f"the load engine of pgtrial: {summary}")
        body = _from_help(run([engine, front_end, "--help"]))
        pages[name] = roff.page([*head, *body, *_see_also("pgtrial", "pgtrial-engine")])
    return pages


def _lab_page(front_ends: list[str]) -> str:
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
    """The arguments and options of a Typer command."""
    context = command.make_context(called, [], resilient_parsing=True)  # type: ignore[attr-defined]
    for parameter in command.get_params(context):  # type: ignore[attr-defined]
        record = parameter.get_help_record(context)
        if record is not None:
            yield from roff.option(record[0], " ".join(record[1].split()))


def _overview(help_text: str, front_ends: list[str]) -> str:
    head = roff.title("pgtrial-engine", "makes a load on PostgreSQL and measures it")
    return roff.page(
        [*head, *_from_help(help_text), *_see_also("pgtrial", *(f"pgtrial-engine-{n}" for n in front_ends))]
    )


def _see_also(*names: str) -> list[str]:
    return [*roff.section("see also"), *roff.paragraph(", ".join(f"`{name}`(1)" for name in names))]


def _from_help(text: str) -> Iterator[str]:
    """A program's help as sections of a page, in a page's order: how it is called, what it is, its options."""
    blocks = list(_blocks(text))
    place, about = "synopsis", []
    while blocks and blocks[0][0] == "paragraph":
        about += roff.paragraph(blocks.pop(0)[1])
    for kind, *parts in blocks:
        if kind == "heading":
            if place == "synopsis" and parts[0] != "synopsis":
                yield from _about(about)
            place = parts[0]
            yield from roff.section(place)
            continue
        if place == "synopsis" and kind in ("paragraph", "option"):
            place = "description"
            yield from _about(about)
        if place == "description" and kind == "option":
            place = "options"
            yield from roff.section(place)
        yield from _BLOCKS[kind](*parts)


_BLOCKS: dict[str, Callable[..., list[str]]] = {
    "paragraph": roff.paragraph,
    "option": roff.option,
    "verbatim": lambda words: roff.verbatim(words.splitlines()),
}


def _about(paragraphs: list[str]) -> list[str]:
    return [*roff.section("description"), *paragraphs]


def _blocks(text: str) -> Iterator[tuple[str, ...]]:
    """The kind of each part of a help text, and its words."""
    lines = text.rstrip().splitlines()
    while lines:
        line = lines.pop(0)
        if line.endswith(":") and line[0] != " " and (not lines or lines[0][:1] in ("", " ")):
            yield "heading", "synopsis" if line == "Usage:" else line.removesuffix(":")
        elif line.lstrip().startswith("-") and (matched := _OPTION.match(line)):
            names, words = matched[1], matched[2] or ""
            if not words and (close := _CLOSE_OPTION.match(names)):
                names, words = close[1], close[2]
            yield "option", names, _description(words, lines)
        elif line.startswith(" "):
            more = _while(lines, lambda one: one.startswith("  ") and not one.lstrip().startswith("-"))
            yield "verbatim", "\n".join(one[2:] for one in (line, *more))
        elif line:
            yield "paragraph", " ".join([line, *_while(lines, lambda one: one[:1] not in ("", " "))])


def _description(words: str, lines: list[str]) -> str:
    """What an option does: the words beside it and the indented lines below."""
    told = words
    for line in (one.strip() for one in _while(lines, lambda one: one.startswith(" " * 6))):
        told += f"\n{line}" if _OWN_LINE.match(line) else f" {line}"
    return told.strip()


def _while(lines: list[str], wanted: Callable[[str], bool]) -> Iterator[str]:
    """Take lines from the front as long as they are wanted."""
    while lines and wanted(lines[0]):
        yield lines.pop(0)
