"""The workload client-programs: the command of each arm starts a program, which runs batches of operations as the
load."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.study.keys import Key
from pgtrial.model.study.sources import GitSource, is_source, source_in_key
from pgtrial.model.tokens import without_tokens

PROGRAMS = "client-programs"
"""The value of `[load] workload` for a study whose arms have client programs."""

NOT_FOR_PROGRAMS = {
    "clients": "a program opens its own connections; give their number in its command",
    "rate": "a program runs each batch as fast as it can",
    "threads": "a program has its own threads",
    "protocol": "a program speaks its driver's protocol",
    "max_tries": "a program repeats what it wants to repeat",
    "latency_limit": "a program repeats what it wants to repeat",
    "values": "a program draws its own values",
    "on_server_loss": "a program that loses its server has failed",
}
"""The keys of `[load]` that do not apply to client programs, each with the reason."""

TRACKED = "."
"""The name under which `command_files` has the digest of all files that git tracks in the directory of the command."""

_SECRET = re.compile(r"://[^/@\s:]*:[^@\s]+@|\b(ssl)?password\s*=", re.IGNORECASE)


def known_command(command: str) -> str:
    """Returns the command unchanged. Raises ValueError if the command cannot be parsed, or if it contains a password or
    token."""
    words = words_of(command)
    if not words:
        raise ValueError('the command is empty; write a program and its arguments, such as "node bench.js"')
    if _SECRET.search(command) or without_tokens(command) != command:
        raise ValueError(
            "a command is stored with the results, and this one has a password or token; leave the "
            "password or token out: the program finds its server, with the password, by PGHOST, PGUSER, "
            "PGPASSWORD and the like"
        )
    return command


def words_of(command: str) -> list[str]:
    """Returns the program and its arguments. The user quotes them as in a shell, although no shell interprets the
    command. Raises ValueError if a quote is not closed."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}; close the quote, or write \\ before a single one") from None


def known_directory(text: str) -> str:
    """Returns the directory of a command unchanged. Raises ValueError if it begins like a source, but does not name a
    commit of a repository in the form `git:PATH@REF`."""
    if is_source(text) and not isinstance(source_in_key(text, "commit"), GitSource):
        raise ValueError("a directory is written without source:; write its path")
    return text


class ClientKeys(Record):
    """The client program of an arm. The program makes the arm's load in place of the load engine."""

    command: Annotated[
        Annotated[str, AfterValidator(known_command)] | None,
        Key(shows=("client.command",), follows=("client.program", "client.files")),
    ] = Field(
        None,
        description="The command of a [client program](client-programs.md) that makes the load, such as `node "
        'bench.js`. If one arm has a command, all arms need one. With `workload = "job:"`: the program that is '
        "[the job](jobs.md#a-program) of this arm; arms without a command run the command that the load gives to all "
        "arms.",
    )
    command_directory: Annotated[
        Annotated[str, AfterValidator(known_directory)] | None,
        Key(shows=("client.directory",), follows=("client.program", "client.files", "client.subject")),
    ] = Field(
        None,
        min_length=1,
        description="The directory in which the command runs, or a [commit](client-programs.md#two-commits), "
        "`git:PATH@REF`, whose files pgtrial writes into a directory of their own. Default: the directory of the study "
        "file.",
    )
    command_files: Annotated[dict[str, str] | None, Key(shows=("client.files",), follows=("client.program",))] = Field(
        None,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "files that the command names, and `.` for those that git tracks in its directory, with their SHA-256.",
    )
