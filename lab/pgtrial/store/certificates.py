"""Certificates of the machine: certificates.json in the state directory, and the copy that each study keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pgtrial.model.records import Record
from pgtrial.model.records.certificate import Certificate, Certificates, Selftest
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import read_record
from pgtrial.store.shared_records import change_shared, read_shared

RECORD = "certificates.json"
"""In the state directory."""

_OWN = "certificate.json"
_SELFTEST = "selftest.json"

_R = TypeVar("_R", bound=Record)


def certificate_for(path: Path, servers: list[str]) -> Certificate | None:
    """The latest certificate for servers on these hosts, from the record; None: none is there. Raises StoreError."""
    kept = read_shared(path, Certificates, "`pgtrial selftest`").certificates
    return next((each for each in kept if each.servers == servers), None)


def keep_certificate(path: Path, certificate: Certificate) -> None:
    """Put a certificate into the record, in place of the one for the same servers. A damaged record is begun anew.

    Raises StoreError if the record is newer or cannot be written. The caller keeps other labs from writing.
    """

    def with_it(record: Certificates) -> Certificates:
        others = [each for each in record.certificates if each.servers != certificate.servers]
        return Certificates(certificates=[certificate, *others])

    change_shared(path, Certificates, with_it)


def study_certificate(study: StudyDirectory) -> Certificate | None:
    """The certificate that a study keeps; None: the machine had none. Raises StoreError."""
    return _own(study, _OWN, Certificate, "delete it, or restore it from a copy")


def write_certificate(study: StudyDirectory, certificate: Certificate) -> Path:
    """Store the certificate beside the study. Raises StoreError."""
    return study.write_file(_OWN, certificate.model_dump_json(indent=1) + "\n")


def selftest_in(study: StudyDirectory) -> Selftest | None:
    """How the arms of a self-test differ; None: the study is another one. Raises StoreError."""
    return _own(study, _SELFTEST, Selftest, "run `pgtrial selftest` anew")


def write_selftest(study: StudyDirectory, selftest: Selftest) -> None:
    """Store how the arms of a self-test differ. Raises StoreError."""
    study.write_file(_SELFTEST, selftest.model_dump_json(indent=1) + "\n")


def _own(study: StudyDirectory, name: str, kind: type[_R], cure: str) -> _R | None:
    path = study.path / name
    return read_record(path, kind, cure) if path.exists() else None
