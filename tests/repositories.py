"""Repositories of git for tests: a server whose build installs copies of an installed one, and an extension in C."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """A repository below a directory of the test's own."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True)
        self.path = path
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Runs a command of git and returns its output."""
        command = ["git", "-C", self.path, "-c", "core.hooksPath=/dev/null", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **IDENTITY})
        return done.stdout.strip()

    def commit(self, subject: str, files: Mapping[str, str]) -> str:
        """Commit these files; those whose name ends in `configure` are programs. Returns the commit's name."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.name == "configure":
                path.chmod(0o755)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")


def server_files(installation: Path, mark: str = "one", broken: str = "") -> dict[str, str]:
    """Returns the source files of a made-up server. Its build compiles a few files and installs a copy of an existing
    installation, with `mark` in its program.

    `broken` is text that is appended to one of the files.
    """
    configure = """#!/bin/sh
printf '%s\\n' "$@" > options
for option; do
    case $option in
        --prefix=*) prefix=${option#--prefix=} ;;
        CC=*) compiler=${option#CC=} ;;
        --without-readline) readline=no ;;
        --fail) echo "configure: error: readline library not found"; exit 1 ;;
    esac
done
printf 'PREFIX = %s\\nCC = %s\\n' "$prefix" "$compiler" > Makefile.global
"""
    makefile = f"""include Makefile.global
FILES = src/one.o src/two.o src/three.o
all: $(FILES)
clean:
\trm -f $(FILES)
install: all
\tmkdir -p $(PREFIX)
\tcp -R {" ".join(shlex.quote(str(installation / part)) for part in ("bin", "lib", "share"))} $(PREFIX)
\tcp options $(PREFIX)
\tchmod u+w $(PREFIX)/bin/postgres
\tcat src/mark >> $(PREFIX)/bin/postgres
"""
    files = {"configure": configure, "Makefile": makefile, "src/mark": mark}
    files |= {f"src/{name}.c": f"int {name}(void) {{ return 1; }}\n" for name in ("one", "two")}
    return {**files, "src/three.c": f"int three(void) {{ return 3; }}\n{broken}"}


def linked_server_files(installation: Path, warnings: str = "") -> dict[str, str]:
    """Returns the source files of a server that is linked from eight files and then runs the server of an existing
    installation.

    At its start it writes a line `code at ...` with its functions, `a` to `h`, in the order of their addresses. Each
    build stores its compiler flags in a file of its installation. `warnings` are messages of the compiler for the main
    file when it is built with a profile.
    """
    functions = "abcdefgh"
    main = f"""#include <stdio.h>
#include <string.h>
#include <unistd.h>
{"".join(f"int {name}(void);" for name in functions)}
int
main(int count, char **words)
{{
    struct {{ char name; int (*code)(void); }} one, all[] = {{{", ".join(f"{{'{at}', {at}}}" for at in functions)}}};
    for (int last = {len(functions)}; last > 1; last--)
        for (int at = 1; at < last; at++)
            if (all[at].code < all[at - 1].code)
                one = all[at], all[at] = all[at - 1], all[at - 1] = one;
    if (count > 1 && strcmp(words[1], "-D") == 0)
    {{
        fprintf(stderr, "code at ");
        for (int at = 0; at < {len(functions)}; at++)
            fputc(all[at].name, stderr);
        fputc('\\n', stderr);
    }}
    words[0] = REAL;
    execv(REAL, words);
    return 1;
}}
"""
    parts = " ".join(shlex.quote(str(installation / part)) for part in ("bin", "lib", "share"))
    makefile = f"""include Makefile.global
all:
\t$(MAKE) -C src/backend postgres
clean:
\t$(MAKE) -C src/backend clean
install: all
\tmkdir -p $(PREFIX)/real
\techo $(COPT) >> $(PREFIX)/flags
\tcp -R {parts} $(PREFIX)/real
\tcp -R {parts} $(PREFIX)
\trm $(PREFIX)/bin/postgres
\tcp src/backend/postgres $(PREFIX)/bin
"""
    backend = f"""include ../../Makefile.global
CPPFLAGS = -DREAL='"$(PREFIX)/real/bin/postgres"'
CFLAGS = $(COPT)
OBJECTS = main.o {" ".join(f"{name}.o" for name in functions)}
postgres: $(OBJECTS)
\t$(CC) $(COPT) $^ -o $@
main.o: main.c
\t$(CC) $(COPT) $(if $(findstring profile-use,$(COPT)),{warnings}) $(CPPFLAGS) -c $< -o $@
clean:
\trm -f postgres $(OBJECTS)
"""
    files = {"configure": server_files(installation)["configure"], "Makefile": makefile}
    files |= {f"src/backend/{name}.c": f"int {name}(void) {{ return 1; }}\n" for name in functions}
    return {**files, "src/backend/Makefile": backend, "src/backend/main.c": main}


def extension_files(rounds: int = 0, version: str = "1.0", broken: str = "") -> dict[str, str]:
    """Returns the files of an extension with one function in C, `busy(integer)`, which adds up so many numbers before
    it returns.
    """
    code = f"""#include "postgres.h"
#include "fmgr.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(busy);
Datum
busy(PG_FUNCTION_ARGS)
{{
    volatile int64 sum = 0;
    for (int round = 0; round < {rounds}; round++)
        sum += round;
    PG_RETURN_INT32(PG_GETARG_INT32(0));
}}
{broken}
"""
    return {
        "busy.c": code,
        "busy.control": f"default_version = '{version}'\nmodule_pathname = '$libdir/busy'\n",
        f"busy--{version}.sql": "CREATE FUNCTION busy(integer) RETURNS integer AS 'MODULE_PATHNAME', 'busy' "
        "LANGUAGE C STRICT;\n",
        "Makefile": f"MODULES = busy\nEXTENSION = busy\nDATA = busy--{version}.sql\nPG_CONFIG ?= pg_config\n"
        "PGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n",
    }
