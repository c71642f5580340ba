"""Reads and writes what a study directory keeps of self-tests: the machine's certificate and, in a self-test, how its
arms differ."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.records.machine import Certificate, Selftest
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import record_at

_OWN = "certificate.json"
_SELFTEST = "selftest.json"


def study_certificate(study: StudyDirectory) -> Certificate | None:
    """Returns the certificate that a study keeps; None if the machine had none. Raises StoreError."""
    return record_at(study.path / _OWN, Certificate, "delete it, or restore it from a copy")


def write_certificate(study: StudyDirectory, certificate: Certificate) -> Path:
    """Stores the certificate beside the study, and returns its path. Raises StoreError."""
    return study.write_file(_OWN, certificate.model_dump_json(indent=1) + "\n")


def selftest_in(study: StudyDirectory) -> Selftest | None:
    """Returns how the arms of a self-test differ; None if the study is no self-test. Raises StoreError."""
    return record_at(study.path / _SELFTEST, Selftest, "run `pgtrial selftest` again")


def write_selftest(study: StudyDirectory, selftest: Selftest) -> None:
    """Stores how the arms of a self-test differ. Raises StoreError."""
    study.write_file(_SELFTEST, selftest.model_dump_json(indent=1) + "\n")
