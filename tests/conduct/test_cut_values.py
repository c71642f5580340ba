"""A study of a bundle runs with the values that its environment gives in place of those that were cut."""

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StudyError
from pgtrial.store.bundle import open_study, write_bundle
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server

VALUE = "k7-0f-the-sh0p"


def test_a_study_of_a_bundle_runs_with_the_values_of_its_environment_and_holds_none(tmp_path, monkeypatch):
    require_engine()
    (tmp_path / "key.sql").write_text(f"SELECT 1 / (current_setting('app.key') = 'k7-' || '{VALUE[3:]}')::int;\n")
    study = small_study(
        tmp_path / "s",
        blocks=1,
        folder=tmp_path,
        load={"workload": "key.sql"},
        server={"settings": {**FAST, "app.key": VALUE}, "environment": {"API_TOKEN": VALUE}},
    )
    write_bundle(study, tmp_path / "planned.tar.xz", everything=True)
    with open_study(tmp_path / "planned.tar.xz") as opened:
        with pytest.raises(StudyError, match=r"PGTRIAL_SECRET_1 \(server.settings.app.key, server.environment.API"):
            run_study(opened, lambda event: None)
        monkeypatch.setenv("PGTRIAL_SECRET_1", VALUE)
        run_study(opened, lambda event: None)
        assert [trial.reason for trial in opened.trials()] == [None, None]
        write_bundle(opened, tmp_path / "run.tar.xz", everything=False)
    with open_study(tmp_path / "run.tar.xz") as opened:
        assert len(opened.trials()) == 2
        assert not [path for path in opened.path.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]
