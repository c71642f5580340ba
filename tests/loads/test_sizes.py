"""Tests of the check that the data of a study fit on the disk."""

from __future__ import annotations

import shutil

import pytest

from pgtrial.loads.data.data import check_free, needed_mb, prefilled_wal_mb
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.errors import StudyError


def test_the_need_grows_by_fifteen_megabytes_a_scale_unit_for_template_and_copy():
    assert needed_mb(PgbenchTables(2001)) - needed_mb(PgbenchTables(2000)) == 30
    assert needed_mb(PgbenchTables(2000, 50)) > 1.9 * needed_mb(PgbenchTables(2000))


def test_ready_made_wal_follows_the_data_within_its_limits():
    assert prefilled_wal_mb(PgbenchTables(1)) == 64
    assert prefilled_wal_mb(PgbenchTables(20)) == 288
    assert prefilled_wal_mb(PgbenchTables(1000)) == 512


def test_a_scale_that_fits_passes_and_one_that_does_not_is_refused_with_the_figures(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    check_free(free, str(tmp_path), "buy one", PgbenchTables(1))
    free_mb = free // 10**6
    scale = free_mb // 15
    with pytest.raises(StudyError) as error:
        check_free(free, str(tmp_path), "buy one", PgbenchTables(scale))
    assert f"scale {scale} does not fit on the disk" in str(error.value)
    assert f"{needed_mb(PgbenchTables(scale)):,} MB" in str(error.value)
