"""A real browser for the pages of reports and of `pgtrial serve`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

from pgtrial.servers.access import reserved_port

PATIENCE_S = 180
"""The limit for a page that hangs, seconds; on a machine that others use as well a page draws in seconds."""


def _program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has none of {', '.join(names)}; install chromium and chromium-driver")
    pytest.skip(f"none of {', '.join(names)} is installed; no page is looked at in a browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """Yields Chromium, whose logs contain a page's errors and the addresses that it requested."""
    options = Options()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    driver = _program("chromedriver")
    home = tmp_path_factory.mktemp("home")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
                 "--disable-dev-shm-usage", "--host-resolver-rules=MAP rebound.example 127.0.0.1",
                 f"--user-data-dir={home / 'profile'}"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # what a browser keeps of a user, and a proxy of the machine's, are not for a test
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | {"HOME": str(home)}
    with pytest.MonkeyPatch.context() as patch, reserved_port() as port:
        patch.setenv("no_proxy", "localhost")
        chrome = webdriver.Chrome(options=options, service=Service(driver, port=port, env=env))
        try:
            # else a page that draws for half a minute does not answer in time
            chrome.set_script_timeout(PATIENCE_S)
            chrome.execute_cdp_cmd("Network.enable", {})
            yield chrome
        finally:
            chrome.quit()
