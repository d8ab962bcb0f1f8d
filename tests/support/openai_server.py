"""A loopback server that speaks OpenAI's chat completions: strict about requests, scripted or thinking for itself in its replies.

    with OpenAIServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[add])

The script is a list of replies (script.py) or a function from the request to a reply, such as `SemanticOpenAI()`. One script serves
streamed and whole requests. A request that OpenAI refuses is refused, uses up no reply and is kept in `rejections`. Keys that OpenAI does
not know (a reasoning text, a call's signature) are accepted back once this server has sent them, as the servers that send them do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.openai_wire import Asked, failure, reply_to
from tests.support.script import Failure, Reply, Turn
from tests.support.strict import Rejection, Rules
from tests.support.strict_openai import check_request

Script = Iterable[Reply] | Callable[[Exchange], Reply]


class OpenAIServer(LoopbackServer):
    """`rules=None` accepts any JSON body."""

    path = "/v1/chat/completions"

    def __init__(self, script: Script = (), *, rules: Rules | None = Rules()) -> None:  # noqa: B008 - frozen
        super().__init__(self._reply)
        self._sent_message_keys: set[str] = set()
        self._sent_call_keys: set[str] = set()
        self._script = script if callable(script) else None
        self._replies: list[Reply] = [] if callable(script) else list(script)
        self.rules = rules
        self.rejections: list[Rejection] = []

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"{self.address}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies of the completions that were asked for, refused ones included."""
        return [exchange.json for exchange in list(self.exchanges) if exchange.path == self.path]

    @property
    def messages(self) -> list[list[dict[str, Any]]]:
        """The messages of each request."""
        return [request["messages"] for request in self.requests]

    @property
    def left(self) -> int:
        """How many scripted replies were not asked for."""
        return len(self._replies)

    def extend(self, replies: Sequence[Reply]) -> None:
        """Append to a list script."""
        with self._lock:
            self._replies.extend(replies)

    def _reply(self, exchange: Exchange) -> HttpReply:
        try:
            check_http(exchange, self.path)
            body = exchange.json if self.rules is None else self._checked(exchange, self.rules)
        except Rejection as rejection:
            self.rejections.append(rejection)
            return failure(Failure(rejection.status, rejection.message, "invalid_request_error", rejection.code, rejection.param))
        reply = self._next(exchange)
        return self._in_this_wire(exchange, body, reply)

    def _checked(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The request's parsed body, if the vendor would take it."""
        return check_request(exchange.body, self._widened(rules))

    def _in_this_wire(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in this wire's form."""
        self._note_sent(reply)
        return reply_to(Asked.by(exchange.number, body), reply)

    def _widened(self, rules: Rules) -> Rules:
        """The rules, and the keys of its own that this server has sent."""
        messages, calls = {*rules.message_keys, *self._sent_message_keys}, {*rules.call_keys, *self._sent_call_keys}
        return replace(rules, message_keys=messages, call_keys=calls)

    def _note_sent(self, reply: Reply) -> None:
        if isinstance(reply, Turn):
            self._sent_message_keys.update(["reasoning_content"] if reply.reasoning else [])
            self._sent_call_keys.update(key for call in reply.calls for key in call.extra)

    def _next(self, exchange: Exchange) -> Reply:
        if self._script is not None:
            return self._script(exchange)
        with self._lock:
            if self._replies:
                return self._replies.pop(0)
        return Failure(400, "The script has no reply left.", "invalid_request_error", "script_exhausted")


def check_http(exchange: Exchange, path: str) -> None:
    """Refuse what is not a request of this wire at all: another path, no key, no JSON."""
    if (exchange.method, exchange.path.partition("?")[0]) != ("POST", path):
        raise Rejection(f"Invalid URL ({exchange.method} {exchange.path})", status=404)
    if not exchange.headers.get("authorization", "").removeprefix("Bearer ").strip():
        raise Rejection("You didn't provide an API key.", status=401)
    kind = exchange.headers.get("content-type", "")
    if kind.partition(";")[0].strip() != "application/json":
        raise Rejection(f"Unsupported Media Type: '{kind}'. This API method only accepts 'application/json' requests.", status=415)
