"""ToolExecutor: what a tool returns becomes the content of its message."""

import array
import asyncio
import base64
import collections
import dataclasses
import datetime
import enum
import gc
import json
import math
import types
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from pydantic import BaseModel, ConfigDict
from pydantic.v1 import BaseModel as OldModel

from langchain_autotools.executor import ToolCallResult, ToolExecutor
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import call


def run(function: Any, **args: Any) -> ToolMessage:
    """The message of one call of `function`."""
    name = getattr(function, "name", "f")
    executor = ToolExecutor([function] if isinstance(function, BaseTool) else {"f": function})
    (message,) = executor.execute_all([{"name": name, "args": args, "id": "call_1"}])
    (again,) = asyncio.run(executor.aexecute_all([{"name": name, "args": args, "id": "call_1"}]))
    assert again.content == message.content and again.status == message.status
    return message


class Point(BaseModel):
    """A pydantic model."""

    x: float
    when: datetime.date | None = None


@dataclasses.dataclass
class Pair:
    """A dataclass."""

    left: int
    right: Any


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


class Size(str, enum.Enum):  # noqa: UP042
    """An enumeration of texts."""

    BIG = "big"


class Old(OldModel):
    """A model of pydantic 1."""

    x: int


class Odd(BaseModel):
    """A model with a field that pydantic cannot turn into JSON."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    held: Any


class Grid:
    """Something that can be made a list, as numpy's arrays."""

    def tolist(self) -> list[Any]:
        """Its rows."""
        return [[1, math.nan]]


class Opaque:
    """Something that is nothing but its text."""

    def __str__(self) -> str:
        return "opaque"


Named = collections.namedtuple("Named", "a b")

DAY = datetime.date(2026, 11, 21)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("21 °C", "21 °C"),
        ('{"is": "text"}', '{"is": "text"}'),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        ({"ä": [1, None]}, '{"ä": [1, null]}'),
        ([], "[]"),
        ({}, "{}"),
        (["a", "b"], '["a", "b"]'),
        ((1, 2), "[1, 2]"),
        ({3, 1, 2}, "[1, 2, 3]"),
        (range(3), "[0, 1, 2]"),
        (collections.deque([1]), "[1]"),
        (Named(1, 2), "[1, 2]"),
        (Point(x=1, when=DAY), '{"x": 1.0, "when": "2026-11-21"}'),
        ([Point(x=1)], '[{"x": 1.0, "when": null}]'),
        (Pair(1, Point(x=2)), '{"left": 1, "right": {"x": 2.0, "when": null}}'),
        (DAY, '"2026-11-21"'),
        ({"when": DAY, "where": Path("/tmp")}, '{"when": "2026-11-21", "where": "/tmp"}'),
        (Colour.RED, '"red"'),
        (Size.BIG, "big"),
        (b"caf\xc3\xa9", '"café"'),
        ({1: "a", (2, 3): "b"}, '{"1": "a", "(2, 3)": "b"}'),
        (AIMessage(content="an answer", id="1"), "an answer"),
        (types.MappingProxyType({"a": 1}), '{"a": 1}'),
        (Old(x=1), '{"x": 1}'),
        (Odd(held=Opaque()), '{"held": "opaque"}'),
        ([Grid()], '[[[1, "NaN"]]]'),
        ({"x": math.nan, "y": [None, True, Opaque()]}, '{"x": "NaN", "y": [null, true, "opaque"]}'),
        (array.array("i", [1, 2]), "[1, 2]"),
        ({"a": 1}.items(), '[["a", 1]]'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_result_is_text_as_it_is_else_json(value: Any, content: str) -> None:
    """Text stays as it is; anything else becomes readable JSON, models and odd leaves included."""
    message = run(lambda: value)
    assert (message.content, message.status, message.name, message.tool_call_id) == (content, "success", "f", "call_1")


def test_a_document_and_an_iterator_become_json() -> None:
    """Objects of LangChain's and what a generator function or another iterator yields become JSON too."""

    def numbers() -> Iterator[int]:
        yield from (1, 2)

    assert json.loads(str(run(lambda: Document("text")).content))["page_content"] == "text"
    assert run(numbers).content == "[1, 2]"
    assert run(lambda: map(str, (1, 2))).content == '["1", "2"]'
    assert run(lambda: {"rows": map(str, (1, 2)), "keys": {"a": 1}.keys(), "mean": math.nan}).content == (
        '{"rows": ["1", "2"], "keys": ["a"], "mean": "NaN"}'
    )


@pytest.mark.filterwarnings("error")
def test_a_result_that_nobody_awaited_is_an_error() -> None:
    """A coroutine or an asynchronous generator is no result: the model is not told what the object looks like."""

    async def later() -> str:
        return "later"

    async def numbers() -> AsyncIterator[int]:
        yield 1

    for function, what in ((lambda: later(), "coroutine"), (numbers, "async_generator"), (lambda: [later()], "coroutine")):
        message = run(function)
        assert message.status == "error"
        assert f"the tool returned an unfinished '{what}', not a result" in str(message.content)
    gc.collect()


@pytest.mark.parametrize("value", [None, "", "  \n", AIMessage(content="")])
def test_an_empty_result_says_so(value: Any) -> None:
    """Several servers reject an empty result, so it is a short text (wire quirk H-04)."""
    assert run(lambda: value).content == "(no output)"


def test_numbers_that_are_none_and_half_characters_do_not_break_the_next_request() -> None:
    """NaN and lone surrogates in a result become something that JSON and UTF-8 can carry."""
    assert run(lambda: {"x": [math.nan, math.inf, -math.inf]}).content == '{"x": ["NaN", "Infinity", "-Infinity"]}'
    assert run(lambda: "a\ud83d b").content == "a\ufffd b"
    assert run(lambda: "\ud83d\ude00").content == "😀"
    assert run(lambda: {"k\udc00": "v\udc00"}).content == '{"k\ufffd": "v\ufffd"}'
    blocks = run(lambda: [{"type": "text", "text": "\udc00"}, {"type": "json", "json": {"x": math.nan}}]).content
    assert blocks == [{"type": "text", "text": "\ufffd"}, {"type": "json", "json": {"x": "NaN"}}]
    json.dumps(blocks, allow_nan=False).encode()


def test_keys_that_are_alike_as_texts_stay_apart() -> None:
    """JSON has texts for keys only: a number beside the same text would be the same key twice, of which a reader keeps one."""
    pairs = json.loads(str(run(lambda: [{"a": {1: 2, "1": 3, None: 4}}]).content), object_pairs_hook=list)
    assert pairs == [[("a", [("1 (int)", 2), ("1", 3), ("null", 4)])]]


def test_a_result_that_contains_itself_or_cannot_be_shown_is_no_crash() -> None:
    """A circular value is written as Python shows it; a value whose text cannot be made is an error result."""
    circle: list[Any] = []
    circle.append(circle)
    assert run(lambda: circle).content == "[[...]]"

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("cannot be shown")

    assert json.loads(str(run(lambda: Broken()).content)) == {"error": "RuntimeError: cannot be shown"}


def test_content_blocks_stay_blocks_and_lists_of_data_do_not_become_them() -> None:
    """Blocks of an image or a text pass unchanged; a list of dicts with a `type` of their own is data."""
    image = [{"type": "text", "text": "a cat"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]
    assert run(lambda: image).content == image
    assert run(lambda: ["a cat", image[1]]).content == ["a cat", image[1]]
    assert json.loads(str(run(lambda: [ToolMessage("a cat", tool_call_id="1"), "and a dog"]).content))[1] == "and a dog"
    entries = [{"type": "file", "name": "a.txt"}]
    assert run(lambda: entries).content == '[{"type": "file", "name": "a.txt"}]'


def test_blocks_with_data_are_blocks_whatever_stands_beside_them() -> None:
    """LangChain's core knows few types of blocks. Sound, videos and files are blocks too, alone, beside other data, and as bytes."""
    sound = {"type": "audio", "base64": "aGk=", "mime_type": "audio/wav"}
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    words = {"type": "text", "text": "a cat"}
    for block in (
        *(
            sound,
            image,
            {"type": "video", "url": "https://example.com/a.mp4"},
            {"type": "text-plain", "text": "a", "mime_type": "text/plain"},
        ),
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "media", "mime_type": "image/png", "data": "aGk="},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    ):
        assert run(lambda block=block: block).content == [block]
        assert run(lambda block=block: [words, block, image]).content == [words, block, image]
    assert run(lambda: [image, {"size": 2}, "and"]).content == [image, {"type": "text", "text": '{"size": 2}'}, "and"]
    assert run(lambda: [{**image, "caption": "A cat"}]).content == [
        {**image, "caption": "A cat"},
        {"type": "text", "text": '{"caption": "A cat"}'},
    ]
    png = b"\x89PNG\r\n\x1a\n\x00"
    drawn = {"type": "image", "base64": base64.b64encode(png).decode(), "mime_type": "image/png"}
    assert run(lambda: [png]).content == run(lambda: [{**drawn, "base64": png}]).content == [drawn]
    assert run(lambda: png).content == [drawn]
    assert run(lambda: {"picture": png}).content == '{"picture": "(9 bytes of data)"}'
    assert run(lambda: b"\xff\x00").content == [{"type": "file", "base64": "/wA=", "mime_type": "application/octet-stream"}]


@pytest.mark.parametrize(
    "rows",
    [
        [{"type": "image", "url": "https://example.com/a.png", "caption": "A cat", "score": 0.5}],
        [{"type": "video", "url": "https://example.com/v", "title": "Cats", "duration": 5}],
        [{"type": "document", "source": "web", "text": "words"}, {"type": "audio", "name": "a.mp3"}],
        [{"type": "file", "url": "https://example.com/a.txt", "owner": "me"}],
    ],
)
def test_rows_that_have_a_type_stay_rows(rows: Any) -> None:
    """A tool's own rows are JSON with all their keys, also where they have the address of a picture."""
    assert json.loads(str(run(lambda: rows).content)) == rows


def test_content_and_artifact() -> None:
    """The content goes to the model, the artifact stays the live object; a broken promise is an error."""
    live = object()

    @tool(response_format="content_and_artifact")
    def plot(ok: bool) -> Any:
        """Plot."""
        return (Point(x=1), live) if ok else "only content"

    message = run(plot, ok=True)
    assert (message.content, message.artifact) == ('{"x": 1.0, "when": null}', live)
    assert "two-tuple" in json.loads(str(run(plot, ok=False).content))["error"]


def test_a_tool_may_return_its_tool_message() -> None:
    """Its content, artifact and status are kept; id and name are made to fit the call."""

    @tool
    def own(good: bool, call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Own."""
        return ToolMessage(content="", artifact=3, tool_call_id=call_id if good else "wrong", status="error")

    for good in (True, False):
        message = run(own, good=good)
        assert (message.content, message.artifact, message.status) == ("(no output)", 3, "error")
        assert (message.tool_call_id, message.name) == ("call_1", "own")


def test_return_direct_is_reported_for_a_success_only() -> None:
    """The result of a return_direct tool says so, unless it is an error: then the model goes on."""

    @tool(return_direct=True)
    def say(text: str) -> str:
        """Say."""
        if not text:
            raise ValueError("nothing to say")
        return text

    executor = ToolExecutor([say])
    turn = [{"name": "say", "args": {"text": text}, "id": "1"} for text in ("hello", "")]
    assert [result.return_direct for result in executor.stream(turn)] == [True, False]


def test_a_tool_that_replaces_run_still_works() -> None:
    """A tool that overrides LangChain's public methods is called as it is."""

    class Raw(BaseTool):
        name: str = "raw"
        description: str = "Raw."

        def _run(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("not called")

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return {"got": input["args"]}

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return {"got": input["args"]}

    message = run(Raw(), a=1)
    assert (message.content, message.tool_call_id, message.name) == ('{"got": {"a": 1}}', "call_1", "raw")


def test_a_tool_keeps_its_own_state() -> None:
    """A tool that counts its runs on itself does so on the caller's object."""

    class Counter(BaseTool):
        name: str = "counter"
        description: str = "Count."
        count: int = 0

        def _run(self) -> int:
            self.count += 1
            return self.count

    counter = Counter()
    turn = [{"name": "counter", "args": {}, "id": "1"}]
    executor = ToolExecutor([counter])
    assert [message.content for _ in range(2) for message in executor.execute_all(turn)] == ["1", "2"]
    assert counter.count == 2


def test_changing_an_argument_does_not_change_the_history() -> None:
    """A tool gets a copy of its arguments."""

    def spoil(values: list[Any], more: Any) -> str:
        values.append("spoiled")
        more["deep"].append("spoiled")
        return "done"

    args = {"values": [1], "more": {"deep": [2]}}
    message = AIMessage(content="", tool_calls=[{"name": "spoil", "args": args, "id": "1"}])
    ToolExecutor([spoil]).execute_all(message)
    assert message.tool_calls[0]["args"] == {"values": [1], "more": {"deep": [2]}}


def test_a_result_says_what_happened() -> None:
    """ToolCallResult: call, message, duration, whether it ran."""
    call = ToolCallRecord("1", "f", "{}", {})
    (result,) = ToolExecutor({"f": lambda: "ok"}).stream([call])
    assert isinstance(result, ToolCallResult)
    assert (result.call, result.message.content, result.error, result.executed) == (call, "ok", None, True)
    assert result.duration > 0
    assert result.commands == ()


def test_a_result_says_what_it_is_of_and_whether_it_succeeded() -> None:
    """Its call's id, its content and its success are on the result itself."""

    def fails() -> str:
        """Fail."""
        raise ValueError("no")

    executor = ToolExecutor({"works": lambda: "yes", "fails": fails})
    found = executor.stream([call("works", "a"), call("fails", "b")])
    assert [(one.tool_call_id, one.success, one.content) for one in found] == [
        ("a", True, "yes"),
        ("b", False, '{"error": "ValueError: no"}'),
    ]


def test_an_object_that_says_nothing_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """The model reads the repr of an object that has no text of its own, inside other data too; a WARNING says so. A date has a text."""

    class Place:
        """A place."""

    def where(days: int) -> Any:
        """Where, and when."""
        return [datetime.date(2026, 1, 1), Place()] if days else datetime.date(2026, 1, 1)

    (message,) = ToolExecutor([where]).execute_all([call("where", days=0)])
    assert message.content == '"2026-01-01"' and caplog.messages == []
    (message,) = ToolExecutor([where]).execute_all([call("where", days=1)])
    assert "Place object at" in str(message.content)
    (said,) = caplog.messages
    assert "object of type Place" in said and "plain data" in said
