"""The documentation of the study file is the spec's own words."""

from pathlib import Path

from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.reference import markdown
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySection, VerdictSection

PAGE = Path(__file__).parents[2] / "docs" / "study-file.md"


def test_the_page_in_docs_is_written_from_the_spec() -> None:
    program = 'from pgtrial.model.study.reference import markdown; print(markdown(), end="")'
    command = f"python -c '{program}' > docs/study-file.md"
    assert PAGE.read_text() == markdown(), f"docs/study-file.md is stale; write it anew: {command}"


def test_every_key_is_described() -> None:
    for model in (StudySection, LoadSection, SetUp, VerdictSection):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert f"\n- **`{name}`** (" in markdown()
