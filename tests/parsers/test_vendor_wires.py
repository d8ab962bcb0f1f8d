"""From the bytes of every wire to the official clients of pages: what a vendor does by itself, what waits, and what becomes of it.

Servers write random replies, the encoders write the runs, the clients read them and decide, and the runs go on with what they post.
What a client has is compared with what the servers wrote. PARSER_RUNS says how many conversations, SEED which is the first.
"""

import json
import logging
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from langchain_autotools import Decision
from langchain_autotools.encoders import ag_ui, ai_sdk, from_ag_ui, from_ai_sdk
from langchain_autotools.event_types import CallResult, MessageDiscarded, RunEvent
from langchain_autotools.messages.metadata import text_of
from tests.support.vendor_replies import PIXEL

from .official import Parsers, pieces_of
from .test_ai_sdk import RUNS, SLICE
from .vendor_conversations import KEY, Talk, Vendors
from .wires import Shows

pytestmark = pytest.mark.parsers

SEED = int(os.environ.get("SEED", "0"))
MOST = 5


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    """The servers that all conversations ask."""
    with Vendors() as servers:
        yield servers


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(SEED, SEED + RUNS, SLICE))
def test_pages_have_what_the_servers_wrote(first: int, parsers: Parsers, vendors: Vendors) -> None:
    """Texts, reasoning, vendors' calls, sources, files, and the calls of tools with their states, through both protocols; no complaint."""
    logging.getLogger("langchain_autotools").setLevel(logging.CRITICAL)
    for seed in range(first, min(first + SLICE, SEED + RUNS)):
        try:
            follow(Talk(seed, vendors), seed, parsers)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


def follow(talk: Talk, seed: int, parsers: Parsers) -> None:
    """Have both pages read a conversation to its end, and decide what waits."""
    draw, whole_turns = random.Random(f"pieces/{seed}"), seed % 3 == 0
    told: list[RunEvent] = []
    decided: list[Decision] = []
    vercel, other = {"page": f"ai {seed}"}, {"page": f"ag {seed}"}
    parsers.ask("ai_sdk", **vercel, text="What is new?")
    parsers.ask("ag_ui", **other, post={"text": "What is new?", "id": "u"})
    for _ in range(MOST):
        events = talk.run()
        told += events
        answer = parsers.ask("ai_sdk", **vercel, reply=pieces_of(b"".join(ai_sdk(events, whole_turns=whole_turns)), draw))
        reply = parsers.ask("ag_ui", **other, reply=pieces_of(b"".join(ag_ui(events, thread_id="thread", run_id="run")), draw))
        assert (answer["errors"], answer["valid"], answer["count"], reply["complaints"], reply["failed"]) == ([], None, 2, [], None)
        gone = whole_turns and any(isinstance(event, MessageDiscarded) for event in told)
        roles = ("outer",) if gone else ("outer", "broken")
        check_ai_sdk(answer["message"]["parts"], [shows for role, shows in talk.shows if role in roles])
        check_states(answer["message"]["parts"], talk, told, decided)
        check_ag_ui(reply["messages"], [shows for _, shows in talk.shows], told)
        if not talk.pending:
            break
        talk.go_on(posted(talk, decisions := talk.decisions(), parsers, vercel, other))
        decided += decisions
    assert not talk.pending
    for page in (("ai_sdk", vercel), ("ag_ui", other)):
        parsers.ask(page[0], **page[1])


# ---------------------------------------------------------------------------------------------- what pages have


def joined(shows: Sequence[Shows], name: str) -> list[Any]:
    """All of a kind, of all replies, in an order of its own: what a vendor does has none between its items."""
    return in_order(entry for one in shows for entry in getattr(one, name))


def in_order(values: Any) -> list[Any]:
    """Values sorted by what they are."""
    return sorted((json.loads(json.dumps(value)) for value in values), key=lambda value: json.dumps(value, sort_keys=True))


def check_ai_sdk(parts: Sequence[Any], shows: Sequence[Shows]) -> None:
    """The parts of the UI message are what the servers wrote for the outermost run."""
    for kind, name in (("text", "text"), ("reasoning", "thought")):
        assert "".join(part["text"] for part in parts if part["type"] == kind) == "".join(getattr(one, name) for one in shows)
    calls = [part for part in parts if part.get("providerExecuted")]
    assert len({part["toolCallId"] for part in calls}) == len(calls)
    assert {part["state"] for part in calls} <= {"output-available", "output-error"}
    assert in_order(ai_sdk_call(part) for part in calls) == joined([*map(as_ai_sdk, shows)], "calls")
    found = [part["url"] if part["type"] == "source-url" else part["title"] for part in parts if part["type"].startswith("source-")]
    assert in_order(found) == in_order(source for one in shows for source in dict.fromkeys(one.sources))
    assert in_order(part["url"] for part in parts if part["type"] == "file") == joined(shows, "files")
    assert in_order(part["data"]["fileId"] for part in parts if part["type"] == "data-vendor-file") == joined(shows, "kept")


def ai_sdk_call(part: Any) -> tuple[Any, ...]:
    """A vendor's call as a UI message has it."""
    failed = part["state"] == "output-error"
    return part["type"].removeprefix("tool-"), part["input"], part["errorText"] if failed else part.get("output"), failed


def as_ai_sdk(shows: Shows) -> Shows:
    """The same calls, of failed ones what went wrong as text."""
    made = Shows()
    for name, args, output, failed in shows.calls:
        why = "The call did not end." if output is None else compact(output)
        made.calls.append((name, args, why if failed else output, failed))
    return made


def compact(value: Any) -> str:
    """A value as JSON in one line, as the encoders write it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028")


def check_states(parts: Sequence[Any], talk: Talk, told: Sequence[RunEvent], decided: Sequence[Decision]) -> None:
    """Each call of a tool is there once, and its state is what became of it."""
    own = {part["toolCallId"]: part for part in parts if "toolCallId" in part and not part.get("providerExecuted")}
    written = in_order((name, args) for role, one in talk.shows if role == "outer" for name, args in one.functions)
    assert in_order((part["type"].removeprefix("tool-"), part["input"]) for part in own.values()) == written
    waits = {call.id: call.kind for call in talk.pending}
    results = {event.call_id: event for event in told if isinstance(event, CallResult) and event.run_id == told[0].run_id}
    answered = {one.id: one.action for one in decided}
    for call_id, part in own.items():
        if call_id in waits:
            expected = "approval-requested" if waits[call_id] in ("approval", "vendor_approval") else "input-available"
        elif answered.get(call_id) == "reject":
            expected = "output-denied"
        elif part["type"] == "tool-fails":
            expected = "output-error"
        else:
            expected = "output-available"
        assert (part["state"], part["type"]) == (expected, part["type"])
        if call_id in results and part["type"] == "tool-look":
            assert part["output"] == f"seen: {part['input']['at']}"
        if expected == "output-available" and part["type"].startswith("tool-computer"):
            assert PIXEL in json.dumps(part["output"]), "a screenshot reaches the page"


def check_ag_ui(messages: Sequence[Any], shows: Sequence[Shows], told: Sequence[RunEvent]) -> None:
    """The messages and activities of the client are what the servers wrote for all runs, and the results are those of the calls."""
    said = [message.get("content") or "" for message in messages if message["role"] == "assistant"]
    assert "".join(said) == "".join(one.text for one in shows)
    assert "".join(one["content"] for one in messages if one["role"] == "reasoning") == "".join(one.thought for one in shows)
    acts = {kind: [one["content"] for one in messages if one.get("activityType") == kind] for kind in ("vendor_call", "sources", "file")}
    calls = [(one["name"], one.get("args") or {}, one.get("output"), one["status"] == "failed") for one in acts["vendor_call"]]
    assert in_order(calls) == joined(shows, "calls") and "running" not in {one["status"] for one in acts["vendor_call"]}
    assert in_order(one.get("url") or one.get("document") for act in acts["sources"] for one in act["sources"]) == joined(shows, "sources")
    assert in_order(one["url"] for one in acts["file"] if "url" in one) == joined(shows, "files")
    assert in_order(one["fileId"] for one in acts["file"] if "url" not in one) == joined(shows, "kept")
    written = [call["function"] for one in messages for call in one.get("toolCalls") or ()]
    assert in_order((one["name"], json.loads(one["arguments"])) for one in written) == joined(shows, "functions")
    results = [text_of(event.message) for event in told if isinstance(event, CallResult)]
    contents = [one["content"] for one in messages if one["role"] == "tool"]
    texts = [content if isinstance(content, str) else "".join(part.get("text", "") for part in content) for content in contents]
    assert {*results} - {""} <= {*texts}


# ---------------------------------------------------------------------------------------------- what pages post


def posted(talk: Talk, decisions: Sequence[Decision], parsers: Parsers, vercel: Any, other: Any) -> list[Decision]:
    """What the pages post of these decisions; they agree, and it is what was decided."""
    asks = {call.id for call in talk.pending if call.kind in ("approval", "vendor_approval")}
    answers = [one for one in decisions if one.id in asks]
    why = [{"reason": one.value} if one.action == "reject" else {} for one in answers]
    approvals = [{"id": one.uuid, "approved": one.action != "reject", **more} for one, more in zip(answers, why, strict=True)]
    outputs = [{"toolCallId": one.id, "tool": "any", "output": one.value} for one in decisions if one.id not in asks]
    options = {"body": {"edits": {one.id: one.value for one in answers if one.action == "edit"}}}
    body = parsers.ask("ai_sdk", **vercel, decide={"approvals": approvals, "outputs": outputs, "options": options})["body"]
    first = from_ai_sdk(body, talk.history, approval_key=KEY).decisions
    payloads = {}
    for one in answers:
        more = {"editedArgs": one.value} if one.action == "edit" else {"reason": one.value} if one.action == "reject" else {}
        payloads[one.id] = {"status": "resolved", "payload": {"approved": one.action != "reject", **more}}
    given = [one for one in decisions if one.id not in asks]
    texts = [one.value if isinstance(one.value, str) else json.dumps(one.value) for one in given]
    results = [{"id": f"t{one.id}", "toolCallId": one.id, "content": text} for one, text in zip(given, texts, strict=True)]
    body = parsers.ask("ag_ui", **other, post={"answers": payloads, "results": results})["body"]
    second = from_ag_ui(body, talk.history, approval_key=KEY).decisions
    for made in (first, second):
        assert {one.id: one.action for one in made} == {one.id: one.action for one in decisions}
    assert {one.id: one.value for one in first} == {one.id: one.value for one in decisions}
    return list(first)
