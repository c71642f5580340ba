"""The addresses of the local web server: pages, files to download, the events of a running study, and the request to
stop a study."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from datetime import date

import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pgtrial.model.errors import PgtrialError, StoreError
from pgtrial.model.quoting import quoted
from pgtrial.model.resources import resource
from pgtrial.model.units import slug
from pgtrial.report import html
from pgtrial.report.frames import second_frame, trial_frame
from pgtrial.report.sections import sections
from pgtrial.report.serve.catalogue import RUNNING, UNFINISHED, UNREADABLE, Catalogue, Glance, Query
from pgtrial.report.serve.gate import REPORT_POLICY
from pgtrial.report.serve.histories import Histories, History
from pgtrial.report.serve.live import Live
from pgtrial.report.serve.pages import Pages
from pgtrial.store.bundle import open_study
from pgtrial.store.files import values_of
from pgtrial.store.running import ask_to_stop

_LOOK_S = 1.0
"""The pause in seconds before a running study is read again. A shorter pause would find nothing new, since the load
engine writes one line in each second."""


class Site:
    """The addresses of one web server. `closing` returns true when the server is about to end."""

    def __init__(
        self, catalogue: Catalogue, histories: Histories, base: str, folders: str, closing: Callable[[], bool]
    ):
        self._catalogue = catalogue
        self._histories = histories
        self._base = base
        self._pages = Pages(base, folders)
        self._closing = closing
        self._live: dict[str, Live] = {}

    def app(self) -> Starlette:
        """Returns the application with all addresses. It does not check who sends a request. The caller must put the
        class Gate in front of it, which refuses requests without the token of this server."""
        study = "/study/{key}"
        made = Starlette(
            routes=[
                Route("/", self.list),
                Route("/compare", self.compare),
                Route(study, self.study),
                Route(f"{study}/report", self.report),
                Route(f"{study}/live", self.live),
                Route(f"{study}/stop", self.stop, methods=["POST"]),
                Route(f"{study}/trial/{{number:int}}", self.trial),
                Route(f"{study}/verdict.json", self.verdict),
                Route(f"{study}/trials.csv", self.trials),
                Route(f"{study}/seconds.parquet", self.seconds),
                Route("/history/{key}", self.history),
                Route("/history/{key}/history.json", self.history_data),
                Route("/static/{name}", self.static),
            ],
            exception_handlers=dict.fromkeys((HTTPException, PgtrialError, Exception), self._wrong),
        )
        # the addresses of such redirects would not contain the token
        made.router.redirect_slashes = False
        return made

    # ---- pages

    def list(self, request: Request) -> Response:
        """Returns the page with all histories, and with all studies or those that match the search form."""
        query, refused = _query(request)
        return HTMLResponse(self._pages.list(self._catalogue.studies(), self._histories.all(), query, refused))

    def study(self, request: Request) -> Response:
        """Returns the page of a study. While the study runs, only the results of complete blocks are computed."""
        study = self._asked(request.path_params["key"])
        look = self._of(study).look() if study.words[0] in (RUNNING, UNFINISHED) and not study.is_bundle else None
        data = None if look is not None and look.running else self._catalogue.data(study)
        return HTMLResponse(self._pages.study(study, data, look, self._catalogue.studies()))

    def compare(self, request: Request) -> Response:
        """Returns the page that shows two studies side by side."""
        keys = list(dict.fromkeys(request.query_params.getlist("study")))
        if len(keys) != 2:
            raise HTTPException(
                400,
                f"This page shows exactly two studies side by side, but {len(keys)} were chosen; tick two studies "
                "in the list.",
            )
        studies = [self._asked(key) for key in keys]
        return HTMLResponse(self._pages.compare([(study, self._catalogue.data(study)) for study in studies]))

    def trial(self, request: Request) -> Response:
        """Returns the page of one trial, second by second."""
        study = self._asked(request.path_params["key"])
        data = self._catalogue.data(study)
        wanted = next((trial for trial in data.trials if trial.index + 1 == request.path_params["number"]), None)
        if wanted is None:
            raise HTTPException(
                404,
                f"{study.name} has no trial {request.path_params['number']}. The page of the study lists its trials.",
            )
        return HTMLResponse(self._pages.trial(study, data, wanted))

    def history(self, request: Request) -> Response:
        """Returns the page of one history with its series."""
        history = self._asked_history(request)
        return HTMLResponse(self._pages.history(history, self._catalogue.studies()))

    def report(self, request: Request) -> Response:
        """Returns the report of a study, which is computed for this request."""
        data = self._catalogue.data(self._asked(request.path_params["key"]))
        return HTMLResponse(html.render(data, sections(data)), headers={"Content-Security-Policy": REPORT_POLICY})

    # ---- data

    def verdict(self, request: Request) -> Response:
        """Returns the content of verdict.json, computed from the trials."""
        study = self._asked(request.path_params["key"])
        text = self._catalogue.data(study).result.model_dump_json(indent=1) + "\n"
        return _download(text.encode(), "application/json", study.name, "verdict.json")

    def history_data(self, request: Request) -> Response:
        """Returns the series of one history with their changes, as JSON."""
        history = self._asked_history(request)
        text = json.dumps(history.content, indent=1) + "\n"
        return _download(text.encode(), "application/json", history.name, "history.json")

    def trials(self, request: Request) -> Response:
        """Returns a CSV file with a row for each trial."""
        study = self._asked(request.path_params["key"])
        with open_study(study.path) as opened, values_of(study.path):
            text = trial_frame(opened).with_columns(_no_formulas()).write_csv()
        return _download(text.encode(), "text/csv", study.name, "trials.csv")

    def seconds(self, request: Request) -> Response:
        """Returns a Parquet file with a row for each second of each trial."""
        study = self._asked(request.path_params["key"])
        file = io.BytesIO()
        with open_study(study.path) as opened, values_of(study.path):
            second_frame(opened).write_parquet(file)
        return _download(file.getvalue(), "application/vnd.apache.parquet", study.name, "seconds.parquet")

    def static(self, request: Request) -> Response:
        """Returns a style sheet or a script."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(_STATIC[name](), media_type=kind, headers={"Cache-Control": "private, max-age=86400"})

    # ---- a running study

    async def live(self, request: Request) -> Response:
        """Streams the changes of a running study as server-sent events: those parts of its page that have changed, and
        the event `changed` when the study starts or ends."""
        study = await run_in_threadpool(self._asked, request.path_params["key"])
        was_running = request.query_params.get("running") == "1"
        return StreamingResponse(self._events(request, study, was_running), media_type="text/event-stream")

    async def _events(self, request: Request, study: Glance, was_running: bool) -> AsyncIterator[str]:
        sent: dict[str, str] = {}
        while not self._closing() and not await request.is_disconnected():
            look = await run_in_threadpool(self._of(study).look)
            if look.running != was_running:
                yield _event("changed", "")
                return
            parts = await run_in_threadpool(self._pages.parts, look) if look.running else {}
            for name, text in parts.items():
                if sent.get(name) != text:
                    yield _event(name, text)
            sent = parts
            await asyncio.sleep(_LOOK_S)

    def stop(self, request: Request) -> Response:
        """Asks the pgtrial process that runs the study to end it after the current block."""
        study = self._asked(request.path_params["key"])
        ask_to_stop(study.path)
        return RedirectResponse(f"{self._base}/study/{study.key}", status_code=303)

    def _of(self, study: Glance) -> Live:
        return self._live.setdefault(study.key, Live(study.path))

    def _asked(self, key: str) -> Glance:
        """Returns the study that a request names. Raises StoreError if the study cannot be read."""
        study = self._catalogue.study(key)
        if study is None:
            raise HTTPException(
                404, "pgtrial serve no longer finds the study of this address; look for it in the list of studies."
            )
        if study.words == [UNREADABLE]:
            raise StoreError(study.sentences[0])
        return study

    def _asked_history(self, request: Request) -> History:
        """Returns the history that a request names. Raises StoreError if the history cannot be read."""
        history = self._histories.history(request.path_params["key"])
        if history is None:
            raise HTTPException(
                404, "pgtrial serve no longer finds the history of this address; look for it in the list of histories."
            )
        if history.trouble:
            raise StoreError(history.trouble)
        return history

    # ---- what goes wrong

    def _wrong(self, request: Request, error: Exception) -> Response:
        match error:
            case HTTPException(status_code=status, detail=detail):
                known = {404: "There is no such page here.", 405: "This address takes no such request."}
                sentence = detail if detail.endswith(".") else known.get(status, f"{detail}.")
            case PgtrialError():
                status, sentence = 409, f"{str(error).removesuffix('.')}."
            case _:
                status, trouble = 500, f"{type(error).__name__}: {error}"
                sentence = f"pgtrial could not make this page ({trouble}); the other pages are not affected."
        return HTMLResponse(self._pages.sentence(sentence), status_code=status)


def _query(request: Request) -> tuple[Query, str | None]:
    """Returns the query of the search form, and a sentence if a date in the form is not valid."""
    given = {name: request.query_params.get(name, "") for name in ("question", "arm", "since", "until", "verdict")}
    dates: dict[str, date | None] = {"since": None, "until": None}
    refused = None
    for name in dates:
        try:
            dates[name] = date.fromisoformat(given[name]) if given[name] else None
        except ValueError:
            refused = f"{quoted(given[name])} is not a date, so the search ignores it; write for example 2026-11-23."
    words = given["question"].strip(), given["arm"].strip()
    return Query(*words, dates["since"], dates["until"], given["verdict"]), refused


def _no_formulas() -> pl.Expr:
    """Returns an expression that puts a quote before each text that a spreadsheet would compute as a formula."""
    text = pl.col(pl.String)
    return pl.when(text.str.contains(r"^[=+@\t\r-]")).then("'" + text).otherwise(text).name.keep()


def _download(content: bytes, kind: str, of: str, name: str) -> Response:
    disposition = f'attachment; filename="{slug(of)}-{name}"'
    return Response(content, media_type=kind, headers={"Content-Disposition": disposition})


def _event(name: str, text: str) -> str:
    return f"event: {name}\ndata: {json.dumps(text)}\n\n"


_STATIC: dict[str, Callable[[], str]] = {
    "serve.css": lambda: resource("page/serve.css", "pgtrial.report.serve"),
    "serve.js": lambda: resource("page/serve.js", "pgtrial.report.serve"),
    "history.css": lambda: resource("page/history.css", "pgtrial.report"),
    "report.css": lambda: resource("page/report.css", "pgtrial.report"),
    "report.js": lambda: resource("page/report.js", "pgtrial.report"),
    "vega.js": html.vega,
}
