"""`pgtrial serve` in a real browser: a study that is being written, 200 studies, and who is refused."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

from pgtrial.model.records.trial import Trial
from pgtrial.report.build import build_report
from pgtrial.report.serve.server import serving
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.histories.directory import HistoryDirectory
from pgtrial.store.running import stop_is_asked
from tests.histories import levels
from tests.verdict.studies import make_plan, noisy, run

from .browser import PATIENCE_S
from .conftest import LOCALE, Audit, timeline, write_study
from .test_report_in_browser import MARKS

pytestmark = pytest.mark.browser


@contextmanager
def watched(browser: WebDriver, folder: Path) -> Iterator[str]:
    """Yields the address of a server. At the end it asserts that no page had an error or requested anything from
    elsewhere.
    """
    # so high that nothing is scrolled to, which the pages do smoothly: a click would miss
    metrics = {"width": 1400, "height": 14_000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    with serving([folder]) as server:
        yield server.address
        browser.get("about:blank")
        assert browser.get_log("browser") == []
        own = urlsplit(server.address)
        asked = {urlsplit(url) for url in _requests(browser)}
        assert {(each.scheme, each.netloc) for each in asked if each.scheme not in ("about", "data")} == {
            ("http", own.netloc)
        }


def _requests(browser: WebDriver) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def _wait(browser: WebDriver, script: str, *arguments: object) -> object:
    return WebDriverWait(browser, PATIENCE_S).until(lambda page: page.execute_script(f"return {script}", *arguments))


def _follow(browser: WebDriver, element: WebElement) -> None:
    """Clicks a link or a button and waits until its page has replaced this one. A click can return before the browser
    has begun to load the other page.
    """
    element.click()
    WebDriverWait(browser, PATIENCE_S).until(staleness_of(element))


def _text(browser: WebDriver, selector: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector))


def _shown(browser: WebDriver, selector: str) -> str:
    """Returns the visible text of an element of a page that reloads itself without JavaScript. If that happens between
    finding the element and reading it, it is found again.
    """
    wait = WebDriverWait(browser, PATIENCE_S, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(lambda page: page.find_element(By.CSS_SELECTOR, selector).text)


def _wait_for_text(browser: WebDriver, selector: str, text: str) -> None:
    _wait(browser, "document.querySelector(arguments[0])?.textContent.includes(arguments[1])", selector, text)


def _begin(study: StudyDirectory, trial: Trial, seconds: int) -> None:
    """The trial under way, as its engine writes it."""
    where = study.hidden_path(study.plan.trials[trial.index])
    if not where.exists():
        study.begin_trial(study.plan.trials[trial.index])
    with (where / "engine.jsonl").open("a") as file:
        for second in range(seconds):
            tick = {"event": "tick", "t": second, "phase": "measure", "second": second, "seconds": 1.0}
            file.write(json.dumps({**tick, "transactions": 4321 + second}) + "\n")
        file.write('{"event":"tick","phase":"mea')  # half a line


def _end(study: StudyDirectory, trial: Trial) -> None:
    where = study.begin_trial(study.plan.trials[trial.index])
    timeline(trial).write_parquet(where / "timeline.parquet")
    study.write_trials([trial])


def test_a_study_is_followed_while_it_is_written(browser, tmp_path):
    plan = make_plan()
    trials = run(plan, noisy({"off": 1.4}))
    study = write_study(tmp_path / "s", plan, trials[:12], Audit(findings=[LOCALE]), "Is it followed?")
    with watched(browser, tmp_path) as address, study.locked():
        browser.get(address)
        assert _text(browser, ".chip strong") == "running"
        _follow(browser, browser.find_element(By.LINK_TEXT, "Is it followed?"))
        _wait_for_text(browser, "[data-part=now]", "12 of 16 trials, 6 of 8 blocks")
        assert "Between two trials." in _text(browser, "[data-part=now]")
        assert "faster than on so far" in _text(browser, ".estimate")
        assert "95% interval +" in _text(browser, ".estimate")
        assert "the next look at the verdict is after block 8" in _text(browser, ".estimate")
        assert LOCALE.message in _text(browser, "[data-part=so-far]")
        points = "document.querySelector('.narrowing polyline').getAttribute('points').split(' ').length"
        before = browser.execute_script(f"return {points}")

        _begin(study, trials[12], 3)
        _wait_for_text(browser, ".tps", "4,323 tps, measuring, second 3")
        assert len(_text(browser, ".queue").split(",")) == 3
        assert browser.execute_script("return document.querySelector('.spark polyline').points.length") == 3
        _end(study, trials[12])
        _end(study, trials[13])
        _wait_for_text(browser, "[data-part=now]", "14 of 16 trials, 7 of 8 blocks")
        _wait(browser, f"{points} === arguments[0]", before + 1)

        browser.find_element(By.CSS_SELECTOR, ".stop button").click()
        _wait_for_text(browser, ".stop", "pgtrial was asked to stop: the study ends after its current block.")
        assert stop_is_asked(study.path)
    with watched(browser, tmp_path) as address:
        with study.locked():
            browser.get(address)
            _follow(browser, browser.find_element(By.LINK_TEXT, "Is it followed?"))
            _wait_for_text(browser, "[data-part=now]", "14 of 16 trials")
        _wait_for_text(browser, ".verdict h2", "Undecided after 7 blocks")
        with study.locked():  # a lab goes on with it
            _wait_for_text(browser, "[data-part=now]", "14 of 16 trials")


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    """Returns a folder with 200 studies; every tenth has trials and a verdict."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(200):
        plan = make_plan(("on", f"variant-{number % 7}"), blocks=8)
        plan = plan.model_copy(
            update={"created": f"2026-{number % 12 + 1:02d}-15T10:00:00+00:00", "name": f"s{number}"}
        )
        better = number % 10 == 0
        trials = run(plan, noisy({f"variant-{number % 7}": 1.4})) if better else []
        study = write_study(folder / f"s{number:03d}", plan, trials, Audit(findings=[]), f"Is number {number} faster?")
        if better:
            build_report(study)
    return folder


def test_200_studies_are_searched_at_once(browser, many):
    rows = "document.querySelectorAll('.studies tbody tr').length"
    with watched(browser, many) as address:
        browser.get(address)
        assert browser.execute_script(f"return {rows}") == 200
        box = browser.find_element(By.NAME, "question")
        box.send_keys("number 17")
        _wait(browser, f"{rows} === 11")
        assert "11 of 200 studies" in _text(browser, "caption")
        box.clear()
        box.send_keys("number")
        browser.find_element(By.NAME, "verdict").send_keys("better")
        _wait(browser, f"{rows} === 20")
        browser.execute_script(
            "const since = document.querySelector('[name=since]'); since.value = '2026-07-01';"
            "since.dispatchEvent(new Event('input', {bubbles: true}));"
        )
        _wait(browser, f"{rows} < 20")
        found = browser.execute_script(f"return {rows}")
        browser.refresh()
        assert browser.execute_script(f"return {rows}") == found


def test_the_list_draws_intervals_and_its_fields_stand_on_one_line(browser, many):
    with watched(browser, many) as address:
        browser.get(f"{address}?verdict=better")
        bars = browser.execute_script(
            "return [...document.querySelectorAll('.studies tbody tr')].map((row) => {"
            "const [low, high, zero] = [...row.querySelectorAll('.interval, .zero')]"
            ".sort((a, b) => b.classList.contains('interval') - a.classList.contains('interval'))"
            ".flatMap((line) => line.classList.contains('zero') ? [line.x1] : [line.x1, line.x2])"
            ".map((end) => end.baseVal.value);"
            "return [low, high, zero, row.querySelector('.strip').getBoundingClientRect().width]})"
        )
        assert len(bars) == 20
        assert all(0 < zero < low < high < 100 and width > 100 for low, high, zero, width in bars), "all are better"
        places = "[...document.querySelectorAll('.search input, .search select, .search button')]"
        boxes = browser.execute_script(f"return {places}.map((e) => e.getBoundingClientRect().toJSON())")
        assert len(boxes) == 6
        assert len({(box["top"], box["bottom"]) for box in boxes}) == 1
        assert [box["left"] for box in boxes] == sorted(box["left"] for box in boxes)
        browser.get(f"{address}?verdict=unfinished")
        assert not browser.find_elements(By.CSS_SELECTOR, ".studies .strip")


def test_two_studies_stand_side_by_side(browser, many):
    with watched(browser, many) as address:
        browser.get(f"{address}?verdict=better")
        for box in browser.find_elements(By.CSS_SELECTOR, "input[type=checkbox]")[:2]:
            box.click()
        _follow(browser, browser.find_element(By.CSS_SELECTOR, "button.side"))
        _wait(browser, "document.querySelectorAll('.beside .verdict').length === 2")
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_trial_is_drawn_second_by_second(browser, studies, tmp_path):
    for name in ("watched", "hosted"):
        shutil.copytree(studies(name).path, tmp_path / name)
    with watched(browser, tmp_path) as address:
        for name, charts in (("Why is it?", 3), ("What did the server do?", 7)):
            browser.get(address)
            _follow(browser, browser.find_element(By.LINK_TEXT, name))
            _follow(browser, browser.find_element(By.LINK_TEXT, "2"))
            _wait(browser, "document.documentElement.dataset.charts === 'drawn'")
            marks = browser.execute_script(
                "return [...document.querySelectorAll('[data-chart]')]"
                ".map((c) => c.querySelectorAll(arguments[0]).length)",
                MARKS,
            )
            assert len(marks) >= charts
            assert all(marks)


def test_the_report_opens_from_its_study(browser, studies, tmp_path):
    shutil.copytree(studies("demo").path, tmp_path / "demo")
    with watched(browser, tmp_path) as address:
        browser.get(address)
        _follow(browser, browser.find_element(By.CSS_SELECTOR, "tbody a"))
        _follow(browser, browser.find_element(By.LINK_TEXT, "report"))
        _wait(browser, "document.documentElement.dataset.charts === 'drawn'")
        assert browser.execute_script("return self.origin") == "null"


def test_a_history_has_its_series_its_change_and_links_to_its_studies(browser, studies, tmp_path):
    study = StudyDirectory.open(shutil.copytree(studies("demo").path, tmp_path / "demo"))
    entries = levels(0.0, -0.05)
    entries[3] = entries[3].model_copy(update={"study": study.plan.identity})
    HistoryDirectory(tmp_path).add("speed-1a2b3c4d", entries)
    with watched(browser, tmp_path) as address:
        browser.get(address)
        assert "it fell by 5" in _text(browser, "#histories tbody")
        _follow(browser, browser.find_element(By.LINK_TEXT, "speed-1a2b3c4d"))
        _wait(browser, "document.querySelectorAll('.history circle').length === 20")
        (sentence,) = (item.text for item in browser.find_elements(By.CSS_SELECTOR, ".changes li"))
        assert sentence.endswith("between commit 9 and commit 10; the levels rest on 10 and 10 commits")
        lefts = browser.execute_script(
            "return [...document.querySelectorAll('.history circle, .history .change')]"
            ".map((mark) => [mark.getBoundingClientRect().left, mark.getBoundingClientRect().top, mark.tagName])"
        )
        (change,) = (left for left, _, kind in lefts if kind == "line")
        points = [(left, top) for left, top, kind in lefts if kind == "circle"]
        assert points == sorted(points)[:20]
        assert points[9][0] < change < points[10][0]
        assert max(top for _, top in points[:10]) < min(top for _, top in points[10:]), "the later level is lower"
        strokes = "return getComputedStyle(document.querySelector('.history .change')).strokeDasharray"
        assert browser.execute_script(strokes) == "6px, 3px"
        assert [row.text for row in browser.find_elements(By.CSS_SELECTOR, "tr.marked td:last-child")] == ["new level"]
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        links = browser.find_elements(By.CSS_SELECTOR, "main a[href*='/study/']")
        assert [link.text.partition(":")[0] for link in links] == ["commit 3, 2026-11-04", "2026-11-04"]
        data = browser.find_element(By.LINK_TEXT, "history.json").get_attribute("href")
        shown = browser.execute_async_script("fetch(arguments[0]).then((a) => a.json()).then(arguments[1])", data)
        assert (len(shown[0]["entries"]), shown[0]["changes"][0]["after"]) == (20, "commit 10")
        _follow(browser, links[0])
        _wait_for_text(browser, "h1", "gain")


def test_without_javascript_the_pages_stay_readable(browser, studies, tmp_path):
    shutil.copytree(studies("demo").path, tmp_path / "demo")
    study = shutil.copytree(studies("began").path, tmp_path / "began")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        with watched(browser, tmp_path) as address, StudyDirectory.open(study).locked():
            browser.get(address)
            browser.find_element(By.NAME, "question").send_keys("running")
            _follow(browser, browser.find_element(By.XPATH, "//button[text()='Search']"))
            assert "question=running" in browser.current_url
            (link,) = browser.find_elements(By.CSS_SELECTOR, "tbody a")
            _follow(browser, link)
            assert "5 of 16 trials" in _shown(browser, "main")
            assert "off is" in _shown(browser, ".estimate")
            browser.get(f"{address}?question=gain")
            _follow(browser, browser.find_element(By.CSS_SELECTOR, "tbody a"))
            assert "faster than on" in browser.find_element(By.CSS_SELECTOR, ".verdict h2").text
            _follow(browser, browser.find_element(By.LINK_TEXT, "1"))
            assert "The charts need JavaScript" in browser.find_element(By.TAG_NAME, "main").text
            assert len(browser.find_elements(By.CSS_SELECTOR, "details tbody tr")) == 8
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@contextmanager
def _another_site(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_other_origins_other_names_and_other_tokens_are_refused(browser, studies, tmp_path):
    path = shutil.copytree(studies("began").path, tmp_path / "studies" / "began")
    study = StudyDirectory.open(path)
    with serving([tmp_path / "studies"]) as server, _another_site(tmp_path) as site, study.locked():
        address = urlsplit(server.address)
        browser.get(server.address)
        page = browser.find_element(By.CSS_SELECTOR, "tbody a").get_attribute("href")
        # even a site that knows the token
        (tmp_path / "form.html").write_text(f'<form method="post" action="{page}/stop"><button>go</button></form>')
        browser.get(f"{site}/form.html")
        _follow(browser, browser.find_element(By.TAG_NAME, "button"))
        assert browser.current_url.startswith(server.address)
        assert browser.find_element(By.TAG_NAME, "body").text == (
            "A page of another site asked for this one, and pgtrial serve answers only its own pages."
        )
        assert not stop_is_asked(path)
        browser.get(server.address.replace("127.0.0.1", "rebound.example"))
        assert "This server answers only for its own address" in browser.find_element(By.TAG_NAME, "body").text
        browser.get(f"http://{address.netloc}/guessed/")
        assert "The token in this address is not the one" in browser.find_element(By.TAG_NAME, "body").text
        browser.get(f"http://localhost:{address.port}{address.path}")
        assert browser.find_element(By.CSS_SELECTOR, "tbody a").text == "Is it running?"
