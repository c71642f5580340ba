"""Tells a person that pgtrial itself is at fault: what happened, and how and where they report it.

Errors that a user can mend are PgtrialErrors and do not pass here.
"""

from __future__ import annotations

from pgtrial.cli.invocation import Invocation
from pgtrial.cli.output import print_traceback
from pgtrial.model.errors import one_line


def described(error: BaseException) -> str:
    """Returns the type and the message of an error that is a fault of pgtrial, in one line."""
    return f"{type(error).__name__}: {one_line(error)}"


def how_to_report(what: str) -> str:
    """Returns how and where to report a fault, for the end of a sentence; `what` is what is run again: `the command`.

    With --debug the traceback is printed first, and the sentence refers to it.
    """
    traceback = "the traceback above" if Invocation.tracebacks else f"what {what} prints with --debug at its end"
    return (
        "this is a fault of pgtrial; report it as an issue, by the form `A defect`, in the repository from which you "
        f"have pgtrial, with {traceback}, the first lines of `pgtrial facts`, and the bundle of the study if there is "
        "one (`pgtrial bundle DIRECTORY`)"
    )


def show_traceback(error: BaseException) -> None:
    """Prints where an error comes from, if --debug asks for it."""
    if Invocation.tracebacks:
        print_traceback(error)
