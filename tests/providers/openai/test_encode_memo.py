"""Each message of a growing history is encoded once, and never sent as it was before it was changed."""

import copy
import gc
import pickle
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.messages.incremental import MessageMemo
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper

PARAMS = {"model": "any"}


def history() -> list[BaseMessage]:
    """A turn with a call, in new objects."""
    record = {KEY: {"calls": [{"id": "c", "arguments": '{ "a": [1] }', "wire_id": "w"}], "origin": "home"}}
    return [
        HumanMessage([{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]),
        AIMessage("", tool_calls=[{"name": "f", "args": {"a": [1]}, "id": "c"}], response_metadata=record),
        ToolMessage("r", tool_call_id="c", artifact=object()),
    ]


def fresh(messages: list[BaseMessage]) -> bytes:
    """The request of a mapper that remembers nothing."""
    return ChatCompletionsMapper(origin="home").encode_request(messages, PARAMS)


def test_a_longer_history_starts_with_the_bytes_of_a_shorter_one() -> None:
    """The messages of request n+1 begin with those of request n, whether remembered or not."""
    mapper, messages, before = ChatCompletionsMapper(origin="home"), [], b""
    for _ in range(3):
        messages += history()
        body = mapper.encode_request(messages, PARAMS)
        assert body == fresh(messages)
        assert body.startswith(before)
        before = body.removesuffix(b"]}")


CHANGES: list[Callable[[list[BaseMessage]], object]] = [
    lambda messages: setattr(messages[0], "content", "other"),
    lambda messages: messages[0].content[0].update(text="other"),  # type: ignore[union-attr]
    lambda messages: messages[0].content[1]["image_url"].update(detail="low"),  # type: ignore[index]
    lambda messages: messages[1].tool_calls[0]["args"]["a"].append(2),  # type: ignore[attr-defined]
    lambda messages: messages[1].response_metadata[KEY]["calls"][0].update(arguments='{"a":[1]}'),
    lambda messages: messages[1].response_metadata[KEY].update(origin="elsewhere"),
    lambda messages: messages[1].additional_kwargs.update(reasoning_content="hm"),
    lambda messages: setattr(messages[2], "tool_call_id", "d"),
    lambda messages: setattr(messages[2], "name", "g"),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_a_changed_message_is_sent_as_it_is_now(change: Callable[[list[BaseMessage]], object]) -> None:
    """A change of a message, however deep, shows in the next request."""
    mapper, messages = ChatCompletionsMapper(origin="home"), history()
    mapper.encode_request(messages, PARAMS)
    change(messages)
    assert mapper.encode_request(messages, PARAMS) == fresh(messages)


def test_a_result_is_sent_with_the_id_of_the_call_that_it_follows() -> None:
    """The same result object after another message gets that message's id: what is remembered depends on the call."""
    mapper, messages = ChatCompletionsMapper(origin="home"), history()
    assert b'"tool_call_id":"w"' in mapper.encode_request(messages, PARAMS)
    other = [messages[0], AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}]), messages[2]]
    assert b'"tool_call_id":"c"' in mapper.encode_request(other, PARAMS)
    assert b'"tool_call_id":"w"' in mapper.encode_request(messages, PARAMS)


def test_nothing_is_remembered_longer_than_the_message_lives() -> None:
    """The memo holds no message alive and forgets those that are gone."""
    memo: MessageMemo[str] = MessageMemo()
    messages = history()
    for message in messages:
        memo.put(message, None, "x")
    assert [memo.get(message) for message in messages] == ["x", "x", "x"]
    assert memo.get(messages[0], "another context") is None
    del message, messages[0]
    gc.collect()
    assert len(memo) == 2


def test_an_artifact_is_neither_compared_nor_kept() -> None:
    """What a tool keeps for itself, were it the conversation itself, does not keep the message alive."""
    memo: MessageMemo[str] = MessageMemo()
    message = ToolMessage("r", tool_call_id="c")
    message.artifact = [message]
    memo.put(message, None, "x")
    message.artifact.append("more")
    assert memo.get(message) == "x"
    del message
    gc.collect()
    assert len(memo) == 0


def test_a_foreign_value_that_cannot_be_compared_counts_as_changed() -> None:
    """A value whose comparison fails or is no truth value makes the message be encoded again."""

    class Vague:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise TypeError

    memo: MessageMemo[str] = MessageMemo()
    message = HumanMessage("a", additional_kwargs={"x": Vague()})
    memo.put(message, None, "x")
    assert memo.get(message) == "x"
    message.additional_kwargs["x"] = Vague()
    assert memo.get(message) is None


def test_a_copied_or_pickled_mapper_works_and_remembers_nothing() -> None:
    """Copies of a mapper give the same requests; what the original remembers stays with it."""
    mapper, messages = ChatCompletionsMapper(origin="home"), history()
    body = mapper.encode_request(messages, PARAMS)
    for other in (copy.deepcopy(mapper), pickle.loads(pickle.dumps(mapper))):
        assert other.encode_request(messages, PARAMS) == body
