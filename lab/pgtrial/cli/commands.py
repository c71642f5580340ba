"""The base class of all pgtrial commands. It refuses an option that takes one value and is given twice, and it prints
which signal ended a command.

Typer by itself would use the last value, so that a user who wrote `--query A --query B` would not learn that A is not
run. Typer would also end a command at a signal with status 130 and without a message.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from pgtrial.cli.output import stopped
from pgtrial.machines.interrupt import Interrupted
from pgtrial.model.errors import StudyError
from pgtrial.model.query_forms import KEYS_OF_SCRIPTS, TWO_FORMS

_WITH_COMMAS = {"clients": "1,8", "rate": "500,1000", "scale": "10,100", "metrics": "p99,response", "planted": "3%,5%"}
"""The options that take several values in one list, separated by commas. The value of each is an example of such a
list, which the message about a repeated option shows."""

_FORMER = {
    ("run", "--resume"): "name the study's directory in place of its file, as in `pgtrial run results/NAME-DATE-TIME`",
    ("run", "--blocks"): "--more takes a number of blocks, as in --more 12",
    **{(command, "--jobs"): "it is called --threads" for command in ("compare", "capacity")},
    **{(command, "--pack"): "it is called --share-machines" for command in ("run", "compare", "plan")},
}
"""The options that earlier versions of pgtrial had, by command and option. The value of each is the advice that the
error message gives to a user who still writes the option."""


class Root(TyperGroup):
    """The program `pgtrial` itself, which has the commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # Any: the types are private to typer
        """Returns the options of the program, with --help."""
        return _without_values(super().get_params(ctx))


class Command(TyperCommand):
    """A command of pgtrial that is written in Python. The load engine carries out the other commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # Any: the types are private to typer
        """Returns the arguments and options of the command, with --help."""
        return _without_values(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # Any: the type is private to typer
        """Parses the arguments. Raises StudyError for an option that only earlier versions of pgtrial had, and for an
        option that takes one value but is given twice."""
        if not ctx.resilient_parsing:
            for word in args:
                if (cure := _FORMER.get((ctx.info_name, word.partition("=")[0]))) is not None:
                    raise StudyError(
                        f"`pgtrial {ctx.info_name}` no longer has the option {word.partition('=')[0]}; {cure}"
                    )
            _, _, found = self.make_parser(ctx).parse_args(args=list(args))
            repeated = [option for option, times in Counter(found).items() if times > 1]
            for option in repeated:
                if isinstance(option, TyperOption) and not option.multiple and not option.is_flag:
                    raise StudyError(_refusal(option))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # Any: the type is private to typer
        """Runs the command and returns its exit status. If a signal ended the command, the status is 128 + the number
        of the signal."""
        try:
            return super().invoke(ctx)
        except Interrupted as interrupted:
            return stopped(interrupted)
        except KeyboardInterrupt:
            return stopped(Interrupted(signal.SIGINT))


def _without_values(parameters: Sequence[Any]) -> list[Any]:
    """Returns the parameters, in which options that take no value have an empty text in place of the type of a value.
    The help of Typer by itself writes `--all <bool>`, as if one had to write `--all true`."""
    for one in parameters:
        if isinstance(one, TyperOption) and one.is_flag:
            one.metavar = ""
    return list(parameters)


def _refusal(option: TyperOption) -> str:
    written = option.opts[0]
    if option.name in _WITH_COMMAS:
        cure = f"write all values in one, such as {written} {_WITH_COMMAS[option.name]}"
    elif option.name in KEYS_OF_SCRIPTS:
        cure = TWO_FORMS
    else:
        cure = "leave one out"
    return f"{written} takes one value, but is given more than once; {cure}"
