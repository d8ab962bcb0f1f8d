"""A login at an MCP server that a human finishes: in any process, while a call waits; tokens are renewed, and shown nowhere."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_core.messages import AIMessage, HumanMessage
from mcp import ClientSession
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import SecretStr
from starlette.responses import JSONResponse, RedirectResponse, Response

from langchain_autotools import (
    Agent,
    CallsPendingError,
    ChatOpenAI,
    ConfigurationError,
    LoginError,
    LoginNeededError,
    McpServer,
    ToolExecutor,
    ToolPolicy,
    mcp_server,
    new_messages,
    pending_calls,
    results_of,
    stop_reason,
)
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import WAYS, run_in
from tests.support.http_server import Exchange
from tests.support.login_process import doubled
from tests.support.login_server import LoginServer, log_in
from tests.support.login_storage import AsyncFolder, Folder
from tests.support.mcp_http import McpHttp
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.further

REPOSITORY = Path(__file__).parents[2]
MODERN = hasattr(ClientSession, "discover")
BACK = "https://app.example/callback"
QUESTION = [HumanMessage("Go")]
Connect = Callable[..., McpServer]


@pytest.fixture
def served() -> Iterator[LoginServer]:
    """A server that needs a login."""
    with LoginServer() as server:
        yield server


@pytest.fixture
def storage(tmp_path: Path) -> Folder:
    """A storage."""
    (tmp_path / "logins").mkdir()
    return Folder(tmp_path / "logins")


@pytest.fixture
def connect(served: LoginServer, storage: Folder) -> Iterator[Connect]:
    """A function that makes the source of the server's tools, as another process would."""
    made: list[McpServer] = []

    def connect(**known: Any) -> McpServer:
        made.append(mcp_server(served.url, storage=storage, **known))
        return made[-1]

    yield connect
    for server in made:
        server.close()


def logged_in(server: McpServer, **asked: Any) -> McpServer:
    """The server, once a human has logged in."""
    server.finish_login(**log_in(server.login_url(BACK, **asked)))
    return server


def asks(*numbers: int, name: str = "double") -> AIMessage:
    """A turn that calls the tool with each of these numbers."""
    return AIMessage("", tool_calls=[{"name": name, "args": {"number": number}, "id": f"call {number}"} for number in numbers])


def model(server: McpServer, *replies: Any, **settings: Any) -> ScriptedChatModel:
    """A model with the server's tools."""
    return ScriptedChatModel(tools=[server], replies=[*replies, "Done."], **settings)


def said(run: Any) -> list[Any]:
    """What the results of a run say."""
    return [message.content for message in results_of(run)]


def child(served: LoginServer, storage: Folder, *words: Any) -> subprocess.Popen[str]:
    """Another process of the service."""
    command = [sys.executable, "-m", "tests.support.login_process", served.url, str(storage.path), *map(str, words)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# ---------------------------------------------------------------------------------------------- begin and end


@pytest.mark.parametrize("kind", [Folder, AsyncFolder], ids=["synchronous", "asynchronous"])
def test_a_login_is_finished_in_another_process(kind: type[Any], served: LoginServer, storage: Folder) -> None:
    """The model cannot be made before, and can be made afterwards; the server is asked what its authorization server is."""
    server = mcp_server(served.url, storage=kind(storage.path))
    with pytest.raises(LoginNeededError, match="needs a login: begin it with its login_url") as needed:
        model(server)
    assert needed.value.url == ""
    url = server.login_url(BACK)
    asked = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
    assert url.startswith(f"{served.issuer}/authorize?") and asked["redirect_uri"] == BACK and asked["resource"] == served.url
    assert (asked["scope"], asked["code_challenge_method"], asked["response_type"]) == ("read", "S256", "code")
    came = log_in(url)
    with child(served, storage, "finish", came["code"], came["state"]) as other:
        assert other.wait(60) == 0
    with server:
        assert said(model(server, asks(4)).invoke(QUESTION)) == ["8"]
        assert served.authorization.resources == {served.url}


def test_whoever_opens_the_server_is_told_where_to_log_in(served: LoginServer, connect: Connect) -> None:
    """In every way to open it, with one address as long as nobody has used it."""
    server, urls = connect(redirect_uri=BACK), set[str]()

    def enter() -> None:
        with server:
            pass

    def aenter() -> None:
        async def enter() -> None:
            async with server:
                pass

        asyncio.run(enter())

    ways: list[Callable[[], Any]] = [lambda: model(server), lambda: ToolExecutor([server]), lambda: server.tools(), enter, aenter]
    for way in ways:
        with pytest.raises(LoginNeededError) as needed:
            way()
        assert needed.value.url and needed.value.url in str(needed.value)
        urls.add(needed.value.url)
    (url,) = urls
    server.finish_login(**log_in(url))
    assert said(model(server, asks(1)).invoke(QUESTION)) == ["2"]
    assert (len(served.authorization.clients), served.calls) == (1, [1])


async def test_the_asynchronous_forms(connect: Connect) -> None:
    """They hold up no event loop."""
    server = connect()
    await server.afinish_login(**log_in(await server.alogin_url(BACK)))
    executor = ToolExecutor([server])
    (result,) = await executor.aexecute_all(asks(3))
    assert result.content == "6"


def test_a_state_works_once_and_nowhere_else(served: LoginServer, storage: Folder, connect: Connect, tmp_path: Path) -> None:
    """An invented one, another user's, a used one, that of a denied login or of a refused code: the error says so, nothing is kept."""
    (tmp_path / "other").mkdir()
    server, other = connect(), mcp_server(served.url, storage=Folder(tmp_path / "other"))
    came, denied, refused = (log_in(server.login_url(BACK)) for _ in range(3))
    for login, code, state, why in (
        (server, came["code"], "invented", "no login at the MCP server .* waits for this state"),
        (other, came["code"], came["state"], "no login at the MCP server .* waits for this state"),
        (server, "", denied["state"], "was denied: it has no code"),
        (server, "invented", refused["state"], "was refused .HTTP 400: invalid_grant: authorization code does not exist"),
        (server, refused["code"], refused["state"], "no login at the MCP server .* waits for this state"),
    ):
        with pytest.raises(LoginError, match=why):
            login.finish_login(code, state)
    with pytest.raises(LoginNeededError):
        server.tools()
    server.finish_login(**came)
    with pytest.raises(LoginError, match="waits for this state"):
        server.finish_login(**came)
    assert said(model(server, asks(1)).invoke(QUESTION)) == ["2"]


@pytest.mark.parametrize("path", ["", "/", "/another"])
def test_an_answer_of_another_authorization_server_ends_the_login(path: str, served: LoginServer, connect: Connect) -> None:
    """It may say who it is (RFC 9207), with or without a slash at the end; its code goes to no other one."""
    server = connect()
    came = {**log_in(server.login_url(BACK)), "iss": f"{served.issuer}{path}"}
    if path != "/another":
        server.finish_login(**came)
        return
    with pytest.raises(LoginError, match="does not come from its authorization server"):
        server.finish_login(**came)
    with pytest.raises(LoginError, match="waits for this state"):
        server.finish_login(came["code"], came["state"])


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_registration_of_ones_own(method: str, served: LoginServer, connect: Connect) -> None:
    """With an id and a secret nothing is registered, by either method; later logins and renewals have them too, in whatever process."""
    about = {"client_id": "app", "client_secret": "s3cret/+ :", "redirect_uris": [BACK], "scope": "read write"}
    known = OAuthClientInformationFull.model_validate({**about, "token_endpoint_auth_method": method})
    served.authorization.clients["app"] = known
    server = logged_in(connect(), client_id="app", client_secret=SecretStr("s3cret/+ :"), scope="read write")
    served.authorization.uses = 3
    assert said(model(server, *map(asks, range(6))).invoke(QUESTION)) == [str(2 * number) for number in range(6)]
    served.authorization.forget()
    with pytest.raises(LoginNeededError) as needed:
        connect().tools()
    assert "client_id=app&" in needed.value.url and "scope=read+write" in needed.value.url
    assert list(served.authorization.clients) == ["app"] and served.authorization.asked == [["read", "write"]]


@pytest.mark.skipif(not MODERN, reason="version 1 of `mcp` does not read that it names itself")
def test_an_authorization_server_that_says_that_it_names_itself(served: LoginServer, connect: Connect) -> None:
    """A redirect without `iss` is none of its; the query that its address has is kept."""
    ends = {"authorization_endpoint": "authorize?tenant=1", "token_endpoint": "token", "registration_endpoint": "register"}
    served.about = {name: f"{served.issuer}/{path}" for name, path in ends.items()}
    served.about["authorization_response_iss_parameter_supported"] = True
    server = connect()
    url = server.login_url(BACK)
    assert url.startswith(f"{served.issuer}/authorize?tenant=1&response_type=code&")
    with pytest.raises(LoginError, match="does not come from its authorization server"):
        server.finish_login(**log_in(url))
    server.finish_login(**log_in(server.login_url(BACK)), iss=served.issuer)
    assert said(model(server, asks(1)).invoke(QUESTION)) == ["2"]


@pytest.mark.parametrize(
    "reply, why",
    [
        (JSONResponse({}), "without a bearer token"),
        (Response("<html>"), "without a bearer token"),
        (JSONResponse([]), "without a bearer token"),
        (JSONResponse({"access_token": 7}), "without a bearer token"),
        (JSONResponse({"access_token": "a\r\nX-Other: b"}), "without a bearer token"),
        (JSONResponse({"access_token": "a", "token_type": "mac"}), "without a bearer token"),
        (RedirectResponse("http://127.0.0.1:1/token", 307), "was refused .HTTP 307"),
        (JSONResponse({"error": "invalid_grant", "error_description": "no {code}"}, 400), "was refused .HTTP 400: invalid_grant: no .code"),
        (Response(status_code=503), "was refused .HTTP 503"),
    ],
    ids=["nothing", "html", "a list", "a number", "two lines", "another type", "a redirect", "an error", "unavailable"],
)
def test_an_answer_without_tokens(reply: Response, why: str, served: LoginServer, connect: Connect) -> None:
    """It ends the login, in words; the next one works, also with a lifetime that is written as a text."""
    server = connect()
    came = log_in(server.login_url(BACK))
    served.replies = [reply]
    with pytest.raises(LoginError, match=why):
        server.finish_login(**came)
    served.replies = [JSONResponse({"access_token": served.authorization.grant(), "token_type": "bearer", "expires_in": "60", "scope": 7})]
    logged_in(server)
    assert said(model(server, asks(1)).invoke(QUESTION)) == ["2"]


def test_a_registration_that_is_forgotten_is_made_anew(served: LoginServer, connect: Connect) -> None:
    """The authorization server knows the client no more: the next login begins with another one."""
    server = logged_in(connect())
    (first,) = served.authorization.clients
    served.authorization.clients.clear()
    served.authorization.forget()
    with pytest.raises(LoginNeededError) as needed:
        connect().tools()
    assert first not in needed.value.url and len(served.authorization.clients) == 1
    server.finish_login(**log_in(needed.value.url))
    assert said(model(server, asks(1)).invoke(QUESTION)) == ["2"]


def test_what_cannot_work_is_refused(served: LoginServer, storage: Folder, connect: Connect) -> None:
    """A login without a storage, without a redirect URI, at a program, at a server that offers none or is gone."""
    with pytest.raises(ConfigurationError, match="a login needs mcp_server"):
        mcp_server(served.url).login_url(BACK)
    with pytest.raises(ConfigurationError, match="login_url needs redirect_uri"):
        connect().login_url()
    with pytest.raises(ConfigurationError, match="redirect_uri must be a URL"):
        connect().login_url("callback")
    with pytest.raises(ConfigurationError, match="client_secret needs the client_id"):
        connect().login_url(BACK, client_secret="hush")
    with pytest.raises(ConfigurationError, match="redirect_uri is for logins, which need storage"):
        mcp_server(served.url, redirect_uri=BACK)
    with pytest.raises(ConfigurationError, match="storage is for servers that have a URL"):
        mcp_server("python server.py", storage=storage)
    with McpHttp() as http, pytest.raises(LoginError, match="offers no login that can be begun: Registration failed: 404"):
        mcp_server(http.url, storage=storage).login_url(BACK)
    with pytest.raises(LoginError, match="http://127.0.0.1:1/mcp cannot be reached: Connect"):
        mcp_server("http://127.0.0.1:1/mcp", storage=storage).login_url(BACK)
    logged_in(connect())
    for path in storage.path.iterdir():
        path.write_text("{")
    with pytest.raises(LoginError, match="does not return what was stored under 'mcp_login_[0-9a-f]{16}_tokens'"):
        connect().tools()


# ---------------------------------------------------------------------------------------------- a call that needs a login


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_waits_for_the_login(way: str, served: LoginServer, connect: Connect) -> None:
    """It has not run; before the login it waits again, with a question of its own; in another process it runs, once."""
    server = await asyncio.to_thread(logged_in, connect())

    def forget(*_: Any, **__: Any) -> AIMessage:
        served.authorization.forget()
        return asks(2, 3)

    made = model(server, asks(1), forget)
    waits = await run_in(way, made, QUESTION)
    history = [*QUESTION, *waits.new]
    questions = pending_calls(history)
    assert (stop_reason(waits.message), served.calls, pending_calls(waits.message)) == ("calls_pending", [1], questions)
    urls = {call.args["url"] for call in questions}
    assert [(call.kind, call.path, call.args["message"]) for call in questions] == [
        ("elicitation", ("double",), f"Log in at the MCP server {served.url!r}.")
    ] * 2
    history += (await run_in(way, made, history, resume=[call.respond({}) for call in questions])).new
    again = pending_calls(history)
    assert {call.args["url"] for call in again} == urls and len(urls) == 1, "one login for all that waits"
    assert not {call.uuid for call in again} & {call.uuid for call in questions} and served.calls == [1]
    await server.afinish_login(**log_in(urls.pop()))
    other = await asyncio.to_thread(ScriptedChatModel, tools=[connect()], replies=["Done."])
    done = await run_in(way, other, history, resume=[json.loads(json.dumps(call.respond({}).to_dict())) for call in again])
    assert (done.message.text, [message.text for message in done.new[:-1]]) == ("Done.", ["4", "6"])
    assert sorted(served.calls) == [1, 2, 3]


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_structured_output_waits_for_the_login(method: str, served: LoginServer, connect: Connect) -> None:
    """It ends with the calls that wait, and goes on with its schema once somebody has logged in."""
    server = logged_in(connect())
    schema = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    def script(exchange: Exchange) -> Turn:
        if b'"role":"tool"' in exchange.body:
            return Turn("", [Call("City", {"name": "Rome"})]) if method == "function_calling" else Turn('{"name": "Rome"}')
        served.authorization.forget()
        return Turn("", [Call("double", {"number": 1})])

    with OpenAIServer(script) as vendor:
        made = ChatOpenAI(model="any", base_url=vendor.url, api_key="key", tools=[server]).with_structured_output(schema, method=method)
        with pytest.raises(CallsPendingError) as waits:
            made.invoke(QUESTION)
        history = [*QUESTION, *new_messages(waits.value)]
        (question,) = pending_calls(history)
        server.finish_login(**log_in(question.args["url"]))
        resume: dict[str, Any] = {"resume": [question.respond({})]}
        assert made.invoke(history, **resume) == {"name": "Rome"}
    assert served.calls == [1]


def test_it_waits_inside_an_agent_and_in_a_loop_of_ones_own(served: LoginServer, connect: Connect) -> None:
    """The outermost human is shown where to log in; an executor alone waits too."""
    server = logged_in(connect())
    executor, message = ToolExecutor([server]), asks(1)
    helper = AIMessage("", tool_calls=[{"name": "helper", "args": {"question": "Which?"}, "id": "h"}])
    outer = ScriptedChatModel(tools=[Agent(model(server, asks(2))).as_tool("helper", "Help.")], replies=[helper, "Done."])
    served.authorization.forget()

    results = executor.execute_all(message)
    (question,) = pending_calls([message, *results])
    waits = outer.invoke(QUESTION)
    (inner,) = pending_calls(waits)
    assert (inner.kind, inner.path, inner.args) == ("elicitation", ("helper", "double"), question.args)
    server.finish_login(**log_in(question.args["url"]))
    assert executor.execute_all(message, messages=[message, *results], decisions=[question.respond({})])[-1].content == "2"
    assert outer.resume([*QUESTION, *new_messages(waits)], [inner.respond({})]).text == "Done."
    assert served.calls == [1, 2]


@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_approve_is_asked_at_once(way: str, served: LoginServer, connect: Connect) -> None:
    """It may have a human log in while the call waits; what it rejects, or somebody rejects later, does not run, and the model is told."""
    server = await asyncio.to_thread(logged_in, connect())
    made = model(server, asks(1))
    served.authorization.forget()

    def approve(call: Any) -> Any:
        if call.kind != "elicitation":
            return call.approve()
        server.finish_login(**log_in(call.args["url"]))
        return call.respond({})

    def reject(call: Any) -> Any:
        return call.reject() if call.kind == "elicitation" else call.approve()

    refused = await run_in(way, made, QUESTION, approve=reject)
    assert "nobody has logged in: this call has not run" in refused.new[1].text and served.calls == []
    made = model(server, asks(1))
    waits = await run_in(way, made, QUESTION)
    (question,) = pending_calls(waits.message)
    later = await run_in(way, made, [*QUESTION, *waits.new], resume=[question.cancel()])
    assert "nobody has logged in: this call has not run" in later.new[0].text and served.calls == []
    ran = await run_in(way, model(server, asks(1)), QUESTION, approve=approve)
    assert (ran.new[1].text, served.calls) == ("2", [1])


def test_a_tool_that_needs_more_than_was_granted(served: LoginServer, connect: Connect) -> None:
    """The login asks for what was granted and for what the server says; a login that has ended elsewhere counts without a question."""
    server = logged_in(connect())
    made = model(server, asks(1, name="write"))
    waits = made.invoke(QUESTION)
    (question,) = pending_calls(waits)
    assert "scope=read+write" in question.args["url"] and served.calls == []
    connect().finish_login(**log_in(question.args["url"]))
    assert said(made.resume([*QUESTION, *new_messages(waits)], [question.respond({})])) == ["2"]
    assert said(model(server, asks(2, name="write")).invoke(QUESTION)) == ["4"]


def test_a_server_whose_tools_are_listed_without_a_login(storage: Folder) -> None:
    """Its calls wait; without a redirect URI there is no address yet, and `login_url` returns it."""
    with LoginServer(open_lists=True) as served, mcp_server(served.url, storage=storage) as server:
        waits = model(server, asks(1)).invoke(QUESTION)
        (question,) = pending_calls(waits)
        assert question.args == {"message": f"Log in at the MCP server {served.url!r}."}
        logged_in(server)
        assert said(model(server).resume([*QUESTION, *new_messages(waits)], [question.respond({})])) == ["2"]


@pytest.mark.skipif(not MODERN, reason="calls can wait for a server's questions since version 2 of `mcp`")
def test_a_login_between_a_question_and_its_answer(storage: Folder) -> None:
    """The answers that a human has given before are not asked for again."""
    with LoginServer(is_modern=True) as served, logged_in(mcp_server(served.url, storage=storage)) as server:
        made = model(server, asks(1, name="ask"))
        asked = made.invoke(QUESTION)
        (question,) = pending_calls(asked)
        assert question.args["message"] == "Which number?"
        served.authorization.forget()
        history = [*QUESTION, *new_messages(asked)]
        waits = made.resume(history, [question.respond({"number": 7})])
        history += new_messages(waits)
        (login,) = pending_calls(history)
        server.finish_login(**log_in(login.args["url"]))
        assert said(made.resume(history, [login.respond({})])) == ["2"]
        assert served.answers == [{"number": {"action": "accept", "content": {"number": 7}}}] and served.calls == [1]


@pytest.mark.parametrize("kind", ["AI SDK", "AG-UI", "server-sent events"])
def test_a_page_shows_where_to_log_in(kind: str, served: LoginServer, connect: Connect) -> None:
    """With a link, as it shows the other questions of servers that have one; its answer goes on with the call."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui, ai_sdk, sse
    from tests.support.event_stream import frames_of
    from tests.unit.mcp_client.test_questions_in_pages import Conversation, posts_of_both

    writers: dict[str, Any] = {"AI SDK": (ai_sdk, {}), "AG-UI": (ag_ui, {"thread_id": "t"}), "server-sent events": (sse, {})}
    write, options = writers[kind]
    server = logged_in(connect())
    page = Conversation(model(server, asks(4)), write, **options)
    served.authorization.forget()
    data = page.run()
    (question,) = pending_calls(page.history)
    assert json.dumps(question.args["url"])[1:-1] in b"".join(data).decode()
    server.finish_login(**log_in(question.args["url"]))
    if write is not sse:
        page.run(posts_of_both(page, data, {})().decisions)
    else:
        ((call,),) = [frame.json["calls"] for frame in frames_of(data) if frame.event == "pending"]
        page.run([{name: call[name] for name in ("id", "uuid", "digest")} | {"action": "respond", "value": {}}])
    assert (page.result(), served.calls) == (8, [4])


# ---------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_a_thousand_calls_over_twenty_expiries(way: str, served: LoginServer, connect: Connect) -> None:
    """None is lost, none runs twice; each token is renewed once, however many calls need it."""
    server = logged_in(connect())
    served.authorization.uses = 50
    executor = ToolExecutor([server])
    turns = [asks(*range(first, first + 20)) for first in range(0, 1000, 20)]
    if way == "synchronous":
        results = [result.content for turn in turns for result in executor.execute_all(turn)]
    else:

        async def run() -> list[Any]:
            return [result.content for turn in turns for result in await executor.aexecute_all(turn)]

        results = asyncio.run(run())
    assert results == [str(2 * number) for number in range(1000)]
    assert sorted(served.calls) == [*range(1000)]
    assert served.authorization.refreshed >= 20 and served.authorization.reused == 0 and served.refused > 0


def test_a_token_is_renewed_before_it_expires(served: LoginServer, connect: Connect) -> None:
    """The server refuses nothing then."""
    served.authorization.expires_in = 0
    server = logged_in(connect())
    refused = served.refused
    assert doubled(server, range(30)) == [str(2 * number) for number in range(30)]
    assert served.refused == refused and served.authorization.refreshed >= 3 and served.authorization.reused == 0


@pytest.mark.parametrize("act", ["call", "call locked"])
def test_two_processes_renew_one_login(act: str, served: LoginServer, storage: Folder, connect: Connect) -> None:
    """Where both use one refresh token, the later one has what the first one got; with a lock no token is used twice."""
    logged_in(connect())
    served.authorization.uses, served.authorization.ends_reused = 40, act == "call locked"
    children = [child(served, storage, act, first, first + 200) for first in (0, 200)]
    for one in children:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in children:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    results = []
    for one in children:
        with one:
            results += json.loads(one.communicate(timeout=200)[0])
    assert results == [str(2 * number) for number in range(400)]
    assert sorted(served.calls) == [*range(400)]
    assert act == "call" or served.authorization.reused == 0


async def test_a_call_that_is_cancelled_loses_no_token(served: LoginServer, connect: Connect) -> None:
    """The authorization server takes a refresh token once: what it has answered is kept, although nobody waits for it any more."""
    server = await asyncio.to_thread(logged_in, connect())
    executor = await asyncio.to_thread(ToolExecutor, [server])
    served.authorization.forget(refresh=False)
    served.authorization.holds = True
    begun = asyncio.ensure_future(executor.aexecute_all(asks(1)))
    while not served.authorization.held:
        await asyncio.sleep(0.01)
    begun.cancel()
    await asyncio.wait([begun])
    served.authorization.holds = False
    (result,) = await executor.aexecute_all(asks(2))
    assert (result.content, served.authorization.refreshed, served.authorization.reused) == ("4", 1, 0)


def test_an_authorization_server_that_is_out_of_order(served: LoginServer, connect: Connect) -> None:
    """The call has not run, in words, and nobody has to log in because of it; the next one works when it is back."""
    server = logged_in(connect())
    executor = ToolExecutor([server], default_policy=ToolPolicy(timeout=30))
    served.authorization.forget(refresh=False)
    served.authorization.is_broken = True
    (result,) = executor.execute_all(asks(1))
    assert "cannot be renewed now (HTTP 500)" in str(result.content) and "unknown" not in str(result.content)
    served.authorization.is_broken = False
    (result,) = executor.execute_all(asks(2))
    assert (result.content, served.calls) == ("4", [2])


def test_what_is_secret_is_shown_nowhere(served: LoginServer, storage: Folder, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    """Codes, tokens, verifiers and the client's secret: in no repr, pickle, error, message, history or log, at DEBUG."""
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        server = connect(redirect_uri=BACK)
        url = server.login_url()
        verifiers = [json.loads(text)["code_verifier"] for text in storage.texts if "code_verifier" in text]
        came = log_in(url)
        with pytest.raises(LoginError) as refused:
            server.finish_login(came["code"], "invented")
        shown += traceback.format_exception(refused.value)
        server.finish_login(**came)
        made = model(server, asks(1), asks(2, name="write"))
        served.authorization.uses = 3
        run = made.invoke(QUESTION)
        shown += [repr(server), repr(made), repr(run), url]
        with pytest.raises(pickle.PicklingError, match="storage, which no pickle holds") as unwritten:
            pickle.dumps(server)
        shown += traceback.format_exception(unwritten.value)
        served.authorization.forget()
        with pytest.raises(LoginNeededError) as needed:
            connect().tools()
        shown += [*traceback.format_exception(needed.value), repr(pickle.dumps(needed.value))]
        with pytest.raises(LoginError) as late:
            server.finish_login(code := "a secret of ours", came["state"])
        shown += [line for line in traceback.format_exception(late.value) if __file__ not in line]
    own = [record for record in caplog.records if not record.name.startswith(("uvicorn", "mcp.server", "python_multipart"))]
    shown += [record.getMessage() for record in own if came["code"] not in record.getMessage() or "callback" not in record.getMessage()]
    secrets = [*served.authorization.issued, *verifiers, code]
    secrets += [client.client_secret for client in served.authorization.clients.values() if client.client_secret]
    assert len(verifiers) == 1 and len(secrets) > 6 and len(shown) > 50
    assert [(secret, text) for text in shown for secret in secrets if secret in text] == []
