"""The planner's statistics of one build twice, each with its own template: drawn for each trial, once, or the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.conduct.trial import ready
from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.report.data import read_data
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import small_study
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

COSTS = {"random_page_cost": "1.5"}
APART = {
    "one": {"postgres": "18", "settings": COSTS},
    "two": {"postgres": "18", "settings": COSTS, "initdb": ["--no-data-checksums"]},
}
"""Two arms with the same version of the server, whose data come from two templates."""

COLUMNS = {f"x{prime}": prime for prime in (7, 11, 13, 17, 19, 23)}
DATA = f"""CREATE TABLE numbers AS SELECT i AS id, repeat('x', 60) AS filler, {
    ", ".join(f"1e6 / (1 + i * {prime}::bigint % 59999) AS {name}" for name, prime in COLUMNS.items())
} FROM generate_series(1, 60000) AS i;
ALTER TABLE numbers ADD PRIMARY KEY (id), {
    ", ".join(f"ALTER {name} SET STATISTICS 1" for name in ("id", "filler", *COLUMNS))
};
CREATE INDEX of_an_expression ON numbers ((id % 1000));
ALTER INDEX of_an_expression ALTER 1 SET STATISTICS 1;
"""
"""A table whose plans depend on the sample of ANALYZE, which keeps the minimum and the maximum of 300 sampled values of
each column. The maximum is random, and the expected number of rows follows from it, so that a join is a hash join or a
nested loop.
"""

LATE = """CREATE FUNCTION late(number int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_sleep(0.25); RETURN number; END $$;
CREATE TABLE few AS SELECT generate_series(1, 6) AS number;
CREATE INDEX of_late ON few (late(number));
"""
"""A function in an index. ANALYZE calls it for each of the six rows and therefore takes 1.5 s."""

_HASH = """SELECT md5(string_agg(s::text, ' ' ORDER BY schemaname, tablename, attname)) FROM pg_stats s
    WHERE schemaname = 'public'"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: Any) -> None:
    require_engine()
    monkeypatch.chdir(tmp_path)
    Path("numbers.sql").write_text(DATA)
    Path("queries").mkdir()
    for name in COLUMNS:
        Path("queries", f"{name}.sql").write_text(
            f"SELECT count(o.filler) FROM numbers n JOIN numbers o ON o.id = n.id + 1 WHERE n.{name} < 250"
        )


def run(
    monkeypatch: pytest.MonkeyPatch, statistics: str, blocks: int, arms: dict[str, Any]
) -> tuple[StudyDirectory, dict[str, list[str]], list[str]]:
    """Runs a study and returns it, the digests of the statistics with which each arm's trials began, and the texts of
    the study's preparation.
    """
    digests: dict[str, list[str]] = {arm: [] for arm in arms}
    warm = ready.warm_relations

    def note(target: Any, setup: Any, data: Any) -> str | None:
        with target.connect() as session:
            [(digest,)] = session.execute(_HASH).fetchall()
            digests[next(arm for arm in arms if spec.resolved(arm) == setup)].append(digest)
        return warm(target, setup, data)

    monkeypatch.setattr(ready, "warm_relations", note)
    load = {"workload": "suite:queries", "data": "numbers.sql", "statistics": statistics, "suite": {"runs": 1}}
    verdict = {"blocks": blocks}
    spec = build_study({"load": load, "arms": arms, "verdict": verdict, "study": {"seed": 5}}, "test")
    study, _ = find_or_create(spec, None, anew=True)
    said: list[str] = []
    run_study(study, lambda event: said.append(event.text) if isinstance(event, Preparing) else None, spec=spec)
    # the block that finds the time of the queries is drawn as well, and does not count
    return study, {arm: found[-blocks:] for arm, found in digests.items()}, said


def test_statistics_are_drawn_for_each_trial_and_plans_that_vary_are_named_with_their_share_and_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as if it had been measured before: on a busy machine it may take more than a tenth of these short blocks
    monkeypatch.setattr(LoadedData, "known_analysis_s", lambda data: 0.05)
    study, digests, _ = run(monkeypatch, "drawn", 3, APART)
    assert len({digest for found in digests.values() for digest in found}) == 6
    assert study.plan.statistics == "drawn"
    assert "planner statistics drawn for each copy" in study.plan.scope
    assert 'statistics = "drawn"' in (study.path / "study.toml").read_text()
    for trial in study.trials():
        assert trial.reason is None
        assert trial.phases_s["statistics"] > 0
        assert trial.plan_nodes.keys() == COLUMNS.keys()
        assert bool(trial.statements) == (trial.block == 0)
    varying = [found for found in read_data(study).result.findings if found.rule == "plans_vary"]
    assert varying
    assert varying[0].severity == "info"
    # which of the queries vary is luck, and so are their plans; that none does happens once in a million times
    assert re.search(
        r": [\w ]+ in [12] of 3 trials \([^ ]+ ms\)(,| and) [\w ]+ in [12] of 3 trials", varying[0].message
    )


def test_statistics_that_are_drawn_once_stay_with_each_template(monkeypatch: pytest.MonkeyPatch) -> None:
    study, digests, _ = run(monkeypatch, "once", 2, APART)
    assert len(set(digests["one"])) == len(set(digests["two"])) == 1
    assert digests["one"] != digests["two"], "each template has a sample of its own"
    assert study.plan.statistics == "once"
    assert "planner statistics drawn once" in study.plan.scope
    assert not any(trial.plan_nodes for trial in study.trials())


def test_all_arms_have_the_statistics_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    study, digests, _ = run(monkeypatch, "same", 2, APART)
    assert len({digest for found in digests.values() for digest in found}) == 1
    assert "planner statistics of one in all arms" in study.plan.scope
    assert {trial.status for trial in study.trials()} == {"completed"}


def test_arms_with_one_template_have_the_same_statistics_in_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    require_server(15)
    arms = {"jit": {"postgres": "15"}, "no jit": {"postgres": "15", "settings": {"jit": "off"}}}
    _, digests, _ = run(monkeypatch, "same", 1, arms)
    assert digests["jit"] == digests["no jit"]


def test_the_same_statistics_are_refused_where_a_server_does_not_take_them() -> None:
    old = {"old": {"postgres": "15"}, "new": {"postgres": "18"}}
    with pytest.raises(StudyError, match=r"PostgreSQL 15 does not take the statistics of another server, as 18 and"):
        build_study({"load": {"statistics": "same"}, "arms": old}, "test")
    given = {"made": {}, "given": {"dsn": "host=db.example"}}
    with pytest.raises(StudyError, match=r"for fresh copies on servers that pgtrial makes, and arms\.given has none"):
        build_study({"load": {"statistics": "same"}, "arms": given}, "test")


def test_servers_that_a_path_names_are_refused_when_their_version_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(require_server(15).bin)
    arms = {"one": {"postgres": path}, "two": {"postgres": path, "initdb": ["--data-checksums"]}}
    with pytest.raises(StudyError, match=r"PostgreSQL 15\.\d+.* does not take the statistics of another server"):
        run(monkeypatch, "same", 1, arms)


def test_extended_statistics_are_not_carried_over(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("numbers.sql").write_text(f"{DATA} CREATE STATISTICS both_columns ON x7, x11 FROM numbers;")
    with pytest.raises(Exception, match=r"the data have extended statistics \(public\.both_columns\), which"):
        run(monkeypatch, "same", 1, APART)


def test_analyze_that_takes_too_much_of_the_blocks_is_told_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("numbers.sql").write_text(DATA + LATE)
    study, digests, said = run(monkeypatch, "drawn", 2, APART)
    assert len(set(digests["one"])) == 1
    assert study.plan.statistics == "once"
    assert "planner statistics drawn once" in study.plan.scope
    assert [text for text in said if text.startswith("the planner's statistics are drawn once: ANALYZE for each trial")]


def test_sessions_of_one_server_have_one_draw_and_servers_in_slices_have_one_each() -> None:
    for key, draws in (("work_mem", 1), ("shared_buffers", 2)):
        arms = {arm: {"settings": {key: size}} for arm, size in (("a", "4MB"), ("b", "8MB"))}
        study = small_study(Path(key), arms=arms, blocks=1, load={"interleave": "auto"}, server={"settings": {}})
        assert study.plan.interleaving is not None
        assert study.plan.shares_server == (draws == 1)
        run_study(study, lambda event: None)
        assert [trial.reason for trial in study.trials()] == [None, None]
        assert sum("statistics" in trial.phases_s for trial in study.trials()) == draws


def test_arms_with_different_statistics_targets_have_a_server_each_where_statistics_are_drawn() -> None:
    targets = {arm: {"settings": {"default_statistics_target": number}} for arm, number in (("a", "10"), ("b", "1000"))}
    for statistics, shares in (("drawn", False), ("once", True)):
        spec = build_study({"load": {"statistics": statistics}, "arms": targets}, "test")
        assert make_plan(spec, 1, "2026-11-20T14:12:00+00:00").shares_server == shares


def test_a_study_that_was_frozen_before_there_was_a_choice_has_statistics_drawn_once() -> None:
    frozen = freeze(build_study({"arms": {"a": {}, "b": {"settings": {"jit": "off"}}}}, "test"))
    assert 'statistics = "drawn"\n' in frozen
    before = thaw(frozen.replace('statistics = "drawn"\n', ""))
    assert before.load.statistics == "once"
    assert make_plan(before, 1, "2026-11-20T14:12:00+00:00").statistics == "once"
