"""Reads and writes the files about self-tests in a study directory: the machine's certificate (which differences the
last self-test on this machine could find) and, if the study is itself a self-test, how its arms differ."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.records.machine import Certificate, Selftest
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.files import record_at

_OWN = "certificate.json"
_SELFTEST = "selftest.json"


def study_certificate(study: StudyDirectory) -> Certificate | None:
    """Returns the certificate of the machine that is stored with a study; None if the machine had none. A certificate
    is the result of a self-test: which differences can be found on the machine. Raises StoreError if the file is
    damaged."""
    return record_at(study.path / _OWN, Certificate, "delete it, or restore it from a copy")


def write_certificate(study: StudyDirectory, certificate: Certificate) -> Path:
    """Stores the machine's certificate (the result of its self-test) in the study directory, and returns the path of
    the file. Raises StoreError if the file cannot be written."""
    return study.write_file(_OWN, certificate.model_dump_json(indent=1) + "\n")


def selftest_in(study: StudyDirectory) -> Selftest | None:
    """Returns the record that says how the arms of a self-test differ, such as by how much one was made slower; None if
    the study is not a self-test. Raises StoreError if the file is damaged."""
    return record_at(study.path / _SELFTEST, Selftest, "run `pgtrial selftest` again")


def write_selftest(study: StudyDirectory, selftest: Selftest) -> None:
    """Stores the record that says how the arms of a self-test differ. Raises StoreError if the file cannot be
    written."""
    study.write_file(_SELFTEST, selftest.model_dump_json(indent=1) + "\n")
