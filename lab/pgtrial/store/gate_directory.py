"""Reads and writes the directory of a gate that runs several studies, one after the other. It has the gate's plan
(`studies.json`), a study directory for each study that has begun, and, once all studies have ended, the result
(`gate.json`)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pgtrial.model.errors import StoreError
from pgtrial.model.records.gate import GatedStudy, GateOfStudies, GateRecord
from pgtrial.model.study.frozen import freeze
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import slug
from pgtrial.store.directory import STUDIES, STUDY, StudyDirectory
from pgtrial.store.files import make_folder, read_record, record_at, write_in_folder, writing

OUTCOME = "gate.json"
"""The file with the result of a gate. The directory of each study of a gate has one too, so that it is in the bundle of
the study."""


class GateDirectory:
    """The directory of a gate of several studies. `record` never changes; everything else is read from the files at
    each call."""

    def __init__(self, path: Path, record: GateOfStudies) -> None:
        self.path = path
        self.record = record

    @classmethod
    def create(cls, path: Path, record: GateOfStudies) -> GateDirectory:
        """Creates the directory of a new gate. `path` must either not exist or be an empty directory. Raises StoreError
        if it is not empty, or cannot be written."""
        make_folder(path, mode=0o700)
        with writing(path):
            if any(path.iterdir()):
                raise StoreError(
                    f"{path} is not empty, and does not contain this gate; choose another directory with --results"
                )
        write_in_folder(path / STUDIES, record.model_dump_json(indent=1) + "\n")
        return cls(path, record)

    @classmethod
    def open(cls, path: Path) -> GateDirectory:
        """Reads the directory of a gate. Raises StoreError if it is damaged."""
        return cls(path, read_record(path / STUDIES, GateOfStudies, f"remove {path}, and run the gate again"))

    def path_of(self, study: GatedStudy) -> Path:
        """Returns the path of the directory of one study, even if the study has not begun."""
        return self.path / study.directory

    def begun(self, study: GatedStudy) -> StudyDirectory | None:
        """Returns the directory of one study of the gate; None if the study has not begun. Raises StoreError if the
        directory is damaged."""
        path = self.path_of(study)
        return StudyDirectory.open(path) if (path / STUDY).is_file() else None

    def ended(self, study: GatedStudy) -> bool:
        """True if one study of the gate has run to its end and has its result."""
        return (self.path_of(study) / OUTCOME).is_file()

    def studies(self) -> list[StudyDirectory]:
        """Returns the studies that have begun. Raises StoreError if the directory of one of them is damaged."""
        return [begun for study in self.record.studies if (begun := self.begun(study)) is not None]

    def outcome(self) -> GateRecord | None:
        """Returns the result of the gate; None before all its studies have ended. Raises StoreError if the file is
        damaged."""
        return record_at(self.path / OUTCOME, GateRecord, f"remove {self.path / OUTCOME}")


def digest_of(spec: StudySpec) -> str:
    """Returns the SHA-256 of a study file with all defaults, and of the study's scripts."""
    digest = hashlib.sha256(freeze(spec).encode())
    for name, text in sorted(spec.scripts.items()):
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()


def directory_for(number: int, name: str) -> str:
    """Returns the name of the directory for a study of a gate. Studies are numbered from 1."""
    return f"{number}-{slug(Path(name).name)}"
