"""The one family of errors that a user may see: a sentence saying what happened, where, and what to do now."""

from __future__ import annotations

from pgtrial.model.tokens import without_tokens

ERROR_STATUS = 3
"""Exit status of every command that ends with an error. 1 and 2 are results: a regression, no verdict."""


class PgtrialError(Exception):
    """Base of all errors that are shown as one sentence and never as a traceback.

    Passwords and tokens are cut from the sentence: it is also stored, and read by programs.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_tokens(part) if isinstance(part, str) else part for part in arguments))


class StudyError(PgtrialError):
    """The study file or the command line asks for something impossible. It is raised before anything runs."""


class BudgetError(StudyError):
    """The budget is too short for any verdict. `needed_s` is a budget that is long enough for one, seconds."""

    def __init__(self, sentence: str, needed_s: float) -> None:
        super().__init__(sentence)
        self.needed_s = needed_s


class ArmError(PgtrialError):
    """An arm could not be made, reached, started or put back."""


class StartError(ArmError):
    """A server did not start, or did not take connections in time."""


class TrialError(PgtrialError):
    """A trial failed. The study counts it as the worst possible rank and goes on."""


class NameTaken(TrialError):
    """A job failed because the server has an object with a name that the job creates: undoing the job could drop that
    object."""


class StoreError(PgtrialError):
    """A study directory cannot be read or written."""


def one_line(error: BaseException) -> str:
    """Returns an error's message on one line, without passwords and tokens, or the name of its type if it has no
    message."""
    return without_tokens(" ".join(str(error).split())) or type(error).__name__
