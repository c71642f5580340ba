"""Labs in processes of their own that are forked from one: their imports take longer than what most commands do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import public_directory

_PARENT = """
import importlib, json, os, select, socket, sys, traceback
import pgtrial.report.html, pgtrial.report.markdown
from pgtrial import cli

for module in {module for module, _ in cli.COMMANDS.values() if module is not None}:
    importlib.import_module(f"pgtrial.cli.{module}")

def receive(connection):
    order, streams, *_ = socket.recv_fds(connection, 1 << 16, 3)
    while not order.endswith(b"\\n"):
        order += connection.recv(1 << 16)
    return streams, *json.loads(order)

def run(streams, arguments, directory, environment):
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    cli.main(arguments)

def fork(connection):
    streams, *order = receive(connection)
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        return child
    status = 1
    try:
        run(streams, *order)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

labs = {}
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(sys.argv[1])
    listening.listen()
    print("ready", flush=True)
    while True:
        for ready in select.select([sys.stdin, listening, *labs], [], [])[0]:
            if ready is sys.stdin:
                sys.exit()
            if ready is listening:
                connection = listening.accept()[0]
                child = fork(connection)
                labs[os.pidfd_open(child)] = child, connection
            else:
                child, connection = labs.pop(ready)
                os.close(ready)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                with connection:
                    connection.sendall(b"%d" % status)
"""
"""Forks a lab for each connection and sends back its exit status. It ends when its standard input is closed. """

_PROGRAM = """#!{python} -IS
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect("{socket}")
    order = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n"
    sent = socket.send_fds(connection, [order], [0, 1, 2])
    connection.sendall(order[sent:])
    status = int(connection.recv(16))
sys.exit(status if status >= 0 else 128 - status)
"""


@dataclass(frozen=True)
class Commands:
    """A program `pgtrial` in a folder; it has its lab forked, and has the exit status that a shell gives to the lab."""

    folder: Path

    def run(
        self, arguments: list[str], directory: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs one command to its end."""
        command = [self.folder / "pgtrial", *arguments]
        return subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def forked_commands(launcher: Sequence[str] = ()) -> Iterator[Commands]:
    """Starts the labs' parent and yields its commands until the block ends. `launcher` is the command that starts the
    parent, such as `setpriv --no-new-privs`.
    """
    folder = public_directory()
    program = folder / "pgtrial"
    program.write_text(_PROGRAM.format(python=sys.executable, socket=folder / "socket"))
    program.chmod(0o755)
    command = [*launcher, sys.executable, "-c", _PARENT, str(folder / "socket")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        yield Commands(folder)
    shutil.rmtree(folder)
