"""The endpoints under examples/web, served by uvicorn on loopback: what clients read, what comes back, and what ends when they leave."""

import json
import re
import runpy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages
from tests.support.asgi_server import AsgiServer
from tests.support.event_stream import EventStreamParser, Frame, frames_of
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn

WEB = Path(__file__).resolve().parents[2] / "examples" / "web"
LOOKS = Turn("Let me look.", [Call("get_temperature", {"city": "Rome"})])
MAILS = Turn(calls=[Call("send_mail", {"to": "Anna", "text": "Hi."})])
Serve = Callable[[str], str]


@pytest.fixture(scope="module")
def only_vendor() -> Iterator[OpenAIServer]:
    """The server that the examples' models ask."""
    with OpenAIServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "key")
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("CHATS", ":memory:")
        yield server


@pytest.fixture(scope="module")
def serve(only_vendor: OpenAIServer) -> Iterator[Serve]:
    """Serves an example, once; gives its address."""
    with ExitStack() as servers:

        @cache
        def served(name: str) -> str:
            app = runpy.run_path(str(WEB / f"{name}.py"))["app"]
            return servers.enter_context(AsgiServer(app() if name == "openai_endpoint" else app)).address

        yield served


@pytest.fixture
def vendor(only_vendor: OpenAIServer) -> Iterator[OpenAIServer]:
    """The same server for one test, which writes its script."""
    only_vendor.exchanges.clear()
    yield only_vendor
    assert (only_vendor.rejections, only_vendor.left) == ([], 0)


@pytest.fixture
def conversation(serve: Serve) -> str:
    """Where a new conversation over server-sent events is held."""
    return f"{serve('sse_endpoint')}/conversations/{uuid4().hex}"


def posted(address: str, **body: Any) -> list[Frame]:
    """The frames that answer a post."""
    with httpx.stream("POST", address, json=body, timeout=20) as response:
        assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        return frames_of(response.iter_raw())


def told(frames: list[Frame], name: str) -> list[Any]:
    """What the frames of a name say."""
    return [frame.json for frame in frames if frame.event == name]


# ---------------------------------------------------------------------------------------------- server-sent events


def test_a_conversation_over_server_sent_events(vendor: OpenAIServer, conversation: str) -> None:
    """A question is answered with its tools; the next one knows the history, which the client never sends."""
    vendor.extend([LOOKS, Turn("21 °C in Rome."), Turn("You asked about Rome.")])
    frames = posted(conversation, question="How warm is it in Rome?")
    assert "".join(one["text"] for one in told(frames, "text")) == "Let me look.21 °C in Rome."
    (call,), (result,), (done,) = told(frames, "tool_call"), told(frames, "tool_result"), told(frames, "done")
    assert (call["args"], result["call_id"], result["content"]) == ({"city": "Rome"}, call["call_id"], "21 °C")
    assert (done["stop_reason"], done["turns"], done["max_turns_reached"]) == ("complete", 2, False)
    assert [one["message"]["type"] for one in told(frames, "message")] == ["ai", "tool", "ai"]
    posted(conversation, question="What did I ask?")
    assert [message["role"] for message in vendor.messages[-1]] == ["user", "assistant", "tool", "assistant", "user"]


def test_a_call_that_waits_is_decided_by_another_post(vendor: OpenAIServer, conversation: str) -> None:
    """Its decision is made of what the frame has shown."""
    vendor.extend([MAILS, Turn("Done.")])
    frames = posted(conversation, question="Write to Anna.")
    ((call,),) = [one["calls"] for one in told(frames, "pending")]
    assert (call["name"], told(frames, "done")[0]["stop_reason"]) == ("send_mail", "calls_pending")
    decision = {"id": call["id"], "action": "approve", "value": None, "uuid": call["uuid"], "digest": call["digest"]}
    frames = posted(conversation, decisions=[decision])
    assert [one["content"] for one in told(frames, "tool_result")] == ["Sent to Anna."]
    assert told(frames, "done")[0]["stop_reason"] == "complete"


def test_decisions_that_cannot_be_carried_out_are_answered_with_400(vendor: OpenAIServer, conversation: str) -> None:
    """Instead of a stream, with the call and what is wrong; the call waits still, and runs as it is decided then."""
    vendor.extend([MAILS, Turn("Done.")])
    ((call,),) = [one["calls"] for one in told(posted(conversation, question="Write to Anna."), "pending")]
    decision = {"id": call["id"], "action": "edit", "value": {"to": "Ben", "cc": "Eve"}, "uuid": call["uuid"], "digest": call["digest"]}
    refused = httpx.post(conversation, json={"decisions": [decision]}, timeout=20)
    assert refused.status_code == 400
    assert refused.json()["detail"] == [[call["uuid"], call["id"], "'cc' is no argument of the tool."]]
    frames = posted(conversation, decisions=[{**decision, "value": {"to": "Ben", "text": "Hi."}}])
    assert told(frames, "done")[0]["stop_reason"] == "complete"


def test_a_user_decides_and_types_in_one_post(vendor: OpenAIServer, conversation: str) -> None:
    """The message comes behind the result, and one reply answers both; the next question knows of it."""
    vendor.extend([MAILS, Turn("Quick enough."), Turn("Yes.")])
    frames = posted(conversation, question="Write to Anna.")
    ((call,),) = [one["calls"] for one in told(frames, "pending")]
    decision = {"id": call["id"], "action": "approve", "value": None, "uuid": call["uuid"], "digest": call["digest"]}
    frames = posted(conversation, question="And be quick.", decisions=[decision])
    assert [one["message"]["type"] for one in told(frames, "message")] == ["tool", "human", "ai"]
    assert [one["role"] for one in vendor.messages[-1]] == ["user", "assistant", "tool", "user"]
    posted(conversation, question="Done?")
    assert [one["role"] for one in vendor.messages[-1]] == ["user", "assistant", "tool", "user", "assistant", "user"]


def test_a_failure_is_told_without_its_text(vendor: OpenAIServer, conversation: str) -> None:
    """The response is whole, and its last frame says what happened."""
    vendor.extend([Failure(401, "Incorrect API key: secret", "invalid_request_error", "invalid_api_key")])
    frames = posted(conversation, question="Hi.")
    assert frames[-1].event == "error"
    assert frames[-1].json["error"] == "OpenAIAuthenticationError"
    assert "secret" not in str(frames)


@pytest.mark.parametrize("example, path, body", [
    ("sse_endpoint", "/conversations/1", {"question": "Hi."}),
    ("ai_sdk_endpoint", "/api/chat", {"id": "2", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Hi."}]}]}),
    ("openai_endpoint", "/v1/chat/completions", {"model": "assistant", "messages": [{"role": "user", "content": "Hi."}], "stream": True}),
])  # fmt: skip
def test_a_client_that_leaves_ends_its_run(example: str, path: str, body: dict[str, Any], vendor: OpenAIServer, serve: Serve) -> None:
    """The request to the vendor is closed in the middle of its reply."""
    gate = Gate()
    vendor.extend([Turn("A long story.", holds={3: gate})])
    with httpx.stream("POST", serve(example) + path, json=body, timeout=20) as response:
        pieces = response.iter_raw()  # kept: its end would be that of the response
        assert next(pieces)
        assert gate.reached.wait(20)
    assert vendor.exchanges[0].disconnected.wait(20)


def test_a_client_that_comes_back_misses_nothing(vendor: OpenAIServer, serve: Serve) -> None:
    """The run goes on without it; with Last-Event-ID it gets the rest, without all of it, in the same frames with the same numbers."""
    gate = Gate()
    vendor.extend([LOOKS, Turn("21 °C in Rome.", holds={3: gate})])
    address = serve("kept_runs")
    run = f"{address}/runs/{httpx.post(f'{address}/runs', json={'question': 'How warm is it?'}).json()['id']}"
    first: list[Frame] = []
    with httpx.stream("GET", run, timeout=20) as response:
        parser = EventStreamParser()
        for piece in response.iter_raw():
            first += parser.feed(piece)
            if told(first, "tool_result"):
                break
    assert gate.reached.wait(20)
    gate.open()
    with httpx.stream("GET", run, headers={"Last-Event-ID": first[-1].id}, timeout=20) as response:
        rest = frames_of(response.iter_raw())
    with httpx.stream("GET", run, timeout=20) as response:
        assert frames_of(response.iter_raw()) == [*first, *rest]
    assert "".join(one["text"] for one in told([*first, *rest], "text")) == "Let me look.21 °C in Rome."
    assert not vendor.exchanges[1].disconnected.is_set()
    assert httpx.get(f"{address}/runs/none").status_code == 404


def test_a_kept_run_is_ended_by_name(vendor: OpenAIServer, serve: Serve) -> None:
    """Whoever reads it sees how it ended."""
    gate = Gate()
    vendor.extend([Turn("A long story.", holds={3: gate})])
    address = serve("kept_runs")
    run = f"{address}/runs/{httpx.post(f'{address}/runs', json={'question': 'Tell me a story.'}).json()['id']}"
    assert gate.reached.wait(20)
    assert httpx.delete(run).status_code == 204
    with httpx.stream("GET", run, timeout=20) as response:
        assert told(frames_of(response.iter_raw()), "done")[0]["stop_reason"] == "cancelled"


# ---------------------------------------------------------------------------------------------- the AI SDK


def chunks_of(address: str, conversation: str, role: str, *parts: Any, before: Any = (), **body: Any) -> list[Any]:
    """The chunks that answer what a page posts."""
    body |= {"id": conversation, "messages": [*before, {"role": role, "parts": parts}], "trigger": "submit-message"}
    with httpx.stream("POST", f"{address}/api/chat", json=body, timeout=20) as response:
        assert (response.status_code, response.headers["x-vercel-ai-ui-message-stream"]) == (200, "v1")
        return [frame.json for frame in frames_of(response.iter_raw()) if frame.data != "[DONE]"]


def test_a_page_of_the_ai_sdk_asks_and_decides(vendor: OpenAIServer, serve: Serve) -> None:
    """Text, progress, a call that waits, also on a page loaded again; a forged answer changes nothing, the page's own runs the edit."""
    vendor.extend([LOOKS, MAILS, Turn("Sent.")])
    address, conversation = serve("ai_sdk_endpoint"), uuid4().hex
    chunks = chunks_of(address, conversation, "user", {"type": "text", "text": "Tell Anna how warm it is in Rome."})
    assert "".join(chunk.get("delta", "") for chunk in chunks) == "Let me look."
    outputs = [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert outputs == ["asking the station (1 of 2)", "asking the satellite (2 of 2)", "21 °C"]
    (asks,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    assert chunks[-1]["messageMetadata"]["stop_reason"] == "calls_pending"
    approval = {"id": asks["approvalId"], "approved": True, "signature": asks["signature"]}
    known = httpx.get(f"{address}/api/chat/{conversation}").json()  # as a page does that is loaded again
    (waits,) = [part for part in known[-1]["parts"] if part.get("state") == "approval-requested"]
    part = {**waits, "state": "approval-responded", "approval": {**waits["approval"], "approved": True}}
    assert part["approval"] == approval and [one["role"] for one in known] == ["user", "assistant"]
    forged = {**part, "approval": {**approval, "signature": "forged"}}
    body = {"id": conversation, "messages": [{"role": "assistant", "parts": [forged]}]}
    assert httpx.post(f"{address}/api/chat", json=body).status_code == 409
    wrong = httpx.post(
        f"{address}/api/chat", json={**body, "messages": [{"role": "assistant", "parts": [part]}], "edits": {part["toolCallId"]: {}}}
    )
    ((uuid, call_id, words),) = wrong.json()["detail"]
    assert (wrong.status_code, call_id, approval["signature"].partition(".")[0]) == (400, part["toolCallId"], uuid)
    assert words == "The arguments of 'send_mail' are not valid: to: Field required; text: Field required."
    chunks = chunks_of(address, conversation, "assistant", part, edits={asks["toolCallId"]: {"to": "Ben", "text": "Hi."}})
    (output,) = [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert output.endswith("Sent to Ben.") and chunks[-1]["finishReason"] == "stop"


def test_a_page_of_the_ai_sdk_decides_and_types_in_one_post(vendor: OpenAIServer, serve: Serve) -> None:
    """The reply is a message of its own behind the user's, with the call's result; a page that is loaded again has the history's order."""
    vendor.extend([MAILS, Turn("Quick enough.")])
    address, conversation = serve("ai_sdk_endpoint"), uuid4().hex
    chunks_of(address, conversation, "user", {"type": "text", "text": "Write to Anna."})
    known = httpx.get(f"{address}/api/chat/{conversation}").json()
    (waits,) = [part for part in known[-1]["parts"] if part.get("state") == "approval-requested"]
    part = {**waits, "state": "approval-responded", "approval": {**waits["approval"], "approved": True}}
    before = [{"role": "assistant", "parts": [part]}]
    chunks = chunks_of(address, conversation, "user", {"type": "text", "text": "And be quick."}, before=before)
    assert [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"] == ["Sent to Anna."]
    assert "".join(chunk.get("delta", "") for chunk in chunks) == "Quick enough."
    assert [one["role"] for one in vendor.messages[-1]] == ["user", "assistant", "tool", "user"]
    known = httpx.get(f"{address}/api/chat/{conversation}").json()
    assert [one["role"] for one in known] == ["user", "assistant", "user", "assistant"]


@pytest.mark.further
def test_what_is_said_while_a_run_of_the_ai_sdk_goes_on_is_read_by_it(vendor: OpenAIServer, serve: Serve) -> None:
    """The stream tells where; the history has it there, also for a page that is loaded again."""
    gate = Gate()
    vendor.extend([Turn("Let me think.", holds={2: gate}), Turn("Rome, then.")])
    address, conversation = serve("ai_sdk_endpoint"), uuid4().hex
    body = {"id": conversation, "messages": [{"role": "user", "parts": [{"type": "text", "text": "How warm is it in Paris?"}]}]}
    with httpx.stream("POST", f"{address}/api/chat", json=body, timeout=20) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        assert gate.reached.wait(20)
        body["messages"][0]["parts"][0]["text"] = "I meant Rome."  # type: ignore[index]
        assert httpx.post(f"{address}/api/chat", json=body).status_code == 202
        gate.open()
        chunks = [frame.json for frame in frames_of([first, *pieces]) if frame.data != "[DONE]"]
    kinds = [chunk["type"] for chunk in chunks]
    at = kinds.index("data-user-message")
    assert chunks[at]["data"] == {"id": chunks[at]["id"], "role": "user", "parts": [{"type": "text", "text": "I meant Rome."}]}
    assert kinds[at - 1 : at + 2] == ["finish-step", "data-user-message", "start-step"]
    assert "".join(chunk.get("delta", "") for chunk in chunks[at:]) == "Rome, then."
    assert [message["content"] for message in vendor.messages[-1] if message["role"] == "user"][1:] == ["I meant Rome."]
    known = httpx.get(f"{address}/api/chat/{conversation}").json()
    assert [one["role"] for one in known] == ["user", "assistant", "user", "assistant"]
    assert httpx.post(f"{address}/api/chat", json={**body, "messages": [{"role": "assistant", "parts": []}]}).status_code == 409


@pytest.mark.further
def test_a_page_of_the_ai_sdk_outlives_its_program(vendor: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has the conversation, and a call that waited can be decided there."""
    monkeypatch.setenv("CHATS", str(tmp_path / "chats.sqlite"))
    vendor.extend([MAILS, Turn("Sent.")])
    known: list[Any] = []
    for again in (False, True):
        with AsgiServer(runpy.run_path(str(WEB / "ai_sdk_endpoint.py"))["app"]) as server:
            if not again:
                chunks_of(server.address, "'x", "user", {"type": "text", "text": "Write to Anna."})
            known.append(httpx.get(f"{server.address}/api/chat/'x").json())
            if again:
                (waits,) = [part for part in known[-1][-1]["parts"] if part.get("state") == "approval-requested"]
                part = {**waits, "state": "approval-responded", "approval": {**waits["approval"], "approved": True}}
                chunks = chunks_of(server.address, "'x", "assistant", part)
    assert known[0] == known[1] and [one["role"] for one in known[0]] == ["user", "assistant"]
    assert [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"] == ["Sent to Anna."]


def test_the_page_is_served_and_what_makes_no_sense_is_refused(serve: Serve) -> None:
    """The page is one file, which asks nobody but its server."""
    address = serve("ai_sdk_endpoint")
    page = httpx.get(address).text
    assert len(page.splitlines()) < 210 and "default-src 'self'" in page and not re.search(r"https?://\w", page)
    assert httpx.post(f"{address}/api/chat", json={"id": "1", "messages": []}).status_code == 400


# ---------------------------------------------------------------------------------------------- OpenAI's protocol


@pytest.fixture
def client(serve: Serve) -> Iterator[openai.OpenAI]:
    """OpenAI's own SDK, which asks the example."""
    with openai.OpenAI(base_url=f"{serve('openai_endpoint')}/v1", api_key="any", max_retries=0) as sdk:
        yield sdk


USER: Any = [{"role": "user", "content": "How warm is it in Rome?"}]
LOCATE: Any = {
    "type": "function",
    "function": {"name": "locate", "description": "Theirs.", "parameters": {"type": "object", "properties": {}}},
}


def test_tools_run_inside_and_the_sdk_reads_one_completion(vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """The texts of all turns are one, the tokens those of all turns."""
    vendor.extend([LOOKS, Turn("21 °C in Rome.", reasoning="Hm.")])
    completion = client.chat.completions.create(model="assistant", messages=USER, max_completion_tokens=50)
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.tool_calls) == ("Let me look.\n21 °C in Rome.", "stop", None)
    assert choice.message.reasoning_content == "Hm."  # type: ignore[attr-defined]
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens, completion.usage.total_tokens) == (22, 14, 36)
    assert vendor.requests[0].get("max_completion_tokens", vendor.requests[0].get("max_tokens")) == 50


def test_the_sdk_reads_the_stream(vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """Its accumulator comes to the same completion; the last chunk has the usage where that is asked for, and only there."""
    vendor.extend([LOOKS, Turn("21 °C in Rome.")] * 2)
    with client.chat.completions.stream(model="assistant", messages=USER, stream_options={"include_usage": True}) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == "Let me look.\n21 °C in Rome."
    assert completion.usage is not None and completion.usage.total_tokens == 36
    chunks = list(client.chat.completions.create(model="assistant", messages=USER, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


@pytest.mark.parametrize("streamed", [True, False])
def test_calls_of_the_clients_own_tools_go_to_the_client(streamed: bool, vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """Beside calls that have run inside; the results come with the next request."""
    vendor.extend([Turn(calls=[*LOOKS.calls, Call("locate", {"near": 1})]), Turn("You are in Rome.")])
    options: Any = {"model": "assistant", "tools": [LOCATE]}
    if streamed:
        with client.chat.completions.stream(messages=USER, **options) as stream:
            choice = stream.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(messages=USER, **options).choices[0]
    (call,) = choice.message.tool_calls or ()
    assert (choice.finish_reason, call.function.name, json.loads(call.function.arguments)) == ("tool_calls", "locate", {"near": 1})
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": call.id, "type": "function", "function": dict(call.function)}]}
    asked["tool_calls"][0]["function"] = {"name": "locate", "arguments": call.function.arguments}  # type: ignore[index]
    answered = {"role": "tool", "tool_call_id": call.id, "content": "Rome"}
    completion = client.chat.completions.create(messages=[*USER, asked, answered], **options)
    assert completion.choices[0].message.content == "You are in Rome."
    assert [message["role"] for message in vendor.messages[-1]] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    "choice, tools, sent", [("none", 1, None), ("required", 2, "required"), ({"function": {"name": "locate"}}, 2, "locate")]
)
def test_what_the_client_says_of_its_tools_holds(choice: Any, tools: int, sent: Any, vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """With `none` they are not declared; the model's own tools are in any case."""
    vendor.extend([Turn("Hello.")])
    client.chat.completions.create(model="assistant", messages=USER, tools=[LOCATE], tool_choice=choice, temperature=0.5, stop=["!"])
    request = vendor.requests[-1]
    said = request.get("tool_choice")
    assert (len(request["tools"]), request["temperature"], request["stop"]) == (tools, 0.5, ["!"])
    assert (said["function"]["name"] if isinstance(said, dict) else said) == sent


async def test_our_own_model_is_a_client_with_tools_of_its_own(vendor: OpenAIServer, serve: Serve) -> None:
    """Two loops, one inside the other: the endpoint's tools run there, the client's here."""
    vendor.extend([LOOKS, Turn("I ask you.", [Call("locate", {})]), Turn("You are in Rome, at 21 °C.")])

    @tool
    def locate() -> str:
        """Say where the user is."""
        return "Rome"

    model = ChatOpenAI(model="assistant", base_url=f"{serve('openai_endpoint')}/v1", api_key="any", tools=[locate])  # type: ignore[arg-type]
    chunks = [chunk async for chunk in model.astream([HumanMessage("How warm is it here?")])]
    assert "".join(chunk.text for chunk in chunks) == "Let me look.\nI ask you.\nYou are in Rome, at 21 °C."
    messages = [message for chunk in chunks for message in new_messages(chunk)]
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == ["Rome"]


@pytest.mark.parametrize("turn, reason", [(Turn("Cut", finish="length"), "length"), (Turn("", finish="content_filter"), "content_filter")])
def test_the_finish_reason_says_why_the_run_ended(turn: Turn, reason: str, vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """In the vendor's words."""
    vendor.extend([turn])
    assert client.chat.completions.create(model="assistant", messages=USER).choices[0].finish_reason == reason


def test_errors_have_the_vendors_form_and_status(vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """As the SDK raises them; a text of the vendor behind is not shown, nor that its key is wrong."""
    create: Any = client.chat.completions.create
    with pytest.raises(openai.NotFoundError) as missing:
        create(model="other", messages=USER)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model") and "There are: assistant." in missing.value.message
    headers = {"retry-after-ms": "1"}
    for status, error in ((401, openai.InternalServerError), (429, openai.RateLimitError), (400, openai.BadRequestError)):
        for streamed in (True, False):
            vendor.extend([Failure(status, "secret", headers=headers)] * (3 if status == 429 else 1))
            with pytest.raises(error) as raised:
                create(model="assistant", messages=USER, stream=streamed)
            assert "secret" not in str(raised.value)


FUNCTION: Any = {"type": "function", "function": {"name": "not a name", "parameters": {}}}


@pytest.mark.parametrize("wrong, param, reason", [
    ({"messages": []}, "messages", "`messages` is missing or empty."),
    ({"messages": "Hi."}, "messages", "`messages` must be an array."),
    ({"messages": [*USER, {"role": "nobody", "content": "x"}]}, "messages[1].role", "must be one of: system, developer, user"),
    ({"messages": [{"content": "x"}]}, "messages[0].role", "must be one of"),
    ({"messages": [1]}, "messages[0].role", "must be one of"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id", "is missing"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages", "Input should be a valid string"),
    ({"messages": [{"role": "user", "content": [{"type": "odd"}]}]}, None, "content block of type 'odd' cannot be sent"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type", "must be `function`"),
    ({"tools": {}}, "tools", "must be an array"),
    ({"tools": [{"type": "function", "function": 5}]}, "tools", "The tools cannot be used"),
    ({"tools": [FUNCTION]}, "tools", "tool name 'not a name' cannot be sent"),
    ({"tool_choice": "required"}, "tool_choice", "only allowed where `tools` are given"),
    ({"n": 2}, "n", "not supported here"),
    ({"response_format": {"type": "json_object"}}, "response_format", "not supported here"),
    ({"temperature": "hot"}, "temperature", "must be a number"),
    ({"max_tokens": True}, "max_tokens", "must be an integer"),
    ({"max_tokens": -1}, None, "max_tokens must be 0 or more"),
    ({"model": ""}, "model", "`model` is missing or empty."),
])  # fmt: skip
@pytest.mark.further
def test_what_cannot_be_is_refused_with_its_reason(wrong: Any, param: str | None, reason: str, client: openai.OpenAI) -> None:
    """With status 400, as the SDK reads it; nothing is asked of the vendor behind."""
    create: Any = client.chat.completions.create
    with pytest.raises(openai.BadRequestError) as refused:
        create(**{"model": "assistant", "messages": USER, **wrong})
    error: Any = refused.value.body
    assert reason in error["message"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_an_error_in_the_middle_of_a_stream_is_raised_there(vendor: OpenAIServer, client: openai.OpenAI) -> None:
    """After the text that was sent."""
    vendor.extend([LOOKS, Failure(401, "secret")])
    seen = ""
    with pytest.raises(openai.APIError, match="The run failed"):
        for chunk in client.chat.completions.create(model="assistant", messages=USER, stream=True):
            seen += chunk.choices[0].delta.content or ""
    assert seen == "Let me look."


@pytest.mark.parametrize(
    "body, reason",
    [
        ("{", "no JSON"),
        ("", "no JSON"),
        ("[]", "must be a JSON object"),
        ("3", "must be a JSON object"),
        ('{"messages": 1}', "`model` is missing"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(body: str, reason: str, serve: Serve) -> None:
    """With an error in the vendor's form."""
    response = httpx.post(f"{serve('openai_endpoint')}/v1/chat/completions", content=body)
    error = response.json()["error"]
    assert response.status_code == 400 and reason in error["message"]
    assert set(error) == {"message", "type", "param", "code"}


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    """A chat page offers what it finds there."""
    assert [model.id for model in client.models.list()] == ["assistant"]
    assert client.models.retrieve("assistant").id == "assistant"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("some/other")
    assert missing.value.code == "model_not_found" and "`some/other` does not exist" in missing.value.message
    with pytest.raises(openai.NotFoundError, match="There is no POST /v1/embeddings here"):
        client.embeddings.create(model="assistant", input="Hi.")
