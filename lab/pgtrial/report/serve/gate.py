"""Admits requests that contain the token and that come from this machine and from the pages of this server. All other
requests are refused."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pgtrial.report.serve.pages import refusal

_NAMES = ("127.0.0.1", "localhost", "[::1]")

_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of the pages. It allows what Vega needs: compiling its expressions, and inline styles for
its tooltips."""

REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-modals"
)
"""The content security policy of a report, which contains its own scripts. The sandbox gives the report an origin of
its own, so that it cannot read the other pages."""

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers that every answer gets, unless it has a header with the same name already."""


class Gate:
    """Passes a request on if its address begins with the token, and if the host that it names and the origin of its
    page, if it has one, are this server. Removes the token from the address. All other requests are answered with
    status 403.

    A page of another site can make the browser send a request, but it does not know the token and has another origin.
    If the name of such a site resolves to this machine (DNS rebinding), the request still names the host of that site
    and not an address of this server.
    """

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app = app
        self._token = token.encode()
        endings = [f":{port}", *([""] if port == 80 else [])]
        self._hosts = {f"{name}{ending}" for name in _NAMES for ending in endings}
        self._own = f"127.0.0.1:{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or refuses it with status 403."""
        headers = Headers(scope=scope)
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        refused = self._refused(headers.getlist("host"), headers.getlist("origin"), first)
        answer: ASGIApp = self._app if refused is None else HTMLResponse(refusal(refused), status_code=403)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers_out = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers_out.setdefault(name, value)
            await send(message)

        await answer({**scope, "path": f"/{rest}"}, receive, guarded)

    def _refused(self, hosts: Collection[str], origins: Collection[str], token: str) -> str | None:
        """Returns the reason why a request is refused, as one sentence; None if it is admitted."""
        if len(hosts) != 1 or not self._hosts.issuperset(hosts):
            return (
                f"This server answers only for its own address, {self._own}; open the address that pgtrial serve "
                "printed."
            )
        if any(origin.removeprefix("http://") not in self._hosts for origin in origins):
            return "A page of another site asked for this one, and pgtrial serve answers only its own pages."
        if not secrets.compare_digest(token.encode(), self._token):
            return (
                "The token in this address is not the one of this server; open the address that pgtrial serve printed."
            )
        return None
