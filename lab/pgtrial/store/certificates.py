"""Reads and writes the files about self-tests in a study directory: the machine's certificate and, if the study is
itself a self-test, how its arms differ."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.records.machine import Certificate, Selftest
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import record_at

_OWN = "certificate.json"
_SELFTEST = "selftest.json"


def study_certificate(study: StudyDirectory) -> Certificate | None:
    """Returns the certificate of the machine that is stored with a study; None if the machine had none. Raises
    StoreError."""
    return record_at(study.path / _OWN, Certificate, "delete it, or restore it from a copy")


def write_certificate(study: StudyDirectory, certificate: Certificate) -> Path:
    """Stores the machine's certificate in the study directory, and returns its path. Raises StoreError."""
    return study.write_file(_OWN, certificate.model_dump_json(indent=1) + "\n")


def selftest_in(study: StudyDirectory) -> Selftest | None:
    """Returns the record of how the arms of a self-test differ; None if the study is not a self-test. Raises
    StoreError."""
    return record_at(study.path / _SELFTEST, Selftest, "run `pgtrial selftest` again")


def write_selftest(study: StudyDirectory, selftest: Selftest) -> None:
    """Stores the record of how the arms of a self-test differ. Raises StoreError."""
    study.write_file(_SELFTEST, selftest.model_dump_json(indent=1) + "\n")
