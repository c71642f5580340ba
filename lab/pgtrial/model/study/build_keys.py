"""The keys of an arm whose server or extensions are built from source, each declared once."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.study.keys import Key
from pgtrial.model.study.sources import is_source, source_in_key
from pgtrial.model.units import Whole, as_list


def checked_source(text: str) -> str:
    """Returns the text of the key `postgres` unchanged. Raises ValueError if it begins like a source, such as
    `git:PATH@REF`, but cannot be parsed as one."""
    if is_source(text):
        source_in_key(text)
    return text


def _sources(texts: list[str] | None) -> list[str] | None:
    for text in texts or ():
        if not is_source(text):
            raise ValueError(
                "an extension must be given as a source; write git:PATH@REF, git:URL@REF or source:DIRECTORY"
            )
        checked_source(text)
    return texts


_OF_A_BUILD = ("server.program*", "server.build_*", "server.version_full", "server.debug_assertions", "settings.*")
_OF_EXTENSIONS = ("server.extension*", "*.extensions", "server.program", "server.setup_sql")
"""The patterns of the facts that follow from extensions. The SQL that creates them is part of the arm's `setup_sql`."""


class BuildKeys(Record):
    """The keys that say how a server or an extension is built. Builds are kept in pgtrial's state directory, and all
    studies share them."""

    build: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        Key(shows=("server.build_options",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(
        None,
        description="For a server that is built from source: options of meson, such as `-Dcassert=false`, or of "
        "configure, such as `--with-icu` or `CFLAGS=-O3`.",
    )
    patches: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        Key(shows=("server.patches",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(
        None,
        description="For a server that is built from source: [files with patches](builds.md#patches), which are "
        "applied to the source in this order.",
    )
    compiler: Annotated[
        str | None,
        Key(shows=("server.compiler",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(
        None,
        min_length=1,
        description="The C compiler for servers and extensions that pgtrial builds, such as `clang`. Default: `cc`.",
    )
    lto: Annotated[
        bool | None,
        Key(shows=("server.lto",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(None, description="For a server that is built from source: true to optimise it at link time.")
    pgo: Annotated[
        bool | None,
        Key(shows=("server.pgo",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(
        None,
        description="For a server that is built from source: true to optimise it by a [profile](builds.md#profile) "
        "of pgbench.",
    )
    layouts: Annotated[
        Whole | None,
        Key(shows=("server.layouts",), follows=_OF_A_BUILD, apart=("server build", "loaded data")),
    ] = Field(
        None,
        ge=2,
        le=64,
        description="For a server that is built from source: how many times it is linked, each time with its "
        "code in another order in memory ([why](builds.md#layouts)). Each block draws one of these "
        "layouts for each arm.",
    )
    extensions: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        AfterValidator(_sources),
        Key(shows=("server.extension_sources",), follows=_OF_EXTENSIONS),
    ] = Field(
        None,
        description="Extensions that pgtrial [builds from source](builds.md#extensions), such as `git:PATH@REF`. "
        "pgtrial installs them into a copy of the server's programs, and creates them before `setup_sql` runs.",
    )
