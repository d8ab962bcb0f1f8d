"""An MCP server that needs a login, and its authorization server, which is that of the SDK: both on loopback, each on a port of its own."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from contextlib import ExitStack
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.asgi_server import AsgiServer

_NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
_TOOLS = {
    "double": "Double a number.",
    "write": "Double a number, with the scope `write`.",
    "ask": "Ask for a number (protocol 2026-07-28).",
}
_ASKED = {"message": "Which number?", "requestedSchema": _NUMBER}


class Authorization(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The authorization server's memory. Whoever opens a login is logged in at once; refresh tokens rotate.

    Attributes:
        uses: The number of requests for which an access token is good; None for any.
        expires_in: What is said of the lifetime of an access token, in seconds.
        denies: Whether the human declines.
        clients: The registered clients.
        refreshed: How often tokens were renewed.
        reused: How often a refresh token was used that had been used before.
        ends_reused: Whether the login ends then.
        holds: Whether new tokens are held back.
        held: How often they were.
        is_broken: Whether nothing can be renewed at the moment.
        asked: The scopes that logins asked for.
        resources: What the tokens are for.
        issued: All that is secret: codes and tokens.
    """

    def __init__(self) -> None:
        self.uses: int | None = None
        self.expires_in: int | None = 3600
        self.denies = False
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.refreshed = self.reused = 0
        self.ends_reused = self.holds = self.is_broken = False
        self.held = 0
        self.asked: list[list[str] | None] = []
        self.resources: set[str | None] = set()
        self.issued: list[str] = []
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, tuple[AccessToken, list[int]]] = {}
        self._refresh: dict[str, tuple[RefreshToken, str]] = {}
        self._used: set[str] = set()

    def forget(self, *, refresh: bool = True) -> None:
        """End all access tokens, and all refresh tokens too unless told otherwise."""
        self._access.clear()
        if refresh:
            self._refresh.clear()

    def grant(self) -> str:
        """Return an access token of its own."""
        return self._tokens("", ["read"]).access_token

    def take(self, token: str) -> AccessToken | None:
        """Use an access token for one request; None where it is not valid."""
        known, used = self._access.get(token, (None, []))
        if known is None or (self.uses is not None and len(used) >= self.uses):
            return None
        used.append(1)
        return known

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client."""
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client."""
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Log the human in."""
        if self.denies:
            raise AuthorizeError("access_denied", "not today")
        assert client.client_id is not None
        self.asked.append(params.scopes)
        self.resources.add(params.resource)
        code = AuthorizationCode(
            code=self._new(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        """Return a code."""
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        """Return tokens for a code, once."""
        del self._codes[authorization_code.code]
        return self._tokens(authorization_code.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """Return a refresh token; None for one that was used."""
        if self.is_broken:
            raise RuntimeError("out of order")
        if refresh_token in self._used:
            self.reused += 1
            if self.ends_reused:
                self.forget()
        known = self._refresh.get(refresh_token)
        return None if known is None else known[0]

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return tokens for a refresh token, which ends with its access token."""
        _, access = self._refresh.pop(refresh_token.token)
        self._access.pop(access, None)
        self._used.add(refresh_token.token)
        self.refreshed += 1
        self.held += self.holds
        while self.holds:
            await asyncio.sleep(0.01)
        return self._tokens(refresh_token.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return an access token."""
        known, _ = self._access.get(token, (None, []))
        return known

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End a token."""

    def _new(self) -> str:
        self.issued.append(secrets.token_urlsafe(32))
        return self.issued[-1]

    def _tokens(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, refresh = self._new(), self._new()
        self._access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes), []
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes), access
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.expires_in, scope=" ".join(scopes))


class LoginServer:
    """The two servers, while entered.

    Attributes:
        authorization: What the authorization server knows.
        calls: The numbers that the tools were called with.
        refused: How many requests were refused.
        open_lists: Whether the tools are listed without a login.
        is_modern: Whether it speaks the protocol of 2026-07-28.
        answers: What it was answered when it asked.
        replies: What the authorization server answers to the next requests for tokens, in place of its own answers.
        about: What it says of itself, where it does not say what the SDK's servers say.
    """

    def __init__(self, *, open_lists: bool = False, is_modern: bool = False) -> None:
        self.authorization = Authorization()
        self.calls: list[int] = []
        self.refused = 0
        self.open_lists = open_lists
        self.is_modern = is_modern
        self.answers: list[Any] = []
        self.replies: list[Response] = []
        self.about: dict[str, Any] = {}
        self._apps: list[Any] = []
        self._served, self._asked = (AsgiServer(self._app(number)) for number in (0, 1))
        self.url = f"{self._served.address}/mcp"
        self.issuer = self._asked.address
        known = ClientRegistrationOptions(enabled=True, valid_scopes=["read", "write"], default_scopes=["read"])
        routes = create_auth_routes(self.authorization, AnyHttpUrl(self.issuer), client_registration_options=known)
        about = create_protected_resource_routes(AnyHttpUrl(self.url), [AnyHttpUrl(self.issuer)], ["read"])
        answers = Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"])
        self._apps += [Starlette(routes=[*about, answers]), Starlette(routes=routes)]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._asked)
        self._stack.enter_context(self._served)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _app(self, number: int) -> Any:
        """One of the applications, which can be made once both addresses are known."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/token" and self.replies:
                await self.replies.pop(0)(scope, receive, send)
            elif scope["path"] == "/.well-known/oauth-authorization-server" and self.about:
                await JSONResponse({"issuer": f"{self.issuer}/", **self.about})(scope, receive, send)
            else:
                await self._apps[number](scope, receive, send)

        return app

    # ------------------------------------------------------------------------------------------ the MCP server

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(await request.body())
        if (refusal := self._refusal(request, message)) is not None:
            self.refused += 1
            return refusal
        if "id" not in message:
            return Response(status_code=202)
        about = {"jsonrpc": "2.0", "id": message["id"]}
        result = self._result(message)
        error = {"code": -32601, "message": "Method not found"}
        return JSONResponse({**about, **({"error": error} if result is None else {"result": result})})

    def _refusal(self, request: Request, message: dict[str, Any]) -> Response | None:
        token = self.authorization.take(request.headers.get("authorization", "").removeprefix("Bearer "))
        about = f'resource_metadata="{self._served.address}/.well-known/oauth-protected-resource/mcp"'
        if token is None and not (self.open_lists and message.get("method") not in ("tools/call", "ping")):
            return Response(status_code=401, headers={"WWW-Authenticate": f'Bearer error="invalid_token", {about}'})
        writes = message.get("method") == "tools/call" and message["params"]["name"] == "write"
        if writes and token is not None and "write" not in token.scopes:
            return Response(status_code=403, headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="write", {about}'})
        return None

    def _result(self, message: dict[str, Any]) -> dict[str, Any] | None:
        kind = {"resultType": "complete"} if self.is_modern else {}
        kept = {"ttlMs": 0, "cacheScope": "private"} if self.is_modern else {}
        match message["method"]:
            case "server/discover" if self.is_modern:
                return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **kind, **kept}
            case "initialize" if not self.is_modern:
                about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
                return {"protocolVersion": message["params"]["protocolVersion"], **about}
            case "tools/list":
                tools = [{"name": name, "description": text, "inputSchema": _NUMBER} for name, text in _TOOLS.items()]
                return {"tools": tools, **kind, **kept}
            case "tools/call":
                return {**kind, **self._called(message["params"])}
        return None

    def _called(self, params: dict[str, Any]) -> dict[str, Any]:
        number = params["arguments"]["number"]
        if params["name"] == "ask" and "requestState" not in params:
            requests = {"number": {"method": "elicitation/create", "params": _ASKED}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "asked"}
        self.answers += [params["inputResponses"]] if "inputResponses" in params else []
        self.calls.append(number)
        return {"content": [{"type": "text", "text": str(2 * number)}]}


def log_in(url: str) -> dict[str, str]:
    """Log in at the address of a login, as a human in a browser; return what the redirect URI is called with."""
    answer = httpx.get(url, follow_redirects=False)
    assert answer.status_code == 302, answer.text
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in query.items()}
