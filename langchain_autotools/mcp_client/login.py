"""Logins at an MCP server that a human finishes, in any process of a service: everything that they need is kept in the user's storage.

The SDK finds the authorization server, registers the client and builds the URL of the login. It keeps the state and the verifier of a
login in local variables, so its flow is left at that point, and both are replaced by others, which the storage keeps. The requests for
tokens, which finish a login or renew a token, need nothing but what the storage keeps.
"""

import asyncio
import hashlib
import json
import logging
import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from ..addresses import public_url
from ..errors import ConfigurationError, LoginError, LoginNeededError
from ..executor.user_functions import background_loop
from ..pickling import refuse
from .connection import http_library
from .questions import called

_logger = logging.getLogger("langchain_autotools")

_T = TypeVar("_T")

_SECONDS = 30.0
_SECONDS_FOR_OTHERS = 1.0  # for another process to store the tokens that it got for the same refresh token
_SECONDS_REUSED = 3600.0  # how long calls share the URL of one login
_MOST_TOKENS = 4  # tokens tried for one request
_MOST_BEGUN = 20  # logins kept that nobody has finished
_MOST_WORDS = 300
_PROTOCOL = "2025-11-25"  # a protocol by which the SDK names the resource in every request (RFC 8707)
_CLIENT_NAME = "langchain-autotools"
_SETTINGS: Mapping[str, Any] = {"redirect_uri": None, "client_name": _CLIENT_NAME, "scope": None, "client": None, "preregistered": False}
_REGISTRATION = ("client_id", "client_secret", "token_endpoint_auth_method", "scope", "issuer")
_NO_CLIENT = ("invalid_client", "unauthorized_client")
_SECRETS = ("code", "code_verifier", "refresh_token", "client_secret")


class LoginStorage(Protocol):
    """The interface of the storage for the logins of one user, which all processes of a service share: a table, a cache, a folder.

    Keys are texts of at most 80 letters, digits and underscores. Values are texts; they contain tokens, so protect them like passwords.
    Several servers can share a storage, several users cannot. Each request to the server calls `get`.

    Both methods may be asynchronous: they run on a background event loop then, otherwise in a thread. A storage may have a third method,
    `lock(key)`, which returns an asynchronous context manager that only one process enters at a time. With it a refresh token is never
    used by two processes, after which some authorization servers end the login.
    """

    def get(self, key: str, /) -> str | Awaitable[str | None] | None:
        """Return the value of a key; None where there is none."""

    def set(self, key: str, value: str | None, /) -> object:
        """Store a value under a key; None removes the key."""


class LogsIn:
    """The methods of an MCP server by which a human logs in."""

    _login: "StoredLogin | None" = None

    def login_url(
        self,
        redirect_uri: str | None = None,
        *,
        scope: str | None = None,
        client_name: str | None = None,
        client_id: str | None = None,
        client_secret: str | SecretStr | None = None,
    ) -> str:
        """Begin a login and return the URL of the page on which a human logs in. `finish_login` finishes it, in any process.

        The authorization server is the one that the MCP server names. Your service is registered there once, unless it has a `client_id`.
        The arguments are stored, and also hold for the `url` of each later `LoginNeededError`.

        Args:
            redirect_uri: The URL of your service to which the page sends the human back, with `code` and `state` in the query. None for
                that of `mcp_server` or of the last login.
            scope: The scopes to request, separated by spaces; None for those that the server names.
            client_name: The name of your service on the page.
            client_id: The id of your service, if it is registered already, or the URL of its client metadata document. None for that of
                the last login, or to register it.
            client_secret: The secret of the `client_id`, if it has one.

        Raises:
            ConfigurationError: `mcp_server` got no `storage`, or an argument cannot work.
            LoginError: The server offers no login, or cannot be reached.
        """
        return _wait_for(self._stored.begin(redirect_uri, scope, client_name, client_id, client_secret))

    async def alogin_url(
        self,
        redirect_uri: str | None = None,
        *,
        scope: str | None = None,
        client_name: str | None = None,
        client_id: str | None = None,
        client_secret: str | SecretStr | None = None,
    ) -> str:
        """Like `login_url`, asynchronously."""
        return await _beside(self._stored.begin(redirect_uri, scope, client_name, client_id, client_secret))

    def finish_login(self, code: str, state: str, iss: str | None = None) -> None:
        """Finish a login. Afterwards calls work in all processes.

        Args:
            code: The parameter `code` of the redirect.
            state: Its parameter `state`. Each value works once.
            iss: Its parameter `iss`, if it has one.

        Raises:
            ConfigurationError: `mcp_server` got no `storage`.
            LoginError: No login with this state was begun with this storage, or the authorization server refuses the code.
        """
        _wait_for(self._stored.finish(code, state, iss))

    async def afinish_login(self, code: str, state: str, iss: str | None = None) -> None:
        """Like `finish_login`, asynchronously."""
        await _beside(self._stored.finish(code, state, iss))

    @property
    def _stored(self) -> "StoredLogin":
        if self._login is None:
            raise ConfigurationError("a login needs mcp_server(url, storage=...)")
        return self._login


def _beside(coroutine: Coroutine[Any, Any, _T]) -> Awaitable[_T]:
    """Run a coroutine on a background loop, so that the connections of a storage belong to one loop."""
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, background_loop()))


def _wait_for(coroutine: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run_coroutine_threadsafe(coroutine, background_loop()).result()


# ---------------------------------------------------------------------------------------------- login


class StoredLogin:
    """The logins at one MCP server that a storage keeps, and their tokens.

    Args:
        url: The URL of the server.
        storage: The storage.
        redirect_uri: The redirect URI of logins; None for that of the last one.
    """

    def __init__(self, url: str, storage: LoginStorage, redirect_uri: str | None = None) -> None:
        of_url = urlsplit(url)
        of_url = of_url._replace(netloc=of_url.netloc.rpartition("@")[2], fragment="")
        self._url = of_url._replace(query="").geturl()
        self._prefix = f"mcp_login_{_digest(of_url.geturl())[:16]}"
        self._label = f"the MCP server {public_url(url)!r}"
        self._storage = storage
        self._redirect_uri = _checked_uri(redirect_uri)
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._renewals: set[asyncio.Future[Any]] = set()
        self._refused = ""

    def __repr__(self) -> str:
        return f"StoredLogin({public_url(self._url)!r})"

    def __reduce__(self) -> Any:
        refuse(f"the login at {self._label} has a storage, which no pickle holds: make it anew in the other process")

    # ------------------------------------------------------------------------------------------ begin and finish

    async def begin(
        self, redirect_uri: str | None, scope: str | None, name: str | None, client_id: str | None, client_secret: str | SecretStr | None
    ) -> str:
        """Begin a login and return its URL. See `LogsIn.login_url`."""
        if client_secret is not None and client_id is None:
            raise ConfigurationError("client_secret needs the client_id that it belongs to")
        secret = client_secret.get_secret_value() if isinstance(client_secret, SecretStr) else client_secret
        client = None if client_id is None else {"client_id": client_id, "client_secret": secret}
        async with self._lock:
            settings = await self._settings(_checked_uri(redirect_uri), name or _CLIENT_NAME, client)
            if not settings["redirect_uri"]:
                raise ConfigurationError("login_url needs redirect_uri: the URL of your service to which the human is sent back")
            async with _Http() as http:
                headers, ping = {"Accept": "application/json, text/event-stream"}, {"jsonrpc": "2.0", "id": 0, "method": "ping"}
                probe = http.library.Request("POST", self._url, json=ping, headers=headers)
                challenge = _Challenge.of(await http.send(probe, whole=False))
                return await self._begin(http, {**settings, "scope": scope}, challenge, scope or challenge.scope)

    async def needed(self, response: Any, used: Mapping[str, Any] | None) -> LoginNeededError:
        """Return the error for a request that needs a login; it has the URL of one if a redirect URI is known.

        Args:
            response: The response to the request.
            used: The tokens that the request had; None if it had none.
        """
        challenge = _Challenge.of(response)
        async with self._lock:
            settings = await self._settings()
            if not settings["redirect_uri"]:
                return LoginNeededError(f"{self._label} needs a login: begin it with its login_url(redirect_uri)")
            scope = settings["scope"] or challenge.scope
            if response.status_code == 403:
                scope = _joined(settings["scope"] if used is None else used["scope"], challenge.scope)
            url = await self._last_begun(settings, scope)
            if url is None:
                async with _Http() as http:
                    url = await self._begin(http, settings, challenge, scope)
        return LoginNeededError(f"{self._label} needs a login: {url}", url)

    async def finish(self, code: str, state: str, iss: str | None = None) -> None:
        """Finish a login. See `LogsIn.finish_login`."""
        login = await self._get("state", _digest(state))
        if login is None:
            raise LoginError(f"no login at {self._label} waits for this state: it was finished, or belongs to another server or user")
        await self._set(None, "state", _digest(state))
        if login["iss_required"] if iss is None else iss.rstrip("/") != (login["issuer"] or "").rstrip("/"):
            raise LoginError(f"the redirect of the login at {self._label} does not come from its authorization server: check `iss`")
        if not code:
            raise LoginError(f"the login at {self._label} was denied: it has no code")
        proof = {name: login[name] for name in ("redirect_uri", "code_verifier")}
        answer = await self._request_tokens(login, {"grant_type": "authorization_code", "code": code, **proof})
        if answer.status not in (200, 201):
            raise LoginError(f"the login at {self._label} was refused ({answer.words})")
        tokens = self._tokens_of(login, answer)
        async with self._alone():
            await self._set(tokens, "tokens")
        _logger.debug("a login at %s was finished", self._label)

    async def _settings(
        self, redirect_uri: str | None = None, client_name: str | None = None, client: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the settings of a login: the arguments, and those of the last login where an argument is None.

        Args:
            redirect_uri: The redirect URI.
            client_name: The name of the client.
            client: The client, if it is registered already.
        """
        last = {**_SETTINGS, **(await self._get("client") or {})}
        uri = redirect_uri or self._redirect_uri or last["redirect_uri"]
        made = {**last, "redirect_uri": uri, "client_name": client_name or last["client_name"]}
        if client is not None:
            return {**made, "preregistered": True, "client": client}
        if not last["preregistered"] and any(made[name] != last[name] for name in ("redirect_uri", "client_name")):
            made["client"] = None  # it was registered with the others
        return made

    async def _begin(self, http: "_Http", settings: Mapping[str, Any], challenge: "_Challenge", scope: str | None) -> str:
        """Begin a login and return its URL.

        Args:
            http: The HTTP client.
            settings: The settings, which are stored.
            challenge: What the MCP server says about the login.
            scope: The scopes to request; None for those that the servers name.
        """
        registered = (settings["client"] or {}).get("scope")  # a client without scopes of its own may ask for any
        if not settings["preregistered"] and registered and scope and not {*scope.split()} <= {*registered.split()}:
            settings = {**settings, "client": None}
        endpoint, offered, grant = await _offer(http, self._url, settings, challenge._replace(scope=scope), self._label)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
        code_challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        parameters = {**offered, "state": state, "code_challenge": code_challenge}
        url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"
        login = {
            **{name: parameters.get(name) for name in ("redirect_uri", "resource", "scope")},
            **grant,
            **{"code_verifier": verifier, "url": url, "requested": [settings["redirect_uri"], scope], "begun": time.time()},
        }
        await self._set(login, "state", _digest(state))
        await self._set({**settings, "client": grant["client"]}, "client")
        begun = [*(await self._get("begun") or []), _digest(state)]
        for key in begun[:-_MOST_BEGUN]:
            await self._set(None, "state", key)
        await self._set(begun[-_MOST_BEGUN:], "begun")
        _logger.debug("a login at %s was begun", self._label)
        return url

    async def _last_begun(self, settings: Mapping[str, Any], scope: str | None) -> str | None:
        """Return the URL of the last login that was begun, if it requests the same and nobody has finished it; None otherwise."""
        begun = await self._get("begun")
        login = await self._get("state", begun[-1]) if begun else None
        if login is None or login["begun"] < time.time() - _SECONDS_REUSED:
            return None
        same = login["requested"] == [settings["redirect_uri"], scope] and login["client"] == settings["client"]
        return str(login["url"]) if same else None

    # ------------------------------------------------------------------------------------------ tokens

    def auth(self) -> Any:
        """Return an `Auth` of the SDK's HTTP library that adds the token to requests. It raises `LoginNeededError`."""
        login = self

        class StoredAuth(http_library().Auth):  # type: ignore[misc]
            """Adds the token of a login to requests, and renews one that the server refuses."""

            async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
                tokens = await login.tokens()
                for _ in range(_MOST_TOKENS):  # where many requests run at once, the others may use up a token
                    used = tokens
                    if used is not None:
                        request.headers["Authorization"] = f"Bearer {used['access_token']}"
                    response = yield request
                    insufficient = response.status_code == 403 and _field(response, "error") == "insufficient_scope"
                    if response.status_code != 401 and not insufficient:
                        return
                    tokens = await login.tokens(used, renew=response.status_code == 401)
                    if tokens is None or tokens == used:
                        break
                raise await login.needed(response, used)

        return StoredAuth()

    async def tokens(self, refused: Mapping[str, Any] | None = None, *, renew: bool = True) -> Mapping[str, Any] | None:
        """Return the tokens for a request; None if a human has to log in.

        Args:
            refused: Tokens that the server has refused.
            renew: Whether to renew these.

        Raises:
            LoginError: They cannot be renewed at the moment.
        """
        stored: Mapping[str, Any] | None = await self._get("tokens")
        expired = stored is not None and stored["expires_at"] is not None and stored["expires_at"] <= time.time()
        if stored is None or not (expired or (renew and stored == refused)):
            return stored
        # in a task of its own, which goes on if the call is cancelled: a refresh token works once, and the answer must be stored
        renewal = asyncio.ensure_future(self._renewed(stored))
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)
        return await asyncio.shield(renewal)

    async def _renewed(self, old: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return newer tokens; None if a human has to log in."""
        async with self._alone():
            stored: Mapping[str, Any] | None = await self._get("tokens")
            if stored != old:
                return stored
            token = old["refresh_token"]
            if not token or token == self._refused:
                return None
            answer = await self._request_tokens(old, {"grant_type": "refresh_token", "refresh_token": token})
            if answer.status in (400, 401, 403):
                return await self._stored_by_others(old)
            if answer.status not in (200, 201):
                raise LoginError(f"the token for {self._label} cannot be renewed now ({answer.words})")
            made = self._tokens_of(old, answer)
            stored = await self._get("tokens")
            if stored != old:  # a login was finished meanwhile
                return stored
            await self._set(made, "tokens")
            _logger.debug("the token for %s was renewed", self._label)
            return made

    async def _stored_by_others(self, old: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the tokens that another process got for a refresh token that was refused here; None if there are none."""
        end = time.monotonic() + _SECONDS_FOR_OTHERS
        stored: Mapping[str, Any] | None
        while (stored := await self._get("tokens")) == old:
            if time.monotonic() > end:
                self._refused = old["refresh_token"]
                return None
            await asyncio.sleep(_SECONDS_FOR_OTHERS / 50)
        return stored

    async def _request_tokens(self, grant: Mapping[str, Any], form: Mapping[str, str]) -> "_Answer":
        """Request tokens and return the answer.

        Args:
            grant: The login or the tokens, with the endpoint, the client and the resource.
            form: The fields of the request.

        Raises:
            LoginError: The authorization server cannot be reached.
        """
        client, resource = grant["client"], grant["resource"]
        fields = {**form, "client_id": client["client_id"], **({"resource": resource} if resource else {})}
        method = client.get("token_endpoint_auth_method")
        if method is None:  # unknown, as RFC 6749 leaves it: the first one that the server accepts
            method = ("client_secret_basic", "client_secret_post") if client.get("client_secret") else "none"
        async with _Http() as http:
            for tried in (method,) if isinstance(method, str) else method:
                request = _token_request(http, grant["token_url"], fields, client, tried)
                answer = _Answer.of(await http.send(request), {**client, "token_endpoint_auth_method": tried}, form)
                if answer.data.get("error") not in _NO_CLIENT:
                    return answer
        settings = await self._get("client")  # the server does not know the client any more
        if settings is not None and not settings["preregistered"] and (settings["client"] or {}).get("client_id") == client["client_id"]:
            await self._set({**settings, "client": None}, "client")
        return answer

    def _tokens_of(self, grant: Mapping[str, Any], answer: "_Answer") -> dict[str, Any]:
        """Return the tokens of an answer, as they are stored.

        Raises:
            LoginError: It has none.
        """
        token, kind = _text(answer.data, "access_token"), answer.data.get("token_type", "Bearer")
        if not (token and token.isascii() and token.isprintable()) or str(kind).lower() != "bearer":
            raise LoginError(f"the authorization server of {self._label} has answered without a bearer token")
        seconds = _number(answer.data.get("expires_in"))
        return {
            "access_token": token,
            "refresh_token": _text(answer.data, "refresh_token") or grant.get("refresh_token"),
            "expires_at": None if seconds is None else time.time() + seconds,
            "scope": _text(answer.data, "scope") or grant["scope"],
            "client": answer.client,
            **{name: grant[name] for name in ("token_url", "resource")},
        }

    # ------------------------------------------------------------------------------------------ storage

    @property
    def _lock(self) -> asyncio.Lock:
        """The lock of the running loop: a process may have several."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Be the only one to change the tokens: in this process, and in all if the storage has a lock."""
        lock = getattr(self._storage, "lock", None)
        async with self._lock, nullcontext() if lock is None else lock(self._key("lock")):
            yield

    def _key(self, *parts: str) -> str:
        return "_".join((self._prefix, *parts))

    async def _get(self, *parts: str) -> Any:
        text = await called(self._storage.get, self._key(*parts))
        try:
            return None if text is None else json.loads(text)
        except (TypeError, ValueError):
            text = None
        raise LoginError(f"the storage for {self._label} does not return what was stored under {self._key(*parts)!r}")

    async def _set(self, value: Any, *parts: str) -> None:
        await called(self._storage.set, self._key(*parts), None if value is None else json.dumps(value))


def _token_request(http: "_Http", url: str, fields: Mapping[str, str], client: Mapping[str, Any], method: str) -> Any:
    """Return a request for tokens, with one of the methods by which a client proves who it is."""
    headers, sent = {"Accept": "application/json"}, dict(fields)
    if method == "client_secret_basic":
        pair = ":".join(quote(client[name] or "", safe="") for name in ("client_id", "client_secret"))
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    elif method != "none" and client.get("client_secret"):
        sent["client_secret"] = client["client_secret"]
    return http.library.Request("POST", url, data=sent, headers=headers)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _joined(*scopes: str | None) -> str | None:
    """Return the union of several scopes."""
    return " ".join(dict.fromkeys(" ".join(scope or "" for scope in scopes).split())) or None


def _text(answer: Mapping[str, Any], name: str) -> str:
    """Return a text of an answer; an empty one if it has none."""
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    """Return a number, also one that is written as a text; None for anything else."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _checked_uri(uri: str | None) -> str | None:
    """Return a redirect URI.

    Raises:
        ConfigurationError: It is no URI.
    """
    if uri is not None and not (isinstance(uri, str) and urlsplit(uri).scheme and len(uri.split()) == 1):
        raise ConfigurationError(f"redirect_uri must be a URL of your service, such as 'https://app.example/callback', not {uri!r}")
    return uri


@dataclass(frozen=True, repr=False)
class _Answer:
    """The answer of an authorization server to a request for tokens.

    Attributes:
        status: The HTTP status.
        data: The data; empty if there is none.
        words: The error, without secrets.
        client: The client that made the request.
    """

    status: int
    data: Mapping[str, Any]
    words: str
    client: Mapping[str, Any]

    @classmethod
    def of(cls, response: Any, client: Mapping[str, Any], form: Mapping[str, str]) -> "_Answer":
        """Return the answer in a response.

        Args:
            response: The response.
            client: The client that made the request.
            form: The fields of the request.
        """
        try:
            data = response.json()
        except ValueError:
            data = {}
        data = data if isinstance(data, Mapping) else {}
        words = ": ".join(
            [f"HTTP {response.status_code}", *(_text(data, name) for name in ("error", "error_description") if data.get(name))]
        )
        for secret in ({**client, **form}.get(name) for name in _SECRETS):
            words = words.replace(secret, "***") if secret else words
        return cls(response.status_code, data, words[:_MOST_WORDS], client)


# ---------------------------------------------------------------------------------------------- authorization server
# How it is found, and what it is asked for, by the SDK.


class _Http:
    """An HTTP client for authorization servers. It follows no redirect, because its requests have secrets of one server."""

    def __init__(self) -> None:
        self.library = http_library()
        self._client = self.library.AsyncClient(timeout=_SECONDS, follow_redirects=False)

    async def __aenter__(self) -> "_Http":
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.__aexit__(*error)

    async def send(self, request: Any, *, whole: bool = True) -> Any:
        """Send a request and return the response.

        Args:
            request: The request.
            whole: Whether to read the body.

        Raises:
            LoginError: There is no response.
        """
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self._client.send(request, stream=not whole)
                await response.aclose()
                return response
        except (self.library.HTTPError, self.library.InvalidURL, TimeoutError) as error:
            raise LoginError(f"{public_url(str(request.url))} cannot be reached: {type(error).__name__}: {error}".rstrip(": ")) from None


class _Challenge(NamedTuple):
    """What a server says about the login that a request needs."""

    resource_metadata: str | None
    scope: str | None

    @classmethod
    def of(cls, response: Any) -> "_Challenge":
        """Return the challenge of a response."""
        return cls(_field(response, "resource_metadata"), _field(response, "scope"))

    def header(self) -> dict[str, str]:
        """Return the HTTP header with it."""
        fields = ", ".join(f'{name}="{value}"' for name, value in self._asdict().items() if value)
        return {"WWW-Authenticate": f"Bearer {fields}"} if fields else {}


def _field(response: Any, name: str) -> str | None:
    from mcp.client.auth.utils import extract_field_from_www_auth

    return extract_field_from_www_auth(response, name)


class _Reached(BaseException):
    """Raised where the SDK would show the login to a human. Not an `Exception`, which the SDK would log as an error."""


async def _offer(
    http: _Http, url: str, settings: Mapping[str, Any], challenge: _Challenge, label: str
) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Find the authorization server of an MCP server, register the client if necessary, and return the login.

    Returns:
        The URL of the login without its parameters, the parameters, and what is kept of it. Kept are the client, the URL for tokens, the
        name of the authorization server (None if it does not say it), and whether its redirects have this name as `iss`.

    Raises:
        LoginError: There is none.
    """
    from mcp.client.auth import OAuthFlowError

    try:
        provider = _provider(url, settings)
        login = await _login_url(http, provider, url, challenge)
    except (OAuthFlowError, ValueError) as error:
        words = str(error).partition("\n")[0][:_MOST_WORDS]  # further lines quote data of the server
        raise LoginError(f"{label} offers no login that can be begun: {words}") from None
    context, found = provider.context, provider.context.oauth_metadata
    endpoint = login.partition("?")[0] if found is None else str(found.authorization_endpoint)
    registered = context.client_info.model_dump(mode="json", exclude_none=True)
    if context.auth_server_url:
        registered["issuer"] = context.auth_server_url  # the SDK offers the client to no other server
    grant = {
        "client": {name: registered[name] for name in _REGISTRATION if name in registered},
        "token_url": urljoin(context.get_authorization_base_url(url), "/token") if found is None else str(found.token_endpoint),
        "issuer": None if found is None else str(found.issuer),
        "iss_required": bool(getattr(found, "authorization_response_iss_parameter_supported", None)),
    }
    return endpoint, dict(parse_qsl(login[len(endpoint) + 1 :])), grant


def _provider(url: str, settings: Mapping[str, Any]) -> Any:
    """Return the SDK's provider of a login. It raises `_Reached` with the URL of the login."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

    async def leave(login: str) -> None:
        raise _Reached(login)

    async def registered() -> Any:
        return known

    async def nothing(*_: Any) -> None:
        """Return no token, and store nothing."""

    async def never() -> Any:
        raise NotImplementedError

    uri, client = settings["redirect_uri"], settings["client"]
    about = {
        "redirect_uris": [uri],
        "client_name": settings["client_name"],
        "application_type": "web" if uri.startswith("https:") else "native",
    }
    known = None if client is None else OAuthClientInformationFull.model_validate({**client, "redirect_uris": [uri]})
    storage: Any = SimpleNamespace(get_client_info=registered, get_tokens=nothing, set_client_info=nothing, set_tokens=nothing)
    return OAuthClientProvider(url, OAuthClientMetadata.model_validate(about), storage, leave, never)


async def _login_url(http: _Http, provider: Any, url: str, challenge: _Challenge) -> str:
    """Return the URL of a login as the SDK builds it, for a request that was refused."""
    request = http.library.Request("POST", url, headers={"mcp-protocol-version": _PROTOCOL})
    response = http.library.Response(401, headers=challenge.header(), request=request)
    async with aclosing(provider.async_auth_flow(request)) as flow:
        try:
            await anext(flow)
            while True:
                response = await http.send(await flow.asend(response))
        except _Reached as reached:
            return str(reached.args[0])
