"""Prints messages about faults of pgtrial itself: what happened, and how and where the user can report it.

Errors that the user can correct are PgtrialErrors; their messages do not come from this module.
"""

from __future__ import annotations

from pgtrial.cli.invocation import Invocation
from pgtrial.cli.output import print_traceback
from pgtrial.model.errors import one_line


def described(error: BaseException) -> str:
    """Returns the type and the message of an unexpected error, in one line."""
    return f"{type(error).__name__}: {one_line(error)}"


def how_to_report(what: str) -> str:
    """Returns the end of a sentence that says how and where the user can report a fault of pgtrial. The report should
    contain the traceback, which `what` (such as `the same command`) prints if the user runs it again with --debug.

    If the user has already given --debug, the traceback is printed above the sentence, and the sentence refers to it.
    """
    traceback = "the traceback above" if Invocation.tracebacks else f"what {what} prints with --debug at its end"
    return (
        "this is a fault of pgtrial; report it as an issue, by the form `A defect`, in the repository from which you "
        f"have pgtrial, with {traceback}, the first lines of `pgtrial facts`, and the bundle of the study if there is "
        "one (`pgtrial bundle DIRECTORY`)"
    )


def show_traceback(error: BaseException) -> None:
    """Prints the traceback of an error if the user has given --debug, and otherwise nothing."""
    if Invocation.tracebacks:
        print_traceback(error)
