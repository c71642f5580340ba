"""`pgtrial history`: keeps the results of many commits, each in comparison with the same reference. There is a history
for each study (the same load, data, server and reference), in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import ValidationError

from pgtrial.cli.gate import run_gate
from pgtrial.cli.gated_study import budget_of, study_of
from pgtrial.cli.output import json_line, line, print_message
from pgtrial.cli.terminal import Terminal, for_terminal
from pgtrial.cli.trust import Allow, Trust, check_trust
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records.history import Entry
from pgtrial.model.study.effects import Effect, effects_of_setups
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.sources import is_commit
from pgtrial.model.units import and_more, plural
from pgtrial.report.build import differences
from pgtrial.report.data import StudyData, read_measured
from pgtrial.report.gate.outcome import Rules
from pgtrial.report.history import Series, entries_of, entry_table, file_name, series_of
from pgtrial.store.bundle import open_study
from pgtrial.store.comparison import with_setups
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import first_line, values_of, write_atomically
from pgtrial.store.histories.lines import Joined
from pgtrial.store.histories.stores import HISTORY, HistoryStore, read_history, store_of
from pgtrial.store.replaceable import PAGE, check_replaceable
from pgtrial.store.sources import with_repository


def history_command(
    action: Annotated[
        Literal["add", "show", "page", "confirm"],
        typer.Argument(
            help="What to do. add: add the results of bundles. show: print the histories. page: write them as a web "
            "page. confirm: measure the latest change of speed again."
        ),
    ],
    bundles: Annotated[
        list[Path] | None,
        typer.Argument(
            help="For add: bundles or study directories. For the other actions: the names of histories; by default all "
            "histories."
        ),
    ] = None,
    *,
    named: Annotated[
        str,
        typer.Option(
            "--in",
            help="The directory of the histories, or a branch of a Git repository that contains them: git:PATH@BRANCH.",
            metavar="PLACE",
        ),
    ] = HISTORY,
    commit: Annotated[
        str | None,
        typer.Option(
            help="For add: the name of the commit. Default: the commit from which the server of the arm was built.",
            show_default=False,
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            help="For add: the time of the commit, e.g. 2026-11-26T12:00Z. It decides where the commit stands in the "
            "history. Default: the time at which the study was planned.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="For page: the file to write. Default: history.html.")
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            help="For confirm: the study file with the load and the data.", metavar="FILE", show_default=False
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help=(
                "For confirm: the time for all blocks. Default: the budget in the study file, or 1h if the file "
                "has none."
            ),
            show_default=False,
        ),
    ] = None,
    trust: Trust = False,
    allow: Allow = None,
    json: Annotated[
        bool, typer.Option("--json", help="For show: print JSON, one line for each series of results.")
    ] = False,
) -> int:
    """Collect the results of many commits, each in comparison with the same reference, and find the commits at which
    the speed changed.

    `add` adds the arms of bundles to the history of their study. All results of a history have the same load, data,
    server and baseline. The baseline is the reference, and each result is a ratio to the reference. Results from
    different machines form separate series. A study that is added twice counts once.

    `confirm` measures the two commits around the latest change against each other: the last commit at the old speed and
    the first one at the new speed. The exit status is that of a gate: 1 the later commit is worse, 0 the later commit
    is not worse, 2 no verdict. If the repository of the commits is not on this machine, pgtrial uses the repository of
    the history. The set-ups come from the history, which somebody else may have written. pgtrial therefore shows what
    they do first, and runs them only after you answer yes at the terminal or give --trust. Programs, connections to
    servers that the set-ups name, changes of this machine and builds from another repository need --allow as well.

    If PLACE is a branch, pgtrial reads the branch without a checkout. `add` makes a commit on the branch, and creates
    the branch if it does not exist. The work tree and the index of the repository are not changed.

    Example: pgtrial history add gate.tar.xz, after a gate whose BASE is a tag: git:.@v1.0
    """
    if action != "add" and (commit is not None or date is not None):
        raise StudyError(
            f"--commit and --date apply only to `pgtrial history add`; leave them out of `pgtrial history {action}`"
        )
    if action == "add":
        _add(bundles or [], store_of(named), commit, _moment(date))
        return 0
    histories = store_of(named)
    known = {
        name: series_of(read_history(histories, name)) for name in _chosen(named, histories.names(), bundles or [])
    }
    known = {name: series for name, series in known.items() if series}
    if action == "confirm":
        return _confirm(known, histories.repository, study, budget, trust=trust, allow=allow)
    if action == "page":
        # imported here, since the modules for charts and templates take a while to import
        from pgtrial.report.static_pages import history_page  # noqa: PLC0415

        page = output or Path("history.html")
        check_replaceable(page, "-o", PAGE)
        write_atomically(page, history_page(known), "-o")
        line(page)
    elif json:
        for name, series in known.items():
            for of_machine in series:
                json_line({"history": name, **of_machine.model_dump(mode="json")})
    else:
        _show(known)
    return 0


def _confirm(
    known: dict[str, list[Series]],
    repository: Path,
    study: str | None,
    budget: str | None,
    *,
    trust: bool,
    allow: str | None,
) -> int:
    """Measures the two commits around the latest change against each other, and returns the exit status. If the
    repository of the commits is not on this machine, they are built from `repository`."""
    changes = [(series, change) for of_study in known.values() for series in of_study for change in series.changes]
    if not changes:
        line("no change of the speed is known in these histories, so there is nothing to confirm")
        return 0
    if study is None:
        raise StudyError("--study FILE is missing; name the study file whose load the two commits run")
    series, change = max(changes, key=lambda pair: pair[1].at)
    line(f"{change.at[:10]}: {change.sentence}")
    pair = series.around(change)
    missing = [entry.commit for entry in pair if not entry.setup]
    if missing:
        raise StudyError(
            f"the history does not contain the set-up of {missing[0]}, so that pgtrial cannot build it; run "
            "`pgtrial gate` on the two commits instead"
        )
    setups = [(_arm_of(entry), with_repository(entry.setup, repository)) for entry in pair]
    why = "is what somebody wrote into the history"
    what = f"the set-up of {setups[0][0]} and {setups[1][0]}"
    check_trust(what, _effects(setups, repository), trust=trust, allow=allow, why=why)
    return run_gate(study_of(study, with_setups(setups), budget_of(budget)), Rules())


def _effects(setups: Sequence[tuple[str, Mapping[str, Any]]], repository: Path) -> list[Effect]:
    """Returns the effects of the set-ups of a history: everything that they do to this machine or to a server, such as
    starting a program. The user must agree to these effects. Building a commit of the history's own repository needs no
    agreement and is left out."""
    try:
        known = {arm: SetUp.model_validate(setup) for arm, setup in setups}
    except ValidationError as error:
        raise StudyError(
            f"the set-up of a commit in the history is not valid: {first_line(error)}; run `pgtrial gate` on the two "
            "commits instead"
        ) from None
    own = f"git:{repository.absolute()}@"
    effects = effects_of_setups(known)
    return [effect for effect in effects if effect.kind != "sources" or own not in effect.text]


def _arm_of(entry: Entry) -> str:
    """Returns the name of a commit's arm: the first digits of the commit. If both a server and an extension were built,
    the name has the first digits of both commits."""
    return " + ".join(part[:10] if is_commit(part) else part for part in entry.commit.split(" + "))


def _add(bundles: Sequence[Path], store: HistoryStore, commit: str | None, at: str | None) -> None:
    if not bundles:
        raise StudyError("name the bundles whose results `pgtrial history add` adds")
    if commit is not None and (not commit.strip() or not commit.isprintable() or len(bundles) > 1):
        raise StudyError(
            "--commit takes the name of one commit, in printable characters, and needs a single bundle; add each "
            "bundle by a command of its own, or leave --commit out"
        )
    for bundle in bundles:
        with open_study(bundle) as study, values_of(bundle):
            data = read_measured(study)
            _check_verdict(bundle, study, data)
            name, entries = file_name(study.spec), entries_of(data, commit=commit, at=at)
        if commit is not None and len(entries) > 1:
            raise StudyError(
                f"{bundle} has {len(entries)} arms besides its baseline, so that --commit would name all of them; "
                "leave --commit out"
            )
        result = store.add(name, entries)
        what = [plural(result.new, "new commit")] if result.new or not result.replaced else []
        what += [f"{plural(result.replaced, 'commit')} measured further"] if result.replaced else []
        line(f"{store.file(name)}: {', '.join(what)}")
        for sentence in _begun(bundle, store, name, entries, result):
            print_message(sentence)
        for series in series_of(result.entries):
            if any(entry in entries for entry in series.entries):
                for text in _changes_in_words(series):
                    line(text)


def _check_verdict(bundle: Path, study: StudyDirectory, data: StudyData) -> None:
    """Raises StoreError for a study that was edited, so that its stored verdict is not the verdict that follows from
    its trials."""
    if (study.path / "verdict.json").exists() and (unlike := differences(study, data.result)):
        cure = (
            f"`pgtrial report {bundle}` writes the verdict again"
            if bundle.is_dir()
            else "get an unchanged copy of the bundle from its author"
        )
        raise StoreError(
            f"{bundle} is not added, since its verdict does not follow from its trials: {unlike[0]}; {cure}"
        )


def _begun(bundle: Path, store: HistoryStore, name: str, entries: Sequence[Entry], result: Joined) -> Iterator[str]:
    """Yields a sentence if a bundle (a packed study) starts a new history although the directory has other histories,
    or a new series although its history has series of other machines. The sentence says why its results do not fit the
    existing ones."""
    earlier = [entry for entry in result.entries if entry not in entries]
    machines = list(dict.fromkeys(entry.machine for entry in earlier))
    if not result.new:
        return
    if not earlier and (others := [other for other in store.names() if other != name]):
        yield f"{bundle} starts a new history, since its load, data, server or reference differs from {_few(others)}"
    if earlier and entries[0].machine not in machines:
        yield (
            f"{bundle} starts a new series: it ran on {entries[0].machine}, and the history has results of "
            f"{'; '.join(machines)}"
        )


def _few(names: Sequence[str]) -> str:
    """Returns up to three names as text, followed by the number of further names."""
    return ", ".join(and_more(names[:3], len(names)))


def _show(known: dict[str, list[Series]]) -> None:
    console = Terminal()
    for name, series in known.items():
        for of_machine in series:
            last = of_machine.entries[-1]
            console.print_line(f"{name}: {last.measure}, {last.load}, against {last.reference}; {of_machine.machine}")
            console.print(for_terminal(entry_table(of_machine.entries, of_machine.changes)))
            for text in _changes_in_words(of_machine):
                console.print_line(text)


def _changes_in_words(series: Series) -> Iterator[str]:
    """Yields a line for each change of speed in a series of commits. If there is a change, a further line says how
    often a change is found by chance and how the user can confirm it."""
    for change in series.changes:
        yield f"{change.at[:10]}: {change.sentence}"
    if series.changes:
        yield (
            "a series whose speed did not change shows a change by chance 5% of the time that somebody looks at it; if "
            "somebody looks after each of 30 commits, 22% of such series show a change at some time; to confirm the "
            "last change, measure both commits around it again: pgtrial history confirm --study FILE"
        )


def _chosen(named: str, known: Sequence[str], names: Sequence[Path]) -> list[str]:
    """Returns the histories that the user names, or all histories if the user names none. Raises StudyError if there
    are no histories, or if a named history does not exist."""
    if not known:
        raise StudyError(f"there is no history in {named}; `pgtrial history add BUNDLE` starts one")
    for name in map(str, names):
        if name not in known:
            raise StudyError(f"there is no history with the name {name}; the names are {', '.join(known)}")
    return [str(name) for name in names] or list(known)


def _moment(date: str | None) -> str | None:
    """Returns a time in UTC, in the form that histories store. Raises StudyError if the text is not a time."""
    if date is None:
        return None
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        raise StudyError(f"--date {quoted(date)} is not a time; write for example 2026-11-26T12:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
