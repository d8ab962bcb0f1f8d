"""Loopback servers that speak OpenAI's wires at Azure's place: strict about path, version, deployment and credentials.

    with AzureServer([Turn("Hi.")]) as server:
        model = AzureChatOpenAI(azure_endpoint=server.address, azure_deployment="mine", api_version=VERSION, api_key=KEY)

What is in front of the models refuses with a code and a message alone (reports of its errors: DeploymentNotFound, 404 "Resource not
found" without a version, 401); what the models themselves refuse is told in OpenAI's form. Replies hold the results of content
filters: a stream begins with those of the prompt alone, and an event without a delta brings more (wire quirks E-01, E-02).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import event, rewritten
from tests.support.replies import cut_reply
from tests.support.responses_server import ResponsesServer
from tests.support.script import Cut, Reply, Turn
from tests.support.scripted_server import Script
from tests.support.strict import Rejection, Rules

__all__ = ["FILTERS", "KEY", "TOKEN", "VERSION", "AzureResponsesServer", "AzureServer"]

VERSION = "2025-04-01-preview"
KEY = "key"
TOKEN = "token"
_SAFE = {"hate": {"filtered": False, "severity": "safe"}}
FILTERS = [{"prompt_index": 0, "content_filter_results": _SAFE}]
_NOBODY: dict[str, Any] = {"id": "", "object": "", "created": 0, "model": ""}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(-preview)?")
_DENIED = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription "
    "and use a correct regional API endpoint for your resource."
)
_NO_DEPLOYMENT = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment "
    "and try again."
)
_FIRST_WITH_RESPONSES = "2025-03-01-preview"


class GatewayRejection(Rejection):
    """Refused by what is in front of the models."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message, code=code, status=status)


class _AtAzure(OpenAIServer):
    """One resource with its deployments."""

    def __init__(self, script: Script = (), *, deployments: Collection[str] = ("mine", "other"), **more: Rules | None) -> None:
        super().__init__(script, **more)
        self.deployments = deployments

    def check_place(self, exchange: Exchange) -> None:
        """Refuse who has no key or token, another path, and no version."""
        key, authorization = exchange.headers.get("api-key"), exchange.headers.get("authorization")
        # Early releases of the SDK send a key under both names; Azure reads the first.
        if (key, authorization) not in ((KEY, None), (KEY, f"Bearer {KEY}"), (None, f"Bearer {TOKEN}")):
            raise GatewayRejection(401, "401", _DENIED)
        asked = urlsplit(exchange.path)
        versions = parse_qs(asked.query).get("api-version", [])
        if exchange.method != "POST" or len(versions) != 1 or not _DATE.fullmatch(versions[0]):
            raise GatewayRejection(404, "404", "Resource not found")
        self.check_resource(asked.path, versions[0])

    def check_resource(self, path: str, version: str) -> None:
        """Refuse another path."""
        raise NotImplementedError

    def check_deployment(self, name: str) -> None:
        """Refuse what is not deployed."""
        if name not in self.deployments:
            raise GatewayRejection(404, "DeploymentNotFound", _NO_DEPLOYMENT)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in the form of who refuses."""
        if not isinstance(rejection, GatewayRejection):
            return super().refuse(rejection)
        said = {"error": {"code": rejection.code, "message": rejection.message}}
        return HttpReply([json.dumps(said).encode()], rejection.status, {"content-type": "application/json"}, "length")


class AzureServer(_AtAzure):
    """Chat completions: each deployment has a path of its own."""

    @property
    def url(self) -> str:
        """The first deployment's address."""
        return f"{self.address}/openai/deployments/{next(iter(self.deployments))}"

    def check_resource(self, path: str, version: str) -> None:
        """Refuse what is no deployment's path."""
        found = re.fullmatch("/openai/deployments/([^/]+)/chat/completions", path)
        if not found:
            raise GatewayRejection(404, "404", "Resource not found")
        self.check_deployment(found[1])

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply with the results of the filters."""
        if isinstance(reply, Cut):
            return cut_reply(self.encode(exchange, body, reply.reply), reply.after, reply.drop)
        encoded = super().encode(exchange, body, reply)
        if not isinstance(reply, Turn):
            return encoded
        results = _SAFE if reply.text else {}

        def filtered(said: dict[str, Any]) -> None:
            said.update({} if body.get("stream") else {"prompt_filter_results": FILTERS})
            for choice in said["choices"]:
                choice["content_filter_results"] = results

        parts = [rewritten(part, filtered) for part in encoded.parts]
        if body.get("stream"):
            late = {"index": 0, "finish_reason": None, "content_filter_results": results, "content_filter_offsets": {"check_offset": 0}}
            first = [{**_NOBODY, "choices": [], "prompt_filter_results": FILTERS}, {**_NOBODY, "choices": [late]}]
            parts = [*map(event, first), *parts]
        return replace(encoded, parts=parts)


class AzureResponsesServer(_AtAzure, ResponsesServer):
    """The Responses API: one path for all deployments, which the request names as its model."""

    path = "/openai/responses"

    @property
    def url(self) -> str:
        """The address of the resource's API."""
        return f"{self.address}/openai"

    def check_resource(self, path: str, version: str) -> None:
        """Refuse another path, and versions that had no such API yet."""
        if path != self.path:
            raise GatewayRejection(404, "404", "Resource not found")
        if version < _FIRST_WITH_RESPONSES:
            text = f"Azure OpenAI Responses API is enabled only for api-version {_FIRST_WITH_RESPONSES} and later"
            raise GatewayRejection(400, "BadRequest", text)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The parsed body, if its model is deployed and the wire's rules take it."""
        body = super().check_body(exchange, rules)
        self.check_deployment(body["model"])
        return body
