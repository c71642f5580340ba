"""The one family of errors that a user may see: a sentence saying what happened, where, and what to do now."""

from __future__ import annotations

import errno
from collections.abc import Callable

from pgtrial.model.marks import in_toml, keys_in
from pgtrial.model.tokens import without_tokens

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of the system's errors for a full disk and for an exhausted quota."""

ERROR_STATUS = 3
"""Exit status of every command that ends with an error. 1 and 2 are results: a regression, no verdict."""


class PgtrialError(Exception):
    """Base of all errors that are shown as one sentence and never as a traceback.

    Passwords and tokens are cut from the sentence: it is also stored, and read by programs. The sentence names keys of
    the study file by marks (`pgtrial.model.marks`). `str(error)` has the words of the study file in their place;
    `f"{error}"` keeps the marks, so that a message that quotes the error still names its keys as data.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_tokens(part) if isinstance(part, str) else part for part in arguments))

    def __str__(self) -> str:
        return in_toml(super().__str__())

    def __format__(self, form: str) -> str:
        return format(super().__str__(), form)

    @property
    def keys(self) -> tuple[str, ...]:
        """Returns the paths of the keys that the sentence names by marks, such as `load.suite.cache`."""
        return tuple(keys_in(super().__str__()))

    def reword(self, reword: Callable[[str], str]) -> None:
        """Replaces the message by what the function `reword` returns for it."""
        self.args = (reword(f"{self}"),)


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
