"""Where packs are: those that come with pgtrial, and folders of the user's; reading the files of one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.model.study.packs import BUNDLED, KEPT, MANIFEST, Pack, check_name, read_pack
from pgtrial.model.units import nearest


@dataclass(frozen=True)
class FoundPack:
    """A pack as its folder has it."""

    name: str
    mix: str | None
    """The one that is asked for; None: the first."""
    files: dict[str, str]
    """Text of each file, by its name in the folder."""
    pack: Pack

    @property
    def path(self) -> str:
        """Pack and mix, `queue` or `kv/A`: the first mix is written out."""
        mix = self.mix or next(iter(self.pack.by_mix))
        return self.name if mix is None else f"{self.name}/{mix}"


def bundled_packs() -> list[str]:
    """The names of the packs that come with pgtrial."""
    return sorted(folder.name for folder in _bundled().iterdir() if (folder / MANIFEST).is_file())


def described_packs() -> dict[str, Pack]:
    """The packs that come with pgtrial, by name."""
    return {name: _read(_bundled() / name, name, None, name).pack for name in bundled_packs()}


def find_pack(workload: str, folder: Path, source: str) -> FoundPack | None:
    """The pack that a workload names: `pack:NAME`, or a path from `folder` on; None: it is a script.

    Raises StudyError, which begins with `source`.
    """
    if workload.startswith(BUNDLED):
        name, _, mix = workload.removeprefix(BUNDLED).partition("/")
        if name not in bundled_packs():
            hint = nearest(name, bundled_packs(), "pgtrial comes with")
            raise StudyError(
                f"{source}: no pack called {name!r} comes with pgtrial; {hint}. A pack of your own is named by the "
                "path of its folder, ./my-pack"
            )
        return _read(_bundled() / name, name, mix or None, source)
    path = folder / workload
    if path.is_dir():
        return _read(path, path.resolve().name, None, source)
    if path.suffix not in (".sql", ".lua") and not path.exists() and (path.parent / MANIFEST).is_file():
        return _read(path.parent, path.parent.resolve().name, path.name, source)
    return None


def _bundled() -> Traversable:
    return files("pgtrial.store") / "packs"


def _read(folder: Traversable, name: str, mix: str | None, source: str) -> FoundPack:
    check_name(name, source)
    texts = {}
    try:
        for file in sorted(folder.iterdir(), key=lambda each: each.name):
            if file.is_file() and file.name.endswith(KEPT) and not file.name.startswith("."):
                # bytes, since reading text would change the line ends
                texts[file.name] = file.read_bytes().decode()
    except UnicodeDecodeError:
        raise StudyError(f"{source}: the file {file.name} of the pack {name} is not a text in UTF-8") from None
    except OSError as error:
        raise StudyError(f"{source}: cannot read the pack {folder}: {error.strerror or 'unreadable'}") from None
    if MANIFEST not in texts:
        raise StudyError(f"{source}: {folder} is a folder without a {MANIFEST}; name a script, or the folder of a pack")
    return FoundPack(name, mix, texts, read_pack(name, texts))
