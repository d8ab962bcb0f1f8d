"""MCP servers as sources of a model's tools: one session for each server, opened once, for all calls of its runs."""

import asyncio
import atexit
import json
import shlex
import threading
import weakref
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException

from ..addresses import is_page
from ..errors import ConfigurationError, LoginError, LoginNeededError
from ..executor import OutcomeUnknownError, ToolContext
from ..executor.tools import ToolSource
from ..pickling import check_portable, refuse
from .connection import Address, Headers, http_library
from .login import LoginStorage, LogsIn, StoredLogin
from .offered import Offer, Selection, definition_of
from .questions import Elicit, Questions, Round
from .session import Call, Lost, ServerError, Session, check_installed

__all__ = ["McpServer", "mcp_server"]


# ---------------------------------------------------------------------------------------------- server
#
# An MCP server as a source of a model's tools.

_INTERRUPTED = "interrupted, outcome unknown: {}. What the call did may remain; check before you repeat it."
_ENDED = "the MCP server has ended during this call"
_SECONDS_AT_EXIT = 3.0
_MOST_ROUNDS = 10

_open: "weakref.WeakSet[Session]" = weakref.WeakSet()


class _Holder:
    """The session of a server; the server's end ends it."""

    def __init__(self) -> None:
        self.session: Session | None = None

    def close(self, wait: float = 0.0) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.close(wait)


class McpServer(LogsIn, ToolSource):
    """An MCP server whose tools a model can call. See `mcp_server`, which makes it.

    Its session opens when its tools are first needed, and ends with the last model that has it, by `close`, at the end of a `with` block,
    or with the process.
    """

    def __init__(
        self,
        address: Address,
        offer: Offer,
        roots: Sequence[str],
        elicit: Elicit | None,
        open_timeout: float,
        bind_description: bool = True,
        login: StoredLogin | None = None,
    ) -> None:
        self._address = address
        self._login = login
        self._offer = offer
        self._roots = roots
        self._elicit = elicit
        self._open_timeout = open_timeout
        self._bind_description = bind_description
        self._lock = threading.Lock()
        self._holder = _Holder()
        self._made: tuple[Session, int, list[BaseTool]] | None = None
        weakref.finalize(self, self._holder.close).atexit = False

    @property
    def name(self) -> str:
        """What logs and errors call the server."""
        return f"the MCP server {self._address.name!r}"

    def __repr__(self) -> str:
        return f"McpServer({self._address.name!r})"

    def __reduce__(self) -> Any:
        secret = [*self._address.secrets, *["elicit"] * (self._elicit is not None), *["storage"] * (self._login is not None)]
        refuse(f"{self.name} has {' and '.join(secret)}, which no pickle holds: make it anew in the other process" if secret else None)
        check_portable(self.name, self._offer.functions)
        return McpServer, (self._address, self._offer, self._roots, None, self._open_timeout, self._bind_description)

    # ------------------------------------------------------------------------------------------ its tools

    def tools(self) -> list[BaseTool]:
        """Return its tools, as it listed them last.

        Raises:
            ConfigurationError: The server cannot be opened, or does not list what `only` or `without` names.
        """
        session = self._session()
        session.opened.result()
        if self._made is None or self._made[:2] != (session, session.version):
            version = session.version
            made = self._offer.tools(session.tools, self.call, self.name, self._bound, first=self._made is None)
            self._made = session, version, made
        return self._made[2]

    def is_changed(self) -> bool:
        """Whether the server has listed other tools since `tools` was last called."""
        session = self._holder.session
        if session is None or not session.opened.done() or session.opened.exception() is not None:
            return False  # what it has is not known before the next call opens it
        return self._made is not None and self._made[:2] != (session, session.version)

    def _bound(self, listed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a tool that say what an approval of its calls is bound to, and whether these may be repeated."""
        definition = definition_of(listed, bind_description=self._bind_description)
        repeatable = any(definition["annotations"].get(hint) is True for hint in ("idempotentHint", "readOnlyHint"))
        return {"definition": definition, "listed": self._listed_now, "repeatable": repeatable}

    async def _listed_now(self, tool: Mapping[str, Any], *, timeout: float | None) -> Mapping[str, Any] | None:
        """Have the server list its tools anew; return the definition of one of them as it is now, or None if there is none of this name.

        Args:
            tool: A definition of the tool.
            timeout: Maximum number of seconds; None for no limit.

        Raises:
            ToolException: The server does not list them.
        """
        try:
            async with asyncio.timeout(timeout):
                session = await self._listing()
        except LoginNeededError:
            return tool  # the server takes no call either: it waits for the login
        except (Lost, ServerError, ConfigurationError, LoginError, TimeoutError) as error:
            why = self._address.public(error.words if isinstance(error, Lost) else str(error)) or "it does not answer"
            raise ToolException(f"Not run: {self.name} cannot be asked whether this is still the tool that was approved: {why}") from None
        found = (one for one in session.tools if one["name"] == tool["name"])
        return next((definition_of(one, bind_description=self._bind_description) for one in found), None)

    async def _listing(self) -> Session:
        """Return the session once it has listed its tools, from now on.

        Raises:
            Lost: It has ended, and so has the next one.
            ServerError: The server refuses to.
            ConfigurationError: It cannot be opened.
        """
        session = self._session()
        was_open = session.opened.done()
        await asyncio.shield(asyncio.wrap_future(session.opened))
        if not was_open:
            return session
        try:
            await asyncio.wrap_future(session.list_anew())
        except Lost:
            session.retire()
            session = self._session()
            await asyncio.shield(asyncio.wrap_future(session.opened))  # it has listed them then
        return session

    async def call(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> tuple[Any, Any]:
        """Call a tool and return the content and the artifact of its result.

        Raises:
            ToolException: The tool has failed, or the server has ended.
        """
        questions = Questions(self.name, self._elicit, self._roots)
        asked = questions.waited
        for _ in range(_MOST_ROUNDS):
            if asked is not None and (waiting := await questions.answer(asked)) is not None:
                return waiting, None
            answers = None if asked is None else asked.sent
            try:
                result = await self._sent(partial(_made, name, arguments, context, questions, answers))
            except LoginNeededError as error:
                asked = questions.login(error, asked)
                continue
            asked = Round.of(result)
            if asked is None:
                return _content_of(result)
        raise ToolException(f"{self.name} asks again and again")

    async def _sent(self, make: Callable[[], Call]) -> Mapping[str, Any]:
        """Send a call and return its result; once more where it did not reach the server.

        Raises:
            ToolException: The server has refused it, or has ended.
        """
        words = ""
        for _ in range(2):
            session = self._session()
            try:
                await asyncio.shield(asyncio.wrap_future(session.opened))
                call = make()
                if call.answers is not None and not session.can_wait:
                    raise ToolException(f"{self.name} does not know calls that have waited: it is of an older protocol now")
                session.send(call)
                return await asyncio.wrap_future(call.result)
            except Lost as lost:
                words = self._address.public(lost.words)
                if lost.sent:
                    raise OutcomeUnknownError(_INTERRUPTED.format(words or _ENDED)) from None
                session.retire()
            except LoginNeededError:
                raise
            except (ServerError, ConfigurationError, LoginError) as error:
                raise ToolException(str(error)) from None
        raise ToolException(f"{self.name} has ended" + (f": {words}" if words else ""))

    def _session(self) -> Session:
        """Return the session; a new one if there is none that can be used, because the server has ended or the process is a forked one."""
        with self._lock:
            session = self._holder.session
            if session is None or not session.is_usable:
                check_installed()
                session = self._holder.session = Session(self._address, self._roots, self._elicit, self._open_timeout, self.name)
                _open.add(session)
            return session

    # ------------------------------------------------------------------------------------------ open and close

    def close(self) -> None:
        """End the session. A later call opens another one."""
        self._holder.close(_SECONDS_AT_EXIT)

    def __enter__(self) -> Self:
        self._session().opened.result()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._session().opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


def _made(name: str, arguments: Mapping[str, Any], context: ToolContext, questions: Questions, answers: Round | None) -> Call:
    """Return a call as its session takes it, of the loop that it is made in."""
    loop, around = asyncio.get_running_loop(), copy_context()

    def report(value: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(context.report, value)

    def ask(asked: Mapping[str, Any]) -> Future[Mapping[str, Any]]:
        return around.run(asyncio.run_coroutine_threadsafe, questions.during(asked), loop)

    return Call(name, arguments, report, ask, answers)


def mcp_server(
    server: str | Sequence[str],
    *,
    prefix: str = "",
    only: Selection | None = None,
    without: Selection | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    headers: Headers | None = None,
    auth: Any = None,
    roots: Sequence[str] = (),
    elicit: Elicit | None = None,
    open_timeout: float = 30.0,
    bind_description: bool = True,
    storage: LoginStorage | None = None,
    redirect_uri: str | None = None,
) -> McpServer:
    """Return an MCP server for the `tools` of a model: `ChatOpenAI(model="gpt-5", tools=[mcp_server("uvx mcp-server-fetch")])`.

    All calls go over one session. It opens when the model is made; a server that has ended is opened once more for the next call. The
    call during which it ended is not repeated.

    Args:
        server: The URL of a server (streamable HTTP), or the program that is one (stdio): a command line, or a list of the program and its
            arguments.
        prefix: Is put before the names of its tools, for servers with tools of equal names. A name that some vendor does not take
            becomes an alias, the same everywhere; rules and calls may use the server's own name, too.
        only: The tools that are offered: a list of names, or a function that is called with each tool as the server lists it, a dict, and
            returns True or False. A name that the server does not list is an error.
        without: The tools that are not offered, in the same form.
        env: Environment variables of the program. It gets few others.
        cwd: The working directory of the program.
        headers: HTTP headers of every request, such as `{"Authorization": "Bearer ..."}`. A function, which may be asynchronous, is asked
            for them at each request, and once more if the server answers with status 401: for tokens that expire. It is called in another
            thread.
        auth: Signs the requests: an `httpx.Auth` with version 1 of `mcp`, an `httpx2.Auth` with version 2, such as the SDK's own
            `OAuthClientProvider`.
        roots: URIs of folders that the server may know of, such as `file:///home/alice/project`.
        elicit: Answers questions that the server asks during a call: a function of the text and the JSON schema of the answer that returns
            the answer as a dict, or None to decline. May be asynchronous. Without it the run's `approve` is asked. What nobody answers
            waits, as a pending call of kind `elicitation`; by protocols before 2026-07-28 it is declined, which is logged.
        open_timeout: Maximum number of seconds until the server is open and has listed its tools.
        bind_description: Whether an approval holds only while a tool's description is the one that was shown. False is for descriptions
            that hold counts or times. The tool's name, its input schema and its annotations count anyway.
        storage: Keeps the logins of a user, for servers at which a human has to log in: a `LoginStorage`, an object with `get` and `set`.
            See `McpServer.login_url`.
        redirect_uri: The URL of your service to which logins send the human back. Without it, a `LoginNeededError` has a `url` only after
            the first `login_url(redirect_uri)`.

    Raises:
        ConfigurationError: The extra `mcp` is not installed, or an argument is not for this kind of server.
    """
    check_installed()
    if isinstance(roots, str):
        raise ConfigurationError(f"roots must be a list of URIs, not {roots!r}")
    url = server.strip() if isinstance(server, str) and is_page(server.strip()) else ""
    command = [] if url else shlex.split(server) if isinstance(server, str) else list(server)
    if not url and not command:
        raise ConfigurationError("mcp_server takes a URL or a command line")
    if isinstance(open_timeout, bool) or not isinstance(open_timeout, int | float) or not open_timeout > 0:
        raise ConfigurationError(f"open_timeout must be a number of seconds greater than 0, not {open_timeout!r}")
    misplaced = {"env": env, "cwd": cwd} if url else {"headers": headers, "auth": auth, "storage": storage}
    for name, value in misplaced.items():
        if value is not None:
            raise ConfigurationError(f"{name} is for servers that {'are started' if url else 'have a URL'}: here it has no effect")
    login = None if storage is None else StoredLogin(url, storage, redirect_uri)
    given = headers if callable(headers) else dict(headers or {})
    if not isinstance(bind_description, bool):
        raise ConfigurationError(f"bind_description must be True or False, not {bind_description!r}")
    offer = Offer.read(prefix, only, without)
    address = Address(tuple(command), url, dict(env or {}), cwd, given, _checked_auth(auth, login, redirect_uri))
    return McpServer(address, offer, tuple(roots), elicit, open_timeout, bind_description, login)


def _checked_auth(auth: Any, login: StoredLogin | None, redirect_uri: str | None) -> Any:
    """Return what signs the requests; None: nothing does.

    Raises:
        ConfigurationError: It cannot be used.
    """
    if login is None and redirect_uri is not None:
        raise ConfigurationError("redirect_uri is for logins, which need storage: here it has no effect")
    if login is not None and auth is not None:
        raise ConfigurationError("storage keeps logins of the package's own, and auth is another way to log in: give one of them")
    if auth is None:
        return None if login is None else login.auth()
    library = http_library()
    if not isinstance(auth, library.Auth):
        raise ConfigurationError(f"auth must be an {library.__name__}.Auth, which the installed `mcp` takes, not {type(auth)!r}")
    return auth


@atexit.register
def _close_all() -> None:
    sessions = list(_open)
    for session in sessions:
        session.close()
    for session in sessions:
        session.close(_SECONDS_AT_EXIT)


# ---------------------------------------------------------------------------------------------- results
# Results of MCP servers in LangChain's form.


def _content_of(result: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the content and the artifact of a result: a text where it is one, else LangChain's blocks, else its data.

    Raises:
        ToolException: It is an error in words alone.
    """
    content = result.get("content")
    blocks = [_block(block) for block in (content if isinstance(content, list) else [] if content is None else [content])]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    named = {name: value for name, value in result.items() if name not in ("_meta", "content", "isError", "resultType")}
    structured = named.get("structuredContent", named or None)
    artifact = None if structured is None else {"structured_content": structured}
    flag = result.get("isError")  # some servers write it as a text
    failed = flag.lower() not in ("", "false", "no", "0", "null") if isinstance(flag, str) else bool(flag)
    if failed and len(texts) == len(blocks) and structured is None:
        raise ToolException("\n".join(texts) or "the tool has failed")
    if failed or len(blocks) > 1 or len(texts) < len(blocks):
        # as a message, because LangChain's core would write a list with sound as JSON
        told: Any = texts[0] if len(texts) == len(blocks) == 1 else blocks or json.dumps(structured, ensure_ascii=False)
        return ToolMessage(content=told, artifact=artifact, tool_call_id="", status="error" if failed else "success"), artifact
    return texts[0] if texts else "" if structured is None else structured, artifact


def _block(block: Any) -> dict[str, Any]:
    """Return a block of a result as LangChain has it; one that is none of the protocol's as the text of its data."""
    match block:
        case str():
            return {"type": "text", "text": block}
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image" | "audio" as kind, "data": str(data), "mimeType": str(mime_type)} if _is_base64(data):
            return {"type": kind, "base64": data, "mime_type": mime_type}
        case {"type": "resource", "resource": {"text": str(text)}}:
            return {"type": "text", "text": text}
        case {"type": "resource", "resource": {"blob": str(data)} as resource} if _is_base64(data):
            return _file(data, resource)
        case {"uri": str(uri), "type": kind}:
            return {"type": "text", "text": f"{block.get('name', kind)}: {uri}"}
    return {"type": "text", "text": json.dumps(block, ensure_ascii=False)}


def _file(data: str, resource: Mapping[str, Any]) -> dict[str, Any]:
    given = resource.get("mimeType")
    mime_type = given if isinstance(given, str) and given else "application/octet-stream"
    name = str(resource.get("uri") or "").rpartition("/")[2]
    named = {"extras": {"filename": name}} if name and not mime_type.startswith("image/") else {}
    return {"type": "image" if mime_type.startswith("image/") else "file", "base64": data, "mime_type": mime_type, **named}


def _is_base64(data: str) -> bool:
    """Whether a text is base64: a vendor would refuse every later request with one that is not."""
    try:
        return bool(b64decode(data, validate=True))
    except ValueError:
        return False
