"""A loopback server that speaks Google's generateContent: strict about requests, scripted or thinking for itself in its replies.

    with GoogleServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", tools=[add])

The script is as of `OpenAIServer`. A request that Google refuses is refused and kept in `rejections`; so is a signature that this
server did not write on that very part, and an id that it did not give.
"""

from __future__ import annotations

import re
from typing import Any

from tests.support.google_wire import Asked, failure, parts_of, reply_to
from tests.support.http_server import Exchange, HttpReply
from tests.support.script import Cut, Events, Failure, Reply, Turn
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.strict import Rejection
from tests.support.strict_google import Known, check_request

_GEMINI = re.compile(r"/v1(?:beta)?/(?:models|tunedModels)/([^/:]+):(generateContent|streamGenerateContent)")
_VERTEX = re.compile(
    r"/v1(?:beta1)?/(?:projects/[^/]+/locations/[^/]+/)?publishers/google/models/([^/:]+):(generateContent|streamGenerateContent)"
)


class GoogleServer(ScriptedServer):
    """`vertex` speaks as Vertex AI; `strict=False` accepts any JSON body; `signed=False` any signature and id, or none."""

    def __init__(self, script: Script = (), *, vertex: bool = False, strict: bool = True, signed: bool = True) -> None:
        super().__init__(script)
        self._paths = _VERTEX if vertex else _GEMINI
        self._strict = strict
        self._known = Known(signed=signed, ids=not vertex)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies of all requests."""
        return [exchange.json for exchange in list(self.exchanges)]

    @property
    def messages(self) -> list[list[dict[str, Any]]]:
        """The Contents of each request."""
        return [request["contents"] for request in self.requests]

    def asked(self, exchange: Exchange) -> Asked:
        """What of a request shapes its reply's form."""
        path, _, query = exchange.path.partition("?")
        found = self._paths.fullmatch(path)
        if found is None or exchange.method != "POST":
            raise Rejection("Requested entity was not found.", status=404)
        stream = found[2] == "streamGenerateContent"
        return Asked(exchange.number, found[1], stream, "alt=sse" in query.split("&"), ids=self._known.ids)

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or Google's `Rejection`."""
        self.asked(exchange)
        _check_http(exchange)
        if not self._strict:
            body: dict[str, Any] = exchange.json
            return body
        return check_request(exchange.body, self._known)

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in Google's form."""
        asked = self.asked(exchange)
        self._remember(asked, reply)
        return reply_to(asked, reply)

    def _remember(self, asked: Asked, reply: Reply) -> None:
        if isinstance(reply, Cut):
            self._remember(asked, reply.reply)
        elif isinstance(reply, Turn):
            self._known.remember(parts_of(asked, reply))
        elif isinstance(reply, Events):
            events = [event for event in reply.events if isinstance(event, dict)]
            for event in [*events, *([reply.whole] if reply.whole else [])]:
                for candidate in event.get("candidates", ()):
                    self._known.remember((candidate.get("content") or {}).get("parts") or [])

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in Google's form."""
        return failure(Failure(rejection.status, rejection.message))


def _check_http(exchange: Exchange) -> None:
    key = exchange.headers.get("x-goog-api-key") or exchange.headers.get("authorization", "").removeprefix("Bearer ")
    if not key.strip():
        raise Rejection("Method doesn't allow unregistered callers (callers without established identity).", status=403)
    if exchange.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Rejection("Request content type must be application/json", status=400)
