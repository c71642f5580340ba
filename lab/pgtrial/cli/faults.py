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
    """Returns the end of a sentence that says how and where to report a fault of pgtrial. `what` names what the user
    runs again for the traceback, such as `the same command`.

    With --debug the traceback is printed before the sentence, and the sentence refers to it.
    """
    traceback = "the traceback above" if Invocation.tracebacks else f"what {what} prints with --debug at its end"
    return (
        "this is a fault of pgtrial; report it as an issue, by the form `A defect`, in the repository from which you "
        f"have pgtrial, with {traceback}, the first lines of `pgtrial facts`, and the bundle of the study if there is "
        "one (`pgtrial bundle DIRECTORY`)"
    )


def show_traceback(error: BaseException) -> None:
    """Prints the traceback of an error, if the user has given --debug."""
    if Invocation.tracebacks:
        print_traceback(error)
