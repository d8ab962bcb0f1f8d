"""Replies of generateContent as chunks: parts, signatures, calls in pieces, what a reply says of itself, and what is refused."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from langchain_core.exceptions import ModelError, ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ChatGoogleGenerativeAI, RetryPolicy, StreamError, calls_of, new_messages, stop_reason, validate
from langchain_autotools.providers.google.decode import GenerateContentDecoder, PartialCall
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from tests.contract.talk import WAYS, run_in, summed
from tests.support.google_server import GoogleServer
from tests.support.script import Events, Raw, Turn
from tests.support.weather import get_temperature

SIGNATURE = "c2lnbmVk"


def event(*parts: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A reply, or an event of one, with these parts."""
    candidate: dict[str, Any] = {"index": 0, **({"content": {"role": "model", "parts": list(parts)}} if parts else {})}
    return {"candidates": [{**candidate, **({"finishReason": reason} if reason else {})}], "responseId": "r1ab2cd3ef4gh5ij", **more}


def call(name: str, args: Any = None, **beside: Any) -> dict[str, Any]:
    """A part that calls a tool."""
    return {"functionCall": {"name": name, **({} if args is None else {"args": args})}, **beside}


async def both(events: list[dict[str, Any]], whole: dict[str, Any] | None = None, **model: Any) -> list[AIMessage]:
    """The messages that all ways of asking give; a reply without a whole form is streamed only."""
    messages = []
    for way in WAYS if whole else ("stream", "astream"):
        with GoogleServer([Events(events, whole)]) as server:
            asked = ChatGoogleGenerativeAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **model})
            messages.append((await run_in(way, asked, "Hi")).message)
    return messages


async def test_text_is_a_string_as_long_as_there_is_nothing_else() -> None:
    """A reply of text alone is a string, with the reply's id and reason."""
    events = [event({"text": "Hel"}), event({"text": "lo"}), event(reason="STOP", modelVersion="gemini-x")]
    for message in await both(events, event({"text": "Hello"}, reason="STOP", modelVersion="gemini-x")):
        assert (message.content, message.id) == ("Hello", "r1ab2cd3ef4gh5ij")
        known = {key: message.response_metadata[key] for key in ("finish_reason", "model_name", "model_provider")}
        assert known == {"finish_reason": "STOP", "model_name": "gemini-x", "model_provider": "google_genai"}


async def test_thoughts_and_signatures_are_blocks_of_their_own() -> None:
    """Thoughts join, text joins, a signed part joins nothing, and an empty signed part is no text (wire quirks G-03, G-14)."""
    parts = [{"text": "Hm. ", "thought": True}, {"text": "So.", "thought": True}, {"text": "One "}, {"text": "two"}]
    signed = [{"text": "three", "thoughtSignature": SIGNATURE}, {"text": ""}, {"text": "", "thoughtSignature": "ZW5k"}]
    events = [*(event(part) for part in [*parts, *signed]), event(reason="STOP")]
    for message in await both(events, event(*parts, *signed, reason="STOP")):
        assert [{key: block[key] for key in block if key != "index"} for block in message.content] == [
            {"type": "thinking", "thinking": "Hm. So."},
            {"type": "text", "text": "One two"},
            {"type": "text", "text": "three", "extras": {"signature": SIGNATURE}},
            {"type": "part", "part": {"text": "", "thoughtSignature": "ZW5k"}},
        ]
        assert message.text == "One twothree"
        assert [block["type"] for block in message.content_blocks] == ["reasoning", "text", "text", "non_standard"]


async def test_who_thinks_answers_in_blocks() -> None:
    """Text of a reply whose counts tell of thoughts leaves as a block, so that a later signature changes nothing; whole it is a string."""
    usage = {"usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 9}}
    for message in await both([event({"text": "Hi"}, **usage), event(reason="STOP")], event({"text": "Hi"}, reason="STOP", **usage)):
        assert message.content == "Hi"
        assert message.usage_metadata == {
            **{"input_tokens": 3, "output_tokens": 6, "total_tokens": 9},
            **{"input_token_details": {}, "output_token_details": {"reasoning": 5}},
        }


@pytest.mark.parametrize(("model", "content"), [("gemini-2.5-pro", "Hello"), ("gemini-3-pro", [{"type": "text", "text": "Hello"}])])
async def test_text_has_one_form_when_thoughts_are_counted_at_the_end(model: str, content: Any) -> None:
    """Vertex AI counts at the end. A model that may sign texts answers in blocks from the start, an older one never for that alone."""
    usage = {"usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 9}}
    events = [event({"text": "Hel"}), event({"text": "lo"}, reason="STOP", **usage)]
    for message in await both(events, event({"text": "Hello"}, reason="STOP", **usage), model=model):
        assert message.content == content


@pytest.mark.parametrize(("model", "text"), [("gemini-2.5-pro", "It is."), ("gemini-3-pro", [{"type": "text", "text": "It is."}])])
async def test_whole_messages_have_the_partner_s_form(model: str, text: Any) -> None:
    """As in langchain-google-genai a text is a string before Gemini 3, behind a call too, and no whole message has numbers in it."""
    said = {"text": "It is."}
    for parts, content in (
        ([call("f", {"a": 1}), said], text),
        ([said, call("f", {"a": 1})], text),
        ([call("f")], "" if text == "It is." else []),
    ):
        events = [*(event(part, modelVersion=model) for part in parts), event(reason="STOP", modelVersion=model)]
        for message in await both(events, event(*parts, reason="STOP", modelVersion=model), model=model):
            assert message.content == content and len(message.tool_calls) == 1


@pytest.mark.parametrize("output_version", ["v0", "v1"])
async def test_what_an_answer_is_grounded_in_is_its_citations(output_version: str) -> None:
    """Citations are in the standard blocks, also of a stream, which tells of them when the text is out."""
    grounds = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 2, "text": "It"}, "groundingChunkIndices": [0]}],
    }
    ending = event({"text": "rains."}, reason="STOP")
    ending["candidates"][0]["groundingMetadata"] = grounds
    whole = event({"text": "It "}, {"text": "rains."}, reason="STOP")
    whole["candidates"][0]["groundingMetadata"] = grounds
    for message in await both([event({"text": "It "}), ending], whole, model="gemini-3-pro", output_version=output_version):
        [block] = message.content_blocks
        assert block["type"] == "text" and block["text"] == "It rains."
        assert [note["url"] for note in block["annotations"] if note["type"] == "citation"] == ["https://a.example"]


async def test_sound_is_a_standard_block() -> None:
    """With standard blocks, sound is one."""
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}
    for message in await both([event(sound, reason="STOP")], event(sound, reason="STOP"), output_version="v1"):
        [block] = message.content_blocks
        assert block["type"] == "audio" and (block["base64"], block["mime_type"]) == ("UklGRg==", "audio/wav")


async def test_calls_keep_their_place_between_texts() -> None:
    """Text, a call and text again go back in that order, and unsigned calls stay unsigned (wire quirks G-01, G-02, G-04, G-09)."""
    parts = [{"text": "First "}, call("get_temperature", {"city": "Rome"}, thoughtSignature=SIGNATURE), {"text": "then"}, call("tell_time")]
    for message in await both([*(event(part) for part in parts), event(reason="STOP")], event(*parts, reason="STOP")):
        assert [(each.name, each.args) for each in calls_of(message)] == [("get_temperature", {"city": "Rome"}), ("tell_time", {})]
        home = message.response_metadata["autotools"]["origin"]
        sent = sent_back(GenerateContentMapper(origin=home), message)
        assert sent == [*parts[:3], {"functionCall": {"name": "tell_time", "args": {}}}]


def sent_back(mapper: GenerateContentMapper, message: AIMessage) -> list[Any]:
    """The parts of a message, sent back."""
    request = json.loads(mapper.encode_request([HumanMessage("q"), message], {}))
    return request["contents"][1]["parts"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("output_version", ["v0", "v1"])
async def test_server_tools_and_pictures_go_back_with_their_signatures(output_version: str) -> None:
    """Code that the vendor ran, its outcome and a picture return as they came, also from standard blocks; none of it is executed.

    Wire quirk G-13.
    """
    parts = [
        {"executableCode": {"id": "c1", "language": "PYTHON", "code": "print(1)"}, "thoughtSignature": SIGNATURE},
        {"codeExecutionResult": {"id": "c1", "outcome": "OUTCOME_OK", "output": "1\n"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "cGlj"},
        {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}, "thoughtSignature": "c2Vh"},
        {"text": "One."},
    ]
    events = [*(event(part) for part in parts), event(reason="STOP")]
    for message in await both(events, event(*parts, reason="STOP"), output_version=output_version):
        assert message.tool_calls == []
        assert message.text == "One."
        stored = new_messages(message)[0]
        sent = sent_back(GenerateContentMapper(origin=message.response_metadata["autotools"]["origin"]), stored)  # type: ignore[arg-type]
        assert sent == parts


PIECES = [
    {"functionCall": {"name": "plan", "willContinue": True}, "thoughtSignature": SIGNATURE},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Bos", "willContinue": True}], "willContinue": True}},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "ton"}], "willContinue": True}},
    {
        "functionCall": {
            "partialArgs": [
                {"jsonPath": "$.days[0].n", "numberValue": 1.0},
                {"jsonPath": "$.days[1]['a.b']", "boolValue": True},
                {"jsonPath": "$.note", "nullValue": None},
            ],
            "willContinue": True,
        }
    },
    {"functionCall": {}},
]


async def test_arguments_in_pieces_are_put_together() -> None:
    """Values at paths make one object; the empty call that ends them is none, and the next call begins afresh (wire quirks G-04, G-05)."""
    events = [*(event(part) for part in PIECES), event(call("plan")), event(reason="STOP")]
    for message in await both(events):
        assert [(each.name, each.args) for each in calls_of(message)] == [
            ("plan", {"city": "Boston", "days": [{"n": 1}, {"a.b": True}], "note": None}),
            ("plan", {}),
        ]
        assert calls_of(message)[0].extra == {"part": {"thoughtSignature": SIGNATURE}}


@pytest.mark.parametrize("length", range(1, 5))
async def test_arguments_that_break_off_are_not_executable(length: int) -> None:
    """A call whose pieces end before the call does never runs."""
    for message in await both([*(event(part) for part in PIECES[:length]), event(reason="STOP")]):
        assert message.tool_calls == []
        assert [each.args for each in calls_of(message)] == [None]


async def test_a_call_that_begins_inside_another_leaves_it_unfinished() -> None:
    """Pieces belong to the call that was begun last; the one before was never ended and does not run."""
    second = {"functionCall": {"name": "other", "partialArgs": [{"jsonPath": "$.a", "numberValue": 2}], "willContinue": True}}
    for message in await both([event(PIECES[0]), event(PIECES[2]), event(second), event(PIECES[4]), event(reason="STOP")]):
        assert [(each.name, each.args) for each in calls_of(message)] == [("plan", None), ("other", {"a": 2})]


@pytest.mark.parametrize("path", ["$", "", "$[0]", "$.a..b", "$.a[x]", "$.a[99999999]", "a", "$.s.t"])
def test_a_path_that_fits_nothing_refuses_the_call(path: str) -> None:
    """Paths that are none, or contradict each other, make the arguments unusable instead of something else."""
    partial = PartialCall(0, {})
    partial.feed({"partialArgs": [{"jsonPath": "$.s", "stringValue": "x"}, {"jsonPath": path, "stringValue": "y"}]})
    assert isinstance(partial.arguments(ended=True), str)


async def test_arguments_as_text_are_read_strictly() -> None:
    """Gateways that send arguments as JSON text are understood; text that is none never runs (wire quirk G-06)."""
    for message in await both([event(call("f", '{"a": 1}'), call("g", '{"a": ')), event(reason="STOP")]):
        assert [(each.name, each.args) for each in calls_of(message)] == [("f", {"a": 1}), ("g", None)]


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
async def test_a_call_that_the_model_failed_to_write_is_answered(reason: str) -> None:
    """The model hears, as the result of a call, what the server said of it, and goes on (wire quirk G-07)."""
    failed = event(reason=reason)
    failed["candidates"][0]["finishMessage"] = "Malformed function call: print(default_api.get_temperature(city=Rome))"
    for way in WAYS:
        with GoogleServer([Events([failed], failed), Turn("Sorry.")]) as server:
            model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", max_retries=0, tools=[get_temperature])
            ran = await run_in(way, model, "Hi")
        assert [message.type for message in ran.new] == ["ai", "tool", "ai"]
        assert (ran.message.text, ran.new[1].name, ran.new[1].status) == ("Sorry.", "get_temperature", "error")
        assert server.rejections == []


@pytest.mark.parametrize("failures", [1, 3])
async def test_a_call_that_nobody_names_is_asked_for_again(failures: int) -> None:
    """It leaves no call of a tool that does not exist: like an empty reply it is tried twice more, then the run ends as incomplete."""
    failed = event(reason="MALFORMED_FUNCTION_CALL")
    for way in WAYS:
        with GoogleServer([Events([failed], failed)] * failures + [Turn("Hello.")]) as server:
            model = ChatGoogleGenerativeAI(
                model="any", base_url=server.url, api_key="key", tools=[get_temperature], retry=RetryPolicy(attempts=5, wait_scale=0)
            )
            ran = await run_in(way, model, "Hi")
        assert ([message.type for message in ran.new], calls_of(ran.message)) == (["ai"], [])
        end = ("Hello.", "complete") if failures == 1 else ("", "incomplete")
        assert (ran.message.text, stop_reason(ran.message)) == end and validate([HumanMessage("Hi"), *ran.new]) == []


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "MODEL_ARMOR", "SPII", "BLOCKLIST"])
async def test_a_filtered_reply_ends_the_run_as_refused(reason: str) -> None:
    """What the vendor filters is no answer: its calls do not run and the run ends."""
    parts = [{"text": "Look."}, call("get_temperature", {"city": "Rome"}, thoughtSignature=SIGNATURE)]
    for message in await both([event(*parts, reason=reason)], event(*parts, reason=reason), tools=[get_temperature]):
        run = message.response_metadata["autotools"]
        assert (run["stop_reason"], message.response_metadata["finish_reason"], message.tool_calls) == ("refused", reason, [])


@pytest.mark.parametrize(
    ("reason", "runs"), [("STOP", True), (1, True), ("tool_calls", True), ("NEW_REASON", False), (99, False), (0, False)]
)
async def test_only_a_normal_end_lets_calls_run(reason: Any, runs: bool) -> None:
    """Finish reasons come as words or numbers; one that is not known is no normal end."""
    reply = event(call("get_temperature", {"city": "Rome"}, thoughtSignature=SIGNATURE))
    reply["candidates"][0]["finishReason"] = reason
    for message in await both([reply], reply):
        assert len(message.tool_calls) == runs
        assert message.response_metadata.get("native_finish_reason") == (None if reason in ("STOP", "tool_calls", 0) else reason)


async def test_a_blocked_prompt_is_an_empty_refusal() -> None:
    """A reply without candidates says why in its metadata, and ends a run as refused."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}, "usageMetadata": {"promptTokenCount": 4}}
    for message in await both([blocked], blocked, tools=[get_temperature]):
        assert (message.text, message.response_metadata["finish_reason"]) == ("", "PROMPT_BLOCKED")
        assert message.response_metadata["prompt_feedback"] == {"block_reason": "SAFETY", "block_reason_message": "No."}
        assert message.response_metadata["autotools"]["stop_reason"] == "refused"


async def test_the_counts_of_a_stream_never_fall() -> None:
    """The last event may leave out what was written, or say zeros: what an earlier one has counted counts (wire quirk G-15)."""
    told = {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13}
    for last in ({"promptTokenCount": 10, "totalTokenCount": 10}, dict.fromkeys(told, 0)):
        events = [event({"text": "Hel"}, usageMetadata=told), event({"text": "lo"}, reason="STOP", usageMetadata=last)]
        for message in await both(events):
            usage = message.usage_metadata or {}
            assert [usage[f"{kind}_tokens"] for kind in ("input", "output", "total")] == [10, 3, 13]  # type: ignore[literal-required]


async def test_what_a_reply_says_of_itself() -> None:
    """Grounding, ratings and counts are in the metadata, under the names that LangChain's core looks for (wire quirk G-15)."""
    support = {"segment": {"startIndex": 0, "endIndex": 5, "text": "Spain"}, "groundingChunkIndices": [0]}
    grounding = {"groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}], "groundingSupports": [support]}
    usage = {
        **{"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "totalTokenCount": 22},
        **{"cachedContentTokenCount": 6, "trafficType": "ON_DEMAND"},
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8}, {"modality": "AUDIO", "tokenCount": 2}],
        "candidatesTokensDetails": [{"modality": 2, "tokenCount": 4}],
    }
    reply = event({"text": "Spain"}, reason="STOP", usageMetadata=usage)
    reply["candidates"][0] |= {"groundingMetadata": grounding, "safetyRatings": [{"category": "C", "probability": "LOW"}]}
    for message in await both([reply], reply):
        [text] = message.content_blocks
        assert [note["url"] for note in text["annotations"]] == ["https://a.example"]  # type: ignore[typeddict-item]
        assert message.response_metadata["safety_ratings"] == [{"category": "C", "probability": "LOW"}]
        assert message.response_metadata["traffic_type"] == "ON_DEMAND"
        assert message.usage_metadata == {
            **{"input_tokens": 15, "output_tokens": 7, "total_tokens": 22},
            "input_token_details": {"cache_read": 6, "audio": 2},
            "output_token_details": {"reasoning": 3, "image": 4},
        }


async def test_an_error_in_the_stream_is_the_error_that_it_names() -> None:
    """An error object among the events is raised as the vendor's error of its status, and what came before has left (wire quirk G-16)."""
    error = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": [RETRY]}}
    with GoogleServer([Events([event({"text": "Hel"}), error]), Raw([json.dumps([error]).encode()], "application/json")]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", max_retries=0)
        texts = []
        for attempt in itertools.count():
            with pytest.raises(ModelRateLimitError, match="Slow down") as raised:
                texts += [chunk.text for chunk in model.stream("Hi")]
                texts = []
            assert raised.value.retry_after == 17.5  # type: ignore[attr-defined]
            if attempt:
                break


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}


@pytest.mark.parametrize("body", [b"data: {}\n\n", b"<html>", b"[1]", b'{"hello": 1}', b"data: 3\n\n"])
async def test_what_is_no_reply_is_an_error(body: bytes) -> None:
    """A foreign or garbled reply is a stream error, never an empty answer."""
    for way in WAYS:
        with GoogleServer([Raw([body], "text/event-stream")]) as server:
            model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", max_retries=0)
            with pytest.raises(StreamError):
                await run_in(way, model, "Hi")


async def test_a_connection_that_ends_early_ends_nothing_well() -> None:
    """Without a finish reason the text is kept, marked incomplete, and no call runs."""
    for message in await both([event({"text": "Let me"}, call("get_temperature", {"city": "Rome"}))]):
        assert (message.text, message.response_metadata["finish_reason"]) == ("Let me", "incomplete")
        assert message.tool_calls == []


async def test_an_empty_reply_is_tried_again() -> None:
    """A reply that ends normally without a word is asked for again, twice at most; without retries it is the answer (wire quirk G-08)."""
    empty = Events([event(reason="STOP")], event(reason="STOP"))
    for way in WAYS:
        for before, retries, text in ((1, 2, "Hello"), (2, 2, "Hello"), (3, 2, ""), (1, 0, "")):
            with GoogleServer([*[empty] * before, Turn("Hello")]) as server:
                retry = RetryPolicy(attempts=retries + 1, wait_scale=0)
                model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", retry=retry)
                assert (await run_in(way, model, "Hi")).message.text == text


def test_chunks_sum_to_the_whole() -> None:
    """Decoded piece by piece or at once, the parts of a reply are the same blocks."""
    parts = [
        {"text": "a", "thought": True},
        {"text": "b", "thought": True},
        {"text": "c"},
        {"text": "d"},
        {"fileData": {"fileUri": "gs://x"}},
    ]
    decoder = GenerateContentDecoder()
    chunks = [chunk for part in parts if (chunk := decoder.feed(event(part))) is not None]
    whole = GenerateContentDecoder().decode_body(event(*parts, reason="STOP"))
    decoder.feed(event(reason="STOP"))
    assert summed([*chunks, decoder.finish()]).content == whole.content


def test_errors_are_models_errors() -> None:
    """An unknown error object is the server's failure."""
    with pytest.raises(ModelError, match="odd"):
        GenerateContentDecoder().feed({"error": "odd"})
