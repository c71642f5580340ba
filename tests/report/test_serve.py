"""The addresses of `pgtrial serve`: what they answer, whom they refuse, and studies that cannot be read."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import psutil
import pytest

from pgtrial.cli import main
from pgtrial.model.errors import PgtrialError, StoreError
from pgtrial.report.serve.catalogue import Catalogue, Query, check_paths
from pgtrial.report.serve.server import serving
from pgtrial.store.bundle import write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.running import ask_to_stop, stop_is_asked
from tests.conftest import EXAMPLES, require_root
from tests.verdict.studies import make_plan, noisy, run

from .conftest import Audit, write_study

PATIENCE_S = 120.0

WRITTEN = shutil.ignore_patterns("verdict.json", "report.*")
"""Leaves the files out of a copy that other tests may have written into the shared studies."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()


@dataclass
class Client:
    port: int
    base: str

    def ask(self, path: str, method: str = "GET", *, base: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, f"{self.base if base is None else base}{path}", headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def listed(self, query: str = "") -> list[str]:
        """Returns the keys of the studies in the list."""
        return re.findall(r'href="[^"]+/study/([^"/]+)"', self.ask(f"/{query}").text)


@pytest.fixture(scope="module")
def folder(studies, tmp_path_factory) -> Path:
    """Returns a folder with two studies with reports, studies without one, a bundle with its unpacked folder, and
    damaged or newer studies that cannot be read. One of the reports is older than its study.
    """
    path = tmp_path_factory.mktemp("served")
    for name in ("demo", "grid", "watched", "hostile"):
        shutil.copytree(studies(name).path, path / name, ignore=WRITTEN)
    for name in ("demo", "grid"):
        main_of("report", path / name)
    (path / "bundle").mkdir()
    write_bundle(StudyDirectory.open(path / "demo"), path / "bundle.tar.xz", everything=False)
    (path / "cut.tar.xz").write_bytes((path / "bundle.tar.xz").read_bytes()[:-100])
    (path / "begun").mkdir()
    (path / "begun" / "plan.json").write_text("{")
    shutil.copytree(studies("demo").path, path / "newer")
    plan = json.loads((path / "newer" / "plan.json").read_text())
    (path / "newer" / "plan.json").write_text(json.dumps({**plan, "format": 99, "later": 1}))
    (path / "notes.txt").write_text("no study")
    return path


def main_of(*arguments: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert ended.value.code == 0


@pytest.fixture(scope="module")
def client(folder) -> Iterator[Client]:
    with serving([folder]) as server:
        address = urlsplit(server.address)
        assert address.port is not None
        yield Client(address.port, address.path.rstrip("/"))


@pytest.fixture(scope="module")
def key(client) -> Callable[[str], str]:
    return lambda name: next(key for key in client.listed() if key.startswith(f"{name}-"))


class TestList:
    def test_every_study_is_listed_with_its_verdict_or_its_trouble(self, client, folder):
        text = client.ask("/").text
        assert "8 studies" in text
        assert text.count("synchronous_commit = off gain") == 4  # demo and its bundle, each with the words of a box
        assert re.search(r"<strong>better</strong> off is 4\d% faster than on", text)
        assert "No verdict yet: 16 of 16 trials are stored." in text
        assert f"{folder / 'cut.tar.xz'} is truncated; copy or download it again" in text
        assert f"{folder / 'begun'} is not a study directory: it has no study.toml" in text
        assert "newer/plan.json was written by a newer pgtrial (format 99); upgrade" in text
        assert "notes.txt" not in text

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("?question=FASTER+from+15", ["grid"]),
            ("?question=gain&verdict=better", ["bundle", "demo"]),
            ("?arm=18", ["grid"]),
            ("?verdict=unreadable", ["begun", "cut", "newer"]),
            ("?since=2026-11-20&until=2026-11-20&arm=on&question=why", ["watched"]),
            ("?since=2026-11-21", []),
            ("?until=2026-11-19", []),
        ],
    )
    def test_studies_are_found_by_question_arm_date_and_verdict(self, client, query, names):
        assert sorted({key.partition("-")[0].partition(".")[0] for key in client.listed(query)}) == names

    def test_a_date_that_is_none_is_one_sentence(self, client):
        assert "&#39;soon&#39; is not a date" in client.ask("/?since=soon").text

    def test_words_of_others_stay_words(self, client, key):
        for page in ("/", f"/study/{key('hostile')}", f"/study/{key('hostile')}/trial/1"):
            text = client.ask(page).text
            assert "<script>alert" not in text
            assert "<img" not in text

    def test_a_folder_without_studies_says_how_to_get_one(self, tmp_path):
        with serving([tmp_path / "results"]) as server:
            address = urlsplit(server.address)
            text = Client(address.port or 0, address.path.rstrip("/")).ask("/").text
        assert "pgtrial demo" in text

    def test_the_studies_of_a_gate_are_listed_with_the_other_studies(self, studies, tmp_path):
        for path in ("alone", "gate/1-select", "gate/2-orders", "folder/not-listed"):
            shutil.copytree(studies("demo").path, tmp_path / path)
        (tmp_path / "gate" / "studies.json").touch()
        names = [study.path.relative_to(tmp_path).as_posix() for study in Catalogue([tmp_path]).studies()]
        assert sorted(names) == ["alone", "gate/1-select", "gate/2-orders"]

    def test_a_verdict_is_stale_when_a_trial_was_added(self, studies, tmp_path):
        plan = make_plan()
        trials = run(plan, noisy({"off": 1.4}), upto=5)
        study = write_study(tmp_path / "s", plan, trials[:4], Audit(findings=[]), "Stale?")
        main_of("report", study.path)
        catalogue = Catalogue([tmp_path])
        assert catalogue.studies()[0].words == ["undecided"]
        with study.locked():
            assert catalogue.studies()[0].words == ["running"]
        where = study.begin_trial(plan.trials[4])
        shutil.copy(study.trial_path(trials[0]) / "timeline.parquet", where)
        study.write_trials([trials[4]])
        assert catalogue.studies()[0].words == ["unfinished"]
        with study.locked():
            assert catalogue.studies()[0].words == ["running"]

    def test_what_may_not_be_read_is_listed_with_its_reason(self, studies, disk_path):
        require_root()
        for name in ("hidden", "open"):
            shutil.copytree(studies("demo").path, disk_path / name, ignore=WRITTEN)
        for path in (disk_path / "open", *(disk_path / "open").rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (disk_path / "hidden").chmod(0o700)
        try:
            os.seteuid(65534)
            found = {study.name: study.sentences for study in Catalogue([disk_path]).studies()}
        finally:
            os.seteuid(0)
        (said,) = found["hidden"]
        assert said.startswith(f"{disk_path / 'hidden'} cannot be read by this account; run pgtrial as its owner")
        assert "No verdict yet" in found["open"][0]

    def test_an_unknown_date_fits_no_dates(self, folder):
        found = next(study for study in Catalogue([folder]).studies() if study.name == "begun")
        assert Query().fits(found)
        assert not Query(arm="on").fits(found)


class TestStudy:
    def test_the_page_has_the_brief_and_every_trial(self, client, key):
        text = client.ask(f"/study/{key('demo')}").text
        assert re.search(r"<h2>off is 4\d% faster than on</h2>", text)
        assert "8 blocks of 2 x 6s" in text
        assert len(re.findall(r"/trial/\d+", text)) == 16

    def test_the_report_is_made_for_the_answer_and_written_nowhere(self, client, key, folder):
        before = {path: path.stat().st_mtime_ns for path in (folder / "watched").rglob("*")}
        answer = client.ask(f"/study/{key('watched')}/report")
        assert '<h2 id="server-title">What the server did</h2>' in answer.text
        assert "sandbox" in answer.headers["content-security-policy"]
        assert {path: path.stat().st_mtime_ns for path in (folder / "watched").rglob("*")} == before

    def test_data_can_be_downloaded(self, client, key):
        study = f"/study/{key('demo')}"
        verdict = client.ask(f"{study}/verdict.json")
        assert json.loads(verdict.content)["primary"][0]["verdict"] == "better"
        assert verdict.headers["content-disposition"] == 'attachment; filename="demo-verdict.json"'
        assert pl.read_csv(client.ask(f"{study}/trials.csv").content).height == 16
        assert pl.read_parquet(io.BytesIO(client.ask(f"{study}/seconds.parquet").content)).height == 128

    def test_a_bundle_is_a_study(self, client, key):
        study = f"/study/{key('bundle.tar.xz')}"
        assert "(bundle)" in client.ask(study).text
        assert pl.read_csv(client.ask(f"{study}/trials.csv").content).height == 16
        assert "tps by second" not in client.ask(f"{study}/trial/3").text
        assert "Committed transactions by second" in client.ask(f"{study}/trial/3").text

    def test_a_trial_has_every_second_and_what_sessions_waited_for(self, client, key):
        text = client.ask(f"/study/{key('watched')}/trial/1").text
        assert text.count("Table of") == 2
        assert "IO:WalSync" in text or "nothing: on a CPU" in text
        specs = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)[1])
        seconds = next(rows for rows in specs["trial-0"]["datasets"].values() if "tps" in rows[0])
        assert [row["s"] for row in seconds] == list(range(-2, 6))

    def test_two_studies_stand_side_by_side(self, client, key):
        text = client.ask(f"/compare?study={key('demo')}&study={key('grid')}").text
        assert "How much does synchronous_commit" in text
        assert "Has PostgreSQL become faster" in text
        assert '<th scope="row">tpcb-like, scale 20, 8 clients</th><td>15</td><td class="n">–</td>' in text
        assert "settings.synchronous_commit" in text
        assert "tick two" in client.ask(f"/compare?study={key('demo')}").text

    @pytest.mark.parametrize("name", ["cut.tar.xz", "begun", "newer"])
    def test_a_study_that_cannot_be_read_is_a_page_of_one_sentence(self, client, key, name):
        answer = client.ask(f"/study/{key(name)}")
        assert answer.status == 409
        assert answer.text.count("<p>") == 2

    def test_a_damaged_trial_is_one_sentence(self, studies, tmp_path):
        shutil.copytree(studies("demo").path, tmp_path / "s")
        next(tmp_path.glob("s/trials/*/trial.json")).write_text("{")
        with serving([tmp_path]) as server:
            address = urlsplit(server.address)
            asking = Client(address.port or 0, address.path.rstrip("/"))
            answer = asking.ask(f"/study/{asking.listed()[0]}")
        assert answer.status == 409
        assert "delete the directory" in answer.text

    @pytest.mark.parametrize(
        "path", ["/nothing", "/study/none", "/study/../../etc/passwd", "/static/..%2fserve.css", "//"]
    )
    def test_what_is_not_there_is_one_sentence(self, client, path):
        answer = client.ask(path)
        assert answer.status == 404
        assert answer.text.count("<p>") == 2

    def test_a_trial_that_is_not_there_is_one_sentence(self, client, key):
        assert "demo has no trial 99." in client.ask(f"/study/{key('demo')}/trial/99").text


class TestGate:
    @pytest.mark.parametrize("token", ["", "/", "/wrong", "/%00", "/" + "x" * 4000])
    def test_another_token_is_refused(self, client, token):
        answer = client.ask("/", base=token)
        assert answer.status == 403
        assert "The token in this address is not the one of this server" in answer.text
        assert client.base not in answer.text

    @pytest.mark.parametrize("host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
    def test_another_host_is_refused(self, client, host):
        answer = client.ask("/", Host=host.format(port=client.port))
        assert answer.status == 403
        assert "This server answers only for its own address" in answer.text

    @pytest.mark.parametrize(
        "origin", ["http://other.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
    )
    def test_another_origin_is_refused(self, client, origin):
        answer = client.ask("/", Origin=origin.format(port=client.port))
        assert answer.status == 403
        assert "A page of another site asked" in answer.text

    def test_the_own_origins_are_let_through(self, client):
        for name in ("127.0.0.1", "localhost", "[::1]"):
            own = f"{name}:{client.port}"
            assert client.ask("/", Host=own, Origin=f"http://{own}").status == 200

    def test_every_answer_forbids_the_network(self, client, key):
        for answer in (client.ask("/"), client.ask("/", base="/wrong"), client.ask(f"/study/{key('demo')}/report")):
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'")
            assert "http" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"

    def test_nothing_listens_beyond_the_loopback(self, client):
        listening = {each.laddr for each in psutil.Process().net_connections("tcp") if each.status == "LISTEN"}
        assert {address.ip for address in listening if address.port == client.port} <= {"127.0.0.1", "::1"}
        assert ("127.0.0.1", client.port) in listening


class TestStop:
    def test_a_running_study_is_asked_to_stop(self, studies, tmp_path):
        shutil.copytree(studies("began").path, tmp_path / "s")
        study = StudyDirectory.open(tmp_path / "s")
        with serving([tmp_path]) as server:
            address = urlsplit(server.address)
            asking = Client(address.port or 0, address.path.rstrip("/"))
            stop = f"/study/{asking.listed()[0]}/stop"
            assert "there is nothing to stop" in asking.ask(stop, "POST").text
            assert asking.ask(stop).status == 405
            with study.locked():
                assert asking.ask(stop, "POST", Origin="http://other.example").status == 403
                assert not stop_is_asked(study.path)
                answer = asking.ask(stop, "POST")
                assert (answer.status, answer.headers["location"]) == (
                    303,
                    f"{asking.base}{stop.removesuffix('/stop')}",
                )
                assert stop_is_asked(study.path)
                assert (
                    "pgtrial was asked to stop: the study ends after its current block."
                    in asking.ask(stop.removesuffix("/stop")).text
                )

    def test_the_command_asks_too(self, studies, tmp_path, capsys):
        shutil.copytree(studies("began").path, tmp_path / "s")
        study = StudyDirectory.open(tmp_path / "s")
        with study.locked():
            main_of("stop", study.path)
        assert "ends after its current block" in capsys.readouterr().out
        with pytest.raises(StoreError, match="there is nothing to stop"):
            ask_to_stop(study.path)


class TestCommand:
    @pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
    def test_it_serves_until_a_signal_ends_it(self, studies, tmp_path, signal_):
        shutil.copytree(studies("began").path, tmp_path / "s")
        program = "from pgtrial.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", str(tmp_path), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
            assert served.stdout is not None
            assert served.stderr is not None
            address = urlsplit(served.stdout.readline().strip())
            assert served.stderr.readline() == "pgtrial: press Ctrl-C to stop the web server\n"
            asking = Client(address.port or 0, address.path.rstrip("/"))
            (key,) = asking.listed()
            with StudyDirectory.open(tmp_path / "s").locked():  # a page that follows a study does not keep it
                following = http.client.HTTPConnection("127.0.0.1", asking.port, timeout=PATIENCE_S)
                following.request("GET", f"{asking.base}/study/{key}/live?running=1")
                assert following.getresponse().readline() == b"event: now\n"
                served.send_signal(signal_)
                assert served.wait(PATIENCE_S) == 0
            following.close()
            assert served.stderr.read() == ""

    def test_a_port_in_use_is_one_sentence_and_status_3(self, client, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["serve", str(EXAMPLES), "--port", str(client.port), "--no-browser"])
        assert ended.value.code == 3
        assert f"error: port {client.port} cannot be used: Address already in use" in capsys.readouterr().err

    def test_a_path_that_holds_no_study_is_one_sentence(self, tmp_path):
        with pytest.raises(StoreError, match="nowhere: No such file or directory; name study directories"):
            check_paths([tmp_path / "nowhere"])
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="file is neither a folder nor a bundle; name study directories"):
            check_paths([tmp_path / "file"])

    def test_a_port_that_only_ipv6_has_taken_is_in_use(self):
        with socket.socket(socket.AF_INET6) as taken:
            try:
                taken.bind(("::1", 0))
            except OSError:
                pytest.skip("this machine has no IPv6")
            taken.listen()
            with pytest.raises(PgtrialError, match="Address already in use"), serving([], taken.getsockname()[1]):
                pass
