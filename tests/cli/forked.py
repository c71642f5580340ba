"""Labs in processes of their own that are forked from one: their imports take longer than what most commands do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PARENT = """
import importlib, json, os, sys, traceback
from pgtrial import cli

for module in {module for module, _ in cli.COMMANDS.values() if module is not None}:
    importlib.import_module(f"pgtrial.cli.{module}")

def run(arguments, directory, environment, streams):
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams):
        os.dup2(os.open(path, (os.O_WRONLY | os.O_CREAT) if number else os.O_RDONLY), number)
    cli.main(arguments)

for line in sys.stdin:
    child = os.fork()
    if not child:
        status = 1
        try:
            run(*json.loads(line))
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Commands:
    """Runs `pgtrial` as a process of its own would."""

    def __init__(self, parent: subprocess.Popen[str], folder: Path) -> None:
        self._parent = parent
        self._folder = folder

    def run(
        self, arguments: list[str], directory: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """One command, to its end."""
        out, err = self._folder / "out", self._folder / "err"
        for file in (out, err):
            file.write_text("")
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        order = [arguments, str(directory), environment, ["/dev/null", str(out), str(err)]]
        print(json.dumps(order), file=self._parent.stdin, flush=True)
        status = int(self._parent.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, out.read_text(), err.read_text())


@contextmanager
def forked_commands(folder: Path) -> Iterator[Commands]:
    """Until the block ends; what they say is kept in the folder meanwhile."""
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        yield Commands(parent, folder)
