"""The exceptions whose messages pgtrial shows to the user. Each message is one sentence that says what happened, where,
and what to do now."""

from __future__ import annotations

import errno
from collections.abc import Callable

from pgtrial.model.marks import in_toml, keys_in
from pgtrial.model.tokens import without_tokens

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errno values of a full disk and of an exhausted disk quota."""

ERROR_STATUS = 3
"""The exit status of every command that ends with an error. The statuses 1 and 2 are results of a study: a regression,
and no verdict."""


class PgtrialError(Exception):
    """The base class of all errors that pgtrial shows as one sentence and never as a traceback.

    Passwords and tokens are cut from the sentence, because pgtrial also stores it, and programs read it. Where the
    sentence names a key of the study file, it contains a mark, which is a placeholder for the key
    (`pgtrial.model.marks`). `str(error)` replaces each mark by the key as the study file writes it. `f"{error}"` keeps
    the marks, so that a message that quotes this error still contains them.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(without_tokens(part) if isinstance(part, str) else part for part in arguments))

    def __str__(self) -> str:
        return in_toml(super().__str__())

    def __format__(self, form: str) -> str:
        return format(super().__str__(), form)

    @property
    def keys(self) -> tuple[str, ...]:
        """Returns the paths of the keys of the study file that the message names, such as `load.suite.cache`."""
        return tuple(keys_in(super().__str__()))

    def reword(self, reword: Callable[[str], str]) -> None:
        """Replaces the message, with its marks, by the text that the function `reword` returns for it."""
        self.args = (reword(f"{self}"),)


class StudyError(PgtrialError):
    """The study file or the command line asks for something impossible. The error is raised before any trial runs."""


class BudgetError(StudyError):
    """The time budget of a study is too short for any verdict. `needed_s` is a budget in seconds that is long
    enough."""

    def __init__(self, sentence: str, needed_s: float) -> None:
        super().__init__(sentence)
        self.needed_s = needed_s


class ArmError(PgtrialError):
    """The server of an arm could not be made, reached or started, or its former state could not be restored."""


class StartError(ArmError):
    """A server did not start, or did not accept connections in time."""


class TrialError(PgtrialError):
    """A trial failed. The trial gets the worst possible rank in the comparison, and the study continues."""


class NameTaken(TrialError):
    """A job failed because the server already has an object with a name that the job creates. pgtrial then does not
    undo the job, because that could drop the existing object."""


class StoreError(PgtrialError):
    """A study directory cannot be read or written."""


def one_line(error: BaseException) -> str:
    """Returns an error's message on one line, without passwords and tokens. If the error has no message, returns the
    name of its type."""
    return without_tokens(" ".join(str(error).split())) or type(error).__name__
