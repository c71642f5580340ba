"""Workloads of the study's own: pgbench and Lua scripts, read once at planning and kept beside the frozen study."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePosixPath

from pgtrial.model.errors import StudyError
from pgtrial.model.study.load_section import BUILT_IN, is_script
from pgtrial.model.study.spec import StudySpec

FOLDER = "scripts"
"""Where a study directory keeps them; its study.toml names them as paths beside it: `scripts/orders.sql`."""

_REQUIRE = re.compile(r"""\brequire\s*\(?\s*["']([\w.-]+)["']""")


def take_in(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """The spec with the texts of its scripts, whose paths are relative to `folder`. Raises StudyError."""
    texts: dict[str, str] = {}
    for path in filter(is_script, spec.load.workload):
        name = PurePosixPath(path).name
        if name in texts:
            raise StudyError(
                f"{source}: [load] workload: two scripts are called {name}; the report tells them apart by their "
                "names, so rename one"
            )
        if name in BUILT_IN:
            raise StudyError(f"{source}: [load] workload: {path} is called as a built-in workload is; rename it")
        texts[name] = _read(folder / path, source)
        if name.endswith(".lua"):
            texts |= _required(texts[name], (folder / path).parent, source, set(texts))
    kept = [f"{FOLDER}/{PurePosixPath(path).name}" if is_script(path) else path for path in spec.load.workload]
    load = spec.load.model_copy(update={"workload": kept})
    return spec.model_copy(update={"load": load}).with_scripts(texts)


def digest(text: str) -> str:
    """SHA-256 of a script's text, as the plan keeps it."""
    return hashlib.sha256(text.encode()).hexdigest()


def _required(text: str, folder: Path, source: str, known: set[str]) -> dict[str, str]:
    """The modules beside a Lua script that it requires, and those that they require; others come from elsewhere."""
    found: dict[str, str] = {}
    for module in _REQUIRE.findall(text):
        name = f"{module}.lua"
        if name not in known and (folder / name).is_file():
            found[name] = _read(folder / name, source)
            found |= _required(found[name], folder, source, known | set(found))
    return found


def _read(path: Path, source: str) -> str:
    try:
        # bytes, since reading text would change the line ends
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise StudyError(f"{source}: [load] workload: the script {path} is not a text file in UTF-8") from None
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise StudyError(f"{source}: [load] workload: cannot read the script {path}: {reason}") from None
