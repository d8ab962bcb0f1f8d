"""Law 1, drop-in: a `BaseChatModel` that gives and takes LangChain's own messages, and without constructor tools is like any other."""

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from langchain_core._api import LangChainBetaWarning
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, messages_from_dict, messages_to_dict

from langchain_autotools import ChatOpenAI, new_messages
from tests.laws.checks import check_plain, data_of, differences
from tests.laws.stories import Said, Script, replies, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, chat, law, run, serving
from tests.laws.workshop import Workshop

listeners = st.sampled_from(sorted(LISTENERS))
ways = st.sampled_from(WAYS)


@law(5)
def test_law_1_only_plain_messages_leave(data: st.DataObject) -> None:
    """Every message of a run is LangChain's own class, and survives what LangChain does with messages."""
    story = data.draw(stories(least=1))
    version = data.draw(st.sampled_from([None, "v1"]))
    with serving(Script(story)) as server:
        ran = run(
            data.draw(ways), chat(server, tools=Workshop().tools(), output_version=version), [QUESTION], listeners=data.draw(listeners)
        )
    assert ran.error is None, ran.error
    check_plain(ran)
    for message in (ran.message, *ran.new):
        for copy in copies(message):
            assert type(copy) is type(message)
            assert differences(data_of(copy), data_of(message)) == []
            assert [data_of(one) for one in new_messages(copy)] == [data_of(one) for one in new_messages(message)]


def copies(message: Any) -> Iterator[BaseMessage]:
    """A message after the journeys that messages make."""
    yield pickle.loads(pickle.dumps(message))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)
        yield loads(dumps(message), allowed_objects="messages")
    yield messages_from_dict(messages_to_dict([message]))[0]
    yield message.model_copy(deep=True)


@law(5)
def test_law_1_bind_tools_declares_and_never_executes(data: st.DataObject) -> None:
    """Without constructor tools one request is made, and the calls come back as the model wrote them."""
    said: Said = data.draw(replies())
    shop = Workshop()
    with serving(Script([said])) as server:
        bound = chat(server, output_version=data.draw(st.sampled_from([None, "v1"]))).bind_tools(shop.tools())
        ran = run(data.draw(ways), bound, [QUESTION], listeners=data.draw(listeners))
        assert len(server.exchanges) == 1
    assert (ran.error, shop.ran) == (None, [])
    assert [(call["name"], call["args"]) for call in ran.message.tool_calls] == [
        (planned.call.name, planned.args) for planned in said.calls if planned.args is not None
    ]
    assert len(ran.message.invalid_tool_calls) == sum(planned.args is None for planned in said.calls)
    assert [type(message) for message in ran.new] == [AIMessage]
    assert data_of(ran.new[0])["tool_calls"] == data_of(ran.message)["tool_calls"]


class Heard(BaseCallbackHandler):
    """Notes which events reach it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not name.startswith("on_"):
            return value

        def note(*args: Any, **kwargs: Any) -> Any:
            if not self.events or self.events[-1] != name:
                self.events.append(name)
            return value(*args, **kwargs)

        return note


def test_law_1_without_tools_it_traces_like_any_chat_model() -> None:
    """The events that reach a handler are those of LangChain's own models, one run and no parent."""
    with serving(Script([Said("Some words.")] * 4)) as server:
        for way in WAYS:
            heard, other = Heard(), Heard()
            for handler, model in ((heard, chat(server)), (other, GenericFakeChatModel(messages=iter([AIMessage("Some words.")])))):
                model.callbacks = [handler]
                run(way, model, [QUESTION])
            assert heard.events == other.events != []


def test_law_1_it_is_a_base_chat_model() -> None:
    """The class is LangChain's, its chunks are LangChain's, and what it adds to the constructor has a default."""
    assert issubclass(ChatOpenAI, BaseChatModel)
    with serving(Script([Said("Words.")])) as server:
        model = chat(server)
        assert {type(chunk) for chunk in model.stream("Hi")} == {AIMessageChunk}
        assert [type(message) for message in new_messages(model.invoke("Hi"))] == [AIMessage]
