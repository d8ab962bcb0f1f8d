"""A loopback server of one vendor with a preset: OpenAI's wire, with what this vendor refuses and sends otherwise (vendors.py)."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import rewritten
from tests.support.replies import cut_reply
from tests.support.script import Cut, Reply, Turn
from tests.support.scripted_server import Script
from tests.support.semantic_openai import SemanticOpenAI
from tests.support.strict import Rejection, Rules
from tests.support.strict_openai import check_request
from tests.support.vendors import Vendor

__all__ = ["SemanticVendor", "VendorServer"]


class VendorServer(OpenAIServer):
    """Plays a script as the vendor would."""

    def __init__(self, vendor: Vendor, script: Script = ()) -> None:
        super().__init__(script, rules=vendor.rules)
        self.vendor = vendor
        self.sent: defaultdict[str, dict[tuple[int, tuple[str, ...]], str]] = defaultdict(dict)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The body in OpenAI's words, if the vendor takes it. The role `developer` is OpenAI's own, and Groq's."""
        if not self.vendor.developer and any(message["role"] == "developer" for message in exchange.json["messages"]):
            raise Rejection("unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`")
        translated = self.vendor.translate(exchange.json, self.sent[exchange.json["model"]])
        return check_request(json.dumps(translated).encode(), rules)

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in the vendor's form."""
        if isinstance(reply, Cut):
            return cut_reply(self.encode(exchange, body, reply.reply), reply.after, reply.drop)
        if not isinstance(reply, Turn):
            return super().encode(exchange, body, reply)
        encoded = super().encode(exchange, body, self._owned(exchange, reply))
        return replace(encoded, parts=[rewritten(part, self._in_dialect) for part in encoded.parts])

    def _in_dialect(self, said: dict[str, Any]) -> None:
        for choice in said["choices"]:
            key = "delta" if "delta" in choice else "message"
            choice[key] = self.vendor.delta(choice[key])

    def _owned(self, exchange: Exchange, turn: Turn) -> Turn:
        """The turn with the vendor's ids, and its calls cut in the vendor's style unless the test asks for another."""
        named = [replace(call, id=self.vendor.call_id(exchange.number, position)) for position, call in enumerate(turn.calls)]
        calls = [made if call.id is None else call for made, call in zip(named, turn.calls, strict=True)]
        if calls and turn.reasoning:
            asked = exchange.json
            self.sent[asked["model"]][len(asked["messages"]), tuple(call.name for call in calls)] = turn.reasoning
        return replace(turn, calls=calls, style=self.vendor.style if turn.style == "standard" else turn.style)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in the vendor's form."""
        kind, message = "invalid_request_error", rejection.message
        said: dict[str, Any] = {
            "error": {"error": {"message": message, "type": kind, "param": rejection.param, "code": rejection.code}},
            "flat": {"object": "error", "message": message, "type": kind, "param": rejection.param, "code": rejection.code},
            "coded": {"code": "Client specified an invalid argument", "error": message},
        }[self.vendor.shape]
        return HttpReply([json.dumps(said).encode()], rejection.status, {"content-type": "application/json"}, "length")


class SemanticVendor(SemanticOpenAI):
    """The thinking model behind a vendor's endpoint."""

    def __init__(self, vendor: Vendor) -> None:
        super().__init__()
        self._vendor = vendor

    def read(self, exchange: Exchange) -> dict[str, Any]:
        """The request in OpenAI's words."""
        return self._vendor.translate(exchange.json, {})
