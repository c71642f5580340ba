"""The `pgtrial` command line. Each command is in a small module of this package, and pgtrial imports only the module of
the command that the user calls.

A new command needs two things: a function `NAME_command` in Typer's style in one of the modules, and a line in
COMMANDS.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import stat
import sys
from typing import NoReturn

import typer

from pgtrial import __version__
from pgtrial.cli.commands import Command, Root
from pgtrial.cli.faults import described, how_to_report, show_traceback
from pgtrial.cli.invocation import Invocation
from pgtrial.cli.output import discard, line, print_message, print_notes, warn
from pgtrial.files.trust import without_weak_folders
from pgtrial.model.errors import ERROR_STATUS, FULL, PgtrialError, StudyError

COMMANDS = {
    "demo": ("run", "Compare synchronous_commit on with off on this machine, in about three minutes."),
    "run": ("run", "Run a study, or go on with an interrupted one."),
    "stop": ("run", "Make a running study end after its current block."),
    "compare": ("compare", "Compare set-ups that are named on the command line, without a study file."),
    "upgrade": ("upgrade", "Rehearse an upgrade: what breaks, gets other rows, gets another plan, gets slower."),
    "screen": ("screen", "Find out which of many settings matter, in one study."),
    "gate": ("gate", "Check in continuous integration that a change makes nothing slower."),
    "bisect": ("bisect", "Find the commit that made PostgreSQL or an extension slower."),
    "capacity": ("capacity", "Compare the highest rates at which set-ups answer within a limit."),
    "selftest": ("selftest", "Measure how small a difference pgtrial can find on this machine."),
    "plan": ("plan", "Show what a study would do and how long it takes, without running it."),
    "verdict": ("stored", "Print the verdict of a study. The exit status is 1 after a regression."),
    "judge": ("judge", "Judge numbers that another program has measured."),
    "report": ("stored", "Write the report of a study again from its stored trials."),
    "bundle": ("stored", "Pack a study into one compressed file (a bundle)."),
    "verify": ("stored", "Check that a bundle is complete and that its verdict follows from its trials."),
    "rerun": ("rerun", "Run the study of a bundle on this machine, and compare the two results."),
    "history": ("history", "Collect the results of many commits, and find the commits at which the speed changed."),
    "publish": ("publish", "Write static web pages with the results of studies."),
    "serve": ("stored", "Show studies in a browser, and running studies live."),
    "sql": ("sql", "Run SQL over the trials, seconds and verdicts of many studies."),
    "metrics": ("stored", "Import the metrics of a cloud provider for the trials of a study."),
    "facts": ("facts", "Show the hardware and software of this machine or of a study."),
    "pack": ("pack", "Check a pack (a workload in a folder of SQL files), or list the packs of pgtrial."),
    "list": ("here", "List the PostgreSQL servers, workloads and bundled studies of this machine."),
    "cleanup": ("here", "Remove servers, files and changes that interrupted studies have left behind."),
    "pgbench": (None, "Run the load engine as pgbench, with the arguments of pgbench."),
    "sysbench": (None, "Run the load engine as sysbench for PostgreSQL, with the arguments of sysbench."),
    "order-entry": (None, "Load, run and check the transactions of TPC-C with the load engine (see its --help)."),
    "generate": (None, "Make the tables of a suite of queries with the load engine (see its --help)."),
    "tasks": (None, "Run the tasks of an application on pools of connections (see its --help)."),
    "capture": (None, "Read a server's sessions from its logs into a capture that can be replayed (see its --help)."),
    "replay": (None, "Replay the sessions of a capture with the load engine (see its --help)."),
}
"""The module and the short help of each command, by the name of the command. The short help is here so that `pgtrial
--help` need not import the modules."""

_FORMER = {"studies": "`pgtrial list` lists the bundled studies, with their profiles"}
"""The commands that earlier versions of pgtrial had. The value of each is the advice that the error message gives to a
user who still calls the command."""

_COMPLETE = "_PGTRIAL_COMPLETE"
"""The environment variable that a shell sets when it asks pgtrial for completions. `pgtrial --install-completion` sets
up the shell for this."""

_LIBRARIES = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
"""Environment variables that limit numpy, scipy and polars to one thread, unless the user has set them. The tables of a
study are small, and idle threads of these libraries would busy-wait on CPUs that a measured server needs."""

_SIZE = ("COLUMNS", "LINES")
"""Environment variables with the size of the terminal. Some programs that open a terminal set them to 0, and rich would
then draw nothing. pgtrial removes such a variable, so that rich asks the terminal for its size."""

_PATH_SHOWN = 60
"""The number of characters of a path that an error message shows if the path is too long for the operating system."""

_PASSED_ON = [name for name, (module, _) in COMMANDS.items() if module is None]
"""The commands that the load engine carries out, such as `pgbench`. For these, pgtrial replaces its own process by the
engine and passes the arguments on unchanged."""


def _show_version(asked: bool) -> None:
    if asked:
        line(f"pgtrial {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show the Python traceback of an error."),
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
    ),
) -> None:
    """Compare PostgreSQL set-ups by measurement. Each set-up runs the same load, in random order, and gets a verdict
    that states how sure it is.

    Exit status: 0 done, 3 an error. `verdict` and `gate` have 1 after a regression and 2 without a verdict; the other
    commands say in their `--help` what 1 and 2 mean. `pgbench` and `sysbench` have those of the original programs.
    """
    if context.invoked_subcommand is None:
        line(context.get_help())


def _listed_only() -> None:
    """A placeholder for the function of each command that the user has not called. `--help` needs only the names and
    short helps of these commands, so that their modules are not imported."""


def application(called: str | None) -> typer.Typer:
    """Returns the command line as a Typer application. Only the module of the command `called` is imported; the other
    commands have just their short help."""
    app = typer.Typer(rich_markup_mode="markdown", context_settings={"help_option_names": ["-h", "--help"]})
    app.callback(cls=Root, invoke_without_command=True)(_root)
    for name, (module, summary) in COMMANDS.items():
        if name == called:
            app.command(name, cls=Command)(getattr(importlib.import_module(f"pgtrial.cli.{module}"), f"{name}_command"))
        else:
            app.command(name, help=summary)(_listed_only)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Runs the command that the arguments name, and exits with the status of the command. Errors are printed as one
    line on the standard error."""
    # with the default threshold Python's garbage collector runs during the imports, which takes a tenth of a short
    # command's time
    gc.set_threshold(50_000)
    for name, value in _LIBRARIES.items():
        os.environ.setdefault(name, value)
    for name in _SIZE:
        if (size := os.environ.get(name)) and not size.strip("0"):
            del os.environ[name]
    given = sys.argv[1:] if arguments is None else arguments
    if not _is_passed_on(given):
        # whatever the umask, other accounts must not be able to write files of pgtrial; the user's group keeps its
        # rights unless the user is root
        os.umask(os.umask(0) | (stat.S_IWOTH if os.geteuid() else stat.S_IWOTH | stat.S_IWGRP))
    # --debug may stand anywhere in the line, so that a user can add it to the end of a command that failed
    Invocation.tracebacks = "--debug" in given and not _is_passed_on(given)
    if Invocation.tracebacks:
        given = [argument for argument in given if argument != "--debug"]
    Invocation.words = given
    for sentence in without_weak_folders():
        warn(sentence)
    sys.exit(_status_of(given))


def _is_passed_on(arguments: list[str]) -> bool:
    return bool(arguments) and arguments[0] in _PASSED_ON


def _become_engine(arguments: list[str]) -> NoReturn:
    """Replaces this process by the load engine, which gets the arguments. Raises StudyError if the engine is not found
    or does not start."""
    # imported here, since `pgtrial --help` does not need the engine
    from pgtrial.loads.process import starting  # noqa: PLC0415

    sys.stdout.flush()
    with starting() as engine:
        os.execv(engine, [engine, *arguments])


def _status_of(arguments: list[str]) -> int:
    try:
        if _is_passed_on(arguments):
            _become_engine(arguments)
        called = _called(arguments) if _COMPLETE not in os.environ else _completed()
        if called in _FORMER:
            raise StudyError(f"pgtrial no longer has the command `{called}`; {_FORMER[called]}")
        command = typer.main.get_command(application(called))
        outcome = command.main(arguments, prog_name="pgtrial", standalone_mode=False)
    except PgtrialError as error:
        show_traceback(error)
        print_message(f"error: {error}")
        print_notes(error)
        return ERROR_STATUS
    except typer.TyperException as error:
        command_name = f"pgtrial {called}" if called in COMMANDS else "pgtrial"
        words = " ".join(error.format_message().split()).replace(": Value error, ", ": ").rstrip(".")
        print_message(f"error: {words} (see `{command_name} --help`)")
        return ERROR_STATUS
    except typer.Abort:  # the user ended the input at a prompt
        print_message("interrupted")
        return 130
    except BrokenPipeError:
        # the program that reads our output, e.g. `head`, has ended: this is not an error
        discard(sys.stdout)
        return 0
    except Exception as error:  # noqa: BLE001 - every other error is a fault of pgtrial
        show_traceback(error)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            print_message(
                f"error: the path {str(error.filename)[:_PATH_SHOWN]}... is too long for this system; correct it"
            )
        elif isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            # an error without a file name comes from the standard output: code that writes files raises its own errors
            print_message(
                f"error: the output of this command cannot be written ({error.strerror}); free some space on the disk "
                "to which it is written"
            )
            discard(sys.stdout)
        else:
            print_message(f"error: {described(error)}; {how_to_report('the same command')}")
        print_notes(error)
        return ERROR_STATUS
    return outcome if isinstance(outcome, int) else 0


def _called(arguments: list[str]) -> str | None:
    return next((argument for argument in arguments if not argument.startswith("-")), None)


def _completed() -> str | None:
    """Returns the command in the line that the shell wants to complete, or None if the line has no command yet. The
    options that can complete the line depend on the command."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return _called(line.split()[1:])
