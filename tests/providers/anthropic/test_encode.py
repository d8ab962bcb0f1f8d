"""Histories of any vendor as requests of the Messages API: each is taken by the strict server's rules."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import UnsupportedFeatureError
from langchain_autotools.history import repair
from langchain_autotools.providers.anthropic.mapper import MessagesMapper
from tests.support.strict_anthropic import check_request

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
PARAMS = {"model": "any", "max_tokens": 10}


def sent(*messages: BaseMessage, mapper: MessagesMapper | None = None) -> dict[str, Any]:
    """The request with these messages; refused ones raise."""
    return check_request((mapper or MessagesMapper(origin="home")).encode_request(list(messages), PARAMS))


def asked(content: Any) -> Any:
    """A user's content as it is sent."""
    return sent(HumanMessage(content))["messages"][0]["content"]


def calling(*ids: str, content: Any = "", **metadata: Any) -> AIMessage:
    """An AI message with calls of `f`."""
    calls = [{"name": "f", "args": {"n": number}, "id": one, "type": "tool_call"} for number, one in enumerate(ids)]
    return AIMessage(content, tool_calls=calls, response_metadata=metadata)


IMAGE = {"type": "base64", "media_type": "image/png", "data": PNG}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
PARTS: dict[str, tuple[Any, Any]] = {
    "text": ("Hi", {"type": "text", "text": "Hi"}),
    "cached text": ({"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}, None),
    "v1 image": ({"type": "image", "base64": PNG, "mime_type": "image/png"}, {"type": "image", "source": IMAGE}),
    "v1 image url": ({"type": "image", "url": "https://x/y.png"}, {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}),
    "v1 image id": ({"type": "image", "file_id": "file_1"}, {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
    "v0 image": ({"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}, {"type": "image", "source": IMAGE}),
    "openai image": ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, {"type": "image", "source": IMAGE}),
    "own image": ({"type": "image", "source": IMAGE}, {"type": "image", "source": IMAGE}),
    "wrong media type": ({"type": "image", "base64": PNG, "mime_type": "image/jpeg"}, {"type": "image", "source": IMAGE}),
    "v1 pdf": ({"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf"}, {"type": "document", "source": PDF}),
    "v1 pdf url": ({"type": "file", "url": "https://x/y.pdf"}, {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}),
    "v1 file id": ({"type": "file", "file_id": "file_1"}, {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    "openai file": (
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "document", "source": PDF, "title": "a.pdf"},
    ),
    "plain text": (
        {"type": "text-plain", "text": "long", "title": "T", "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "long"}, "title": "T"},
    ),
    "own document": (
        {"type": "document", "source": PDF, "title": "T", "citations": {"enabled": True}},
        {"type": "document", "source": PDF, "title": "T", "citations": {"enabled": True}},
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_content_of_a_user(name: str) -> None:
    """Every vendor's way to say a text, an image or a document becomes the wire's."""
    block, expected = PARTS[name]
    assert asked([block]) == [expected or block]


@pytest.mark.parametrize("kind", ["audio", "video", "unheard_of"])
def test_what_the_wire_cannot_carry_is_told(kind: str) -> None:
    """Nothing is dropped silently from what a user says."""
    with pytest.raises(UnsupportedFeatureError, match=kind):
        asked([{"type": kind, "base64": "AAAA", "mime_type": f"{kind}/x"}])


def test_results_of_a_turn_are_one_message_and_come_first() -> None:
    """C-18: the results of one turn are one user message with the user's words after them; errors are marked, emptiness is said."""
    results = [ToolMessage("one", tool_call_id="a"), ToolMessage("", tool_call_id="b", status="error"), ToolMessage("", tool_call_id="c")]
    messages = sent(HumanMessage("q"), calling("a", "b", "c"), *results, HumanMessage("and?"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    first, second, third, words = messages[2]["content"]
    assert (first["tool_use_id"], first["content"], "is_error" in first) == ("a", "one", False)
    assert (second["is_error"], bool(second["content"]), bool(third["content"])) == (True, True, True)
    assert words == {"type": "text", "text": "and?"}


def test_an_image_in_a_result() -> None:
    """A result may hold text and images."""
    content: Any = [{"type": "text", "text": "One."}, {"type": "image", "base64": PNG, "mime_type": "image/png"}]
    messages = sent(HumanMessage("q"), calling("a"), ToolMessage(content, tool_call_id="a"))["messages"]
    assert [part["type"] for part in messages[2]["content"][0]["content"]] == ["text", "image"]


def test_media_of_a_failed_result_stand_behind_the_results() -> None:
    """Wire quirk C-21: inside is the text, with its mark of the cache; pictures, documents and finds follow all results of the turn."""
    mark = {"cache_control": {"type": "ephemeral"}}
    find = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "c"}]}
    media: list[Any] = [{"type": "image", "source": IMAGE}, {"type": "document", "source": PDF, **mark}, find]
    broken = ToolMessage([{"type": "text", "text": "Broken.", **mark}, *media], tool_call_id="a", status="error")
    silent = ToolMessage(media[:1], tool_call_id="b", status="error")
    messages = sent(HumanMessage("q"), calling("a", "b", "c"), broken, silent, ToolMessage("fine", tool_call_id="c"), HumanMessage("?"))
    first, second, third, *behind = messages["messages"][2]["content"]
    assert (first["content"], first["is_error"], "cache_control" in first) == ("Broken.", True, False)
    assert (second["content"], third["content"]) == ("(the output follows in the next message)", "fine")
    assert behind == [text_of("a"), *media, text_of("b"), media[0], {"type": "text", "text": "?"}]


def test_nothing_follows_a_failed_result_that_code_waits_for() -> None:
    """Wire quirk C-19: what its picture was is said in the result."""
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    asked_by_code = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": caller}
    reply = calling("a", content=[asked_by_code])
    reply.response_metadata["autotools"] = {"origin": "home", "calls": [{"id": "a", "extra": {"caller": caller}}]}
    broken = ToolMessage([{"type": "text", "text": "Broken."}, {"type": "image", "source": IMAGE}], tool_call_id="a", status="error")
    messages = sent(HumanMessage("q"), reply, broken)["messages"]
    (result,) = messages[2]["content"]
    first, second = (part["text"] for part in result["content"])
    assert first == "Broken." and second.endswith("this model cannot read it")


def text_of(identifier: str) -> dict[str, Any]:
    """The heading of what a call gave."""
    return {"type": "text", "text": f"Output of tool call {identifier}:"}


def test_ids_of_other_servers_become_legal_and_unique() -> None:
    """H-05, H-07: illegal and repeated ids are replaced, the same each time, on the call and on its result alike."""
    turn = [calling("functions.f:0", "call|1"), ToolMessage("x", tool_call_id="functions.f:0"), ToolMessage("y", tool_call_id="call|1")]
    history: list[AnyMessage] = [
        HumanMessage("q"),
        *turn,
        HumanMessage("again"),
        calling("toolu_1"),
        ToolMessage("z", tool_call_id="toolu_1"),
    ]
    once = sent(*history)
    assert once == sent(*history)
    repeated = sent(HumanMessage("q"), calling("a"), ToolMessage("1", tool_call_id="a"), calling("a"), ToolMessage("2", tool_call_id="a"))
    ids = [part["id"] for message in repeated["messages"] for part in message["content"] if part["type"] == "tool_use"]
    assert (ids[0], len({*ids})) == ("a", 2)


def test_an_unreadable_call_goes_back_as_an_object() -> None:
    """C-13: a call whose arguments are no object is sent as the vendor's documentation says."""
    message = AIMessage("", invalid_tool_calls=[{"name": "f g", "args": '{"q": [1', "id": "a", "error": "no", "type": "invalid_tool_call"}])
    part = sent(*repair([HumanMessage("q"), message, HumanMessage("?")]))["messages"][1]["content"][0]
    assert (part["name"], part["input"]) == ("f_g", {"INVALID_JSON": '{"q": [1'})


def test_a_readable_call_that_did_not_run_goes_back_as_it_was() -> None:
    """A call that was refused for how its turn ended, not for its arguments, keeps them as the model wrote them."""
    call = {"name": "f", "args": '{"q":  1}', "id": "a", "error": "the turn was cut", "type": "invalid_tool_call"}
    body = sent(*repair([HumanMessage("q"), AIMessage("", invalid_tool_calls=[call]), HumanMessage("?")]))
    assert body["messages"][1]["content"][0]["input"] == {"q": 1}


THOUGHT = {"type": "thinking", "thinking": "", "signature": "s", "index": 0}
STANDARD = {"type": "reasoning", "reasoning": "", "extras": {"signature": "s"}}
OTHERS: Any = [
    {"type": "thinking", "thinking": "unsigned"},
    {"type": "reasoning", "reasoning": "of another"},
    {"type": "text", "text": " "},
]


@pytest.mark.parametrize("thought", [THOUGHT, STANDARD], ids=["own", "v1"])
def test_thinking_goes_home_and_nowhere_else(thought: Any) -> None:
    """C-09: signed thinking goes back unchanged, also without text, to the origin it came from; unsigned and blank never."""
    own = {"autotools": {"origin": "home", "calls": []}, "model_provider": "anthropic"}
    history = [HumanMessage("q"), calling("a", content=[thought, *OTHERS], **own), ToolMessage("x", tool_call_id="a")]
    home, *_ = sent(*history)["messages"][1]["content"]
    assert home == {"type": "thinking", "thinking": "", "signature": "s"}
    assert [part["type"] for part in sent(*history)["messages"][1]["content"]] == ["thinking", "tool_use"]
    abroad = sent(*history, mapper=MessagesMapper(origin="elsewhere"))
    assert [part["type"] for part in abroad["messages"][1]["content"]] == ["tool_use"]


def test_histories_of_the_partner_package_keep_their_thinking() -> None:
    """A message that names its model, and no origin, goes home to that model; a dated name is its undated one's."""
    metadata = {"model_provider": "anthropic", "model_name": "claude-x-20260101"}
    history = [HumanMessage("q"), calling("a", content=[THOUGHT], **metadata), ToolMessage("x", tool_call_id="a")]
    for model, kinds in (("claude-x", ["thinking", "tool_use"]), ("claude-x-latest", ["thinking", "tool_use"]), ("claude-y", ["tool_use"])):
        messages = sent(*history, mapper=MessagesMapper(origin="home", model=model))["messages"]
        assert [part["type"] for part in messages[1]["content"]] == kinds


def test_calls_stand_where_they_were_written() -> None:
    """C-11: thinking between calls keeps its place, by the record or by the calls' own blocks."""
    second = {**THOUGHT, "signature": "s2", "index": 2}
    recorded = {"autotools": {"origin": "home", "before_calls": [1, 2]}}
    results = [ToolMessage("x", tool_call_id="a"), ToolMessage("y", tool_call_id="b")]
    own: Any = [THOUGHT, {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 0}}, second]
    for message in (calling("a", "b", content=[THOUGHT, second], **recorded), calling("a", "b", content=own)):
        blocks = sent(HumanMessage("q"), message, *results)["messages"][1]["content"]
        assert [part.get("signature") or part["id"] for part in blocks] == ["s", "a", "s2", "b"]


def test_system_messages() -> None:
    """Those at the start are the request's system prompt; a later one keeps its place, said by the user unless the model takes it."""
    history = [SystemMessage("One."), SystemMessage("Two."), HumanMessage("q"), AIMessage("a"), SystemMessage("Three."), HumanMessage("r")]
    request = sent(*history)
    assert [part["text"] for part in request["system"]] == ["One.", "Two."]
    assert [part["text"] for part in request["messages"][2]["content"]] == ["<system>\nThree.\n</system>", "r"]


def test_system_messages_stand_where_the_vendor_takes_them() -> None:
    """Taken in the middle they follow the user, before the assistant or at the end; anywhere else the user says them."""
    question, answer, rule, again = HumanMessage("q"), AIMessage("a"), SystemMessage("Rule."), SystemMessage("Another.")
    result = ToolMessage("x", tool_call_id="a")
    roles: list[tuple[list[BaseMessage], list[str]]] = [
        ([question, answer, rule, question], ["user", "assistant", "user"]),
        ([question, rule, answer, question], ["user", "system", "assistant", "user"]),
        ([question, rule, again], ["user", "system"]),
        ([question, rule, question], ["user"]),
        ([question, answer, rule], ["user", "assistant", "user"]),
        ([question, calling("a"), result, rule], ["user", "assistant", "user", "system"]),
    ]
    for history, wanted in roles:
        body = json.loads(MessagesMapper(system_anywhere=True).encode_request(history, PARAMS))
        assert [message["role"] for message in body["messages"]] == wanted
        assert "Rule." in json.dumps(body)


def test_marks_for_the_cache_stand_on_results_as_wholes() -> None:
    """The vendor refuses a mark inside of a result; wherever it was, it is the result's own."""
    marked = {"cache_control": {"type": "ephemeral"}}
    contents: list[Any] = [
        [{"type": "text", "text": "r", **marked}, {"type": "text", "text": "s"}],
        [{"type": "image", "base64": PNG, "mime_type": "image/png", "extras": marked}],
        [{"type": "text", "text": "", **marked}],
    ]
    for content in contents:
        result = sent(HumanMessage("q"), calling("a"), ToolMessage(content, tool_call_id="a"))["messages"][2]["content"][0]
        assert result["cache_control"] == {"type": "ephemeral"} and "cache_control" not in json.dumps(result["content"])


def test_citations_go_back_without_the_id_of_their_file() -> None:
    """Replies name the file that a citation is of; requests may not."""
    place = {"type": "page_location", "cited_text": "c", "document_index": 0, "document_title": "t"}
    said: Any = [{"type": "text", "text": "a", "citations": [{**place, "file_id": None}]}]
    block = sent(HumanMessage("q"), AIMessage(said), HumanMessage("r"))["messages"][1]["content"][0]
    assert block["citations"] == [place]


def test_what_the_partner_package_keeps_in_blocks_alone_goes_back() -> None:
    """Which code made a call is in langchain-anthropic's block of the call, and that code waits for the answer."""
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    asked: Any = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}}
    call: Any = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 0}, "caller": caller}
    result = ToolMessage("x", tool_call_id="a")
    messages = sent(HumanMessage("q"), calling("a", content=[asked, call]), result, AIMessage("b"), HumanMessage("r"))["messages"]
    assert messages[1]["content"] == [asked, call]


def test_edges_of_a_conversation() -> None:
    """A conversation may begin with the assistant, hold empty messages, and end in words to be continued."""
    messages = sent(AIMessage("Hello."), HumanMessage(" "), HumanMessage("q"), AIMessage("Well, \n"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[-1]["content"] == [{"type": "text", "text": "Well,"}]


def test_requests_grow_at_their_end() -> None:
    """Law 7: the messages of a longer history start with the bytes of a shorter one's, and arguments go back as written."""
    record = {"autotools": {"calls": [{"id": "a", "arguments": '{ "n":0 }'}]}}
    history = [HumanMessage("q"), calling("a", **record), ToolMessage("x", tool_call_id="a"), AIMessage("y"), HumanMessage("z")]
    mapper = MessagesMapper()
    bodies = [mapper.encode_request(history[:length], PARAMS) for length in (1, 3, 5)]
    assert all(later.startswith(earlier[:-2]) for earlier, later in pairwise(bodies))
    assert b'"input":{ "n":0 }' in bodies[1]
    assert MessagesMapper().encode_request(history, PARAMS) == bodies[-1]


def test_server_tools_of_the_partner_packages_streams_keep_their_input() -> None:
    """langchain-anthropic keeps what its streams brought of a server tool's input as text, beside an empty one."""
    asked = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}, "index": 0}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    for written, given in (('{"query": "Paris"}', {"query": "Paris"}), ('{"query": "Par', {}), ("", {})):
        said: Any = [{**asked, "partial_json": written}, found, {"type": "text", "text": "So."}]
        block = sent(HumanMessage("q"), AIMessage(said), HumanMessage("r"))["messages"][1]["content"][0]
        assert (block["input"], "partial_json" in block) == (given, False)
