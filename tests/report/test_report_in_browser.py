"""The report in a real browser, offline: every chart draws, nothing is asked of the network, nothing complains."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

from pgtrial.report.data import read_data
from pgtrial.report.tables.trials import trial_table

from .browser import PATIENCE_S

pytestmark = pytest.mark.browser


MARKS = ", ".join(f":scope svg g.mark-{mark}" for mark in ("symbol path", "line path", "rule line", "area path"))


@pytest.fixture(scope="module", autouse=True)
def _offline(browser):
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )


def _open(browser: WebDriver, path: Path, *, width: int = 1400, scheme: str = "light") -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get((path / "report.html").as_uri())
    WebDriverWait(browser, PATIENCE_S).until(
        lambda page: page.execute_script("return document.documentElement.dataset.charts") == "drawn"
    )


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("demo", 6),
        ("grid", 23),
        ("sizes", 18),
        ("long", 11),
        ("withheld", 6),
        ("failing", 6),
        ("hostile", 6),
        ("disturbed", 6),
        ("interleaved", 11),
        ("watched", 8),
        ("hosted", 12),
        ("screening", 1),
    ],
)
def test_every_chart_draws_marks_without_network_or_complaint(browser, reports, name, charts):
    _open(browser, reports(name).path)
    marks = browser.execute_script(
        "return [...document.querySelectorAll('[data-chart]')]"
        ".map((c) => [c.dataset.chart, c.querySelectorAll(arguments[0]).length])",
        MARKS,
    )
    assert len(marks) == charts
    assert [chart for chart, drawn in marks if not drawn] == []
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((r) => r.name)") == []


@pytest.mark.parametrize("width", [420, 1400])
def test_the_page_never_scrolls_sideways(browser, reports, width):
    _open(browser, reports("grid").path, width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_charts_follow_the_readers_colour_scheme(browser, reports):
    path = reports("demo").path
    colours = []
    for scheme in ("light", "dark"):
        _open(browser, path, scheme=scheme)
        colours.append(
            browser.execute_script(
                "return [getComputedStyle(document.body).backgroundColor,"
                " document.querySelector('[data-chart] svg text').getAttribute('fill')]"
            )
        )
    assert colours[0][0] != colours[1][0]
    assert colours[0][1] != colours[1][1]


def test_a_block_can_be_singled_out_in_the_timeline(browser, reports):
    _open(browser, reports("demo").path)
    lines = "return document.querySelectorAll('[data-chart=\"timeline-0\"] g.mark-line path').length"
    every = browser.execute_script(lines)
    browser.execute_script(
        "const s = document.querySelector('[data-chart=\"timeline-0\"] select');"
        "s.selectedIndex = 3; s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change'));"
    )
    WebDriverWait(browser, PATIENCE_S).until(lambda page: page.execute_script(lines) == 4)
    assert every == 18


def test_words_of_others_stay_words(browser, reports):
    _open(browser, reports("hostile").path)
    heading = browser.execute_script("return document.querySelector('h1').textContent")
    assert heading == "<script>alert(3)</script> & `code`?"
    assert browser.execute_script("return document.querySelectorAll('main img, main script').length") == 0


def test_every_chart_and_table_has_its_words(browser, reports):
    _open(browser, reports("grid").path)
    assert browser.execute_script("return [...document.querySelectorAll('[data-chart]')].every((c) => c.ariaLabel)")
    assert browser.execute_script("return [...document.querySelectorAll('table')].every((t) => t.caption?.textContent)")
    assert browser.execute_script("return document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize("event", ["toggle", "beforeprint"])
def test_the_rows_of_a_long_table_come_when_they_are_looked_at(browser, reports, event):
    _open(browser, reports("long").path)
    assert (reports("long").path / "report.html").stat().st_size < 1_600_000
    cells = (
        "return [...document.querySelectorAll('#trials tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
    )
    assert browser.execute_script(cells) == []
    if event == "toggle":
        browser.execute_script("document.querySelector('#trials details').open = true")
    else:
        WebDriverWait(browser, PATIENCE_S).until(
            lambda page: page.execute_script(f"window.dispatchEvent(new Event('beforeprint')); {cells}")
        )
    rows = WebDriverWait(browser, PATIENCE_S).until(lambda page: page.execute_script(cells))
    written = trial_table(read_data(reports("long"))).rows
    assert len(rows) == 900
    assert rows == [[cell.strip() for cell in row] for row in written]


@pytest.mark.parametrize("name", ["began", "empty"])
def test_a_study_that_has_just_begun_has_a_page_without_complaint(browser, reports, name):
    _open(browser, reports(name).path)
    assert browser.get_log("browser") == []
    assert "undecided" in browser.execute_script("return document.querySelector('.verdict').textContent")


def test_without_javascript_the_report_stays_readable(browser, reports):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get((reports("demo").path / "report.html").as_uri())
        assert "faster than on" in browser.find_element(By.CSS_SELECTOR, ".verdict h2").text
        assert "The charts need JavaScript" in browser.find_element(By.TAG_NAME, "main").text
        assert not any(figure.is_displayed() for figure in browser.find_elements(By.TAG_NAME, "figure"))
        folded = browser.find_element(By.CSS_SELECTOR, "section details:has(tbody)")
        folded.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert folded.find_element(By.CSS_SELECTOR, "tbody td").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
