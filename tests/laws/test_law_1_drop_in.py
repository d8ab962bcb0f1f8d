"""Law 1, drop-in: a `BaseChatModel` that gives and takes LangChain's own messages, and without constructor tools is like any other."""

import pickle
import warnings
from collections.abc import Iterator
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core._api import LangChainBetaWarning
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel, GenericFakeChatModel
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, messages_from_dict, messages_to_dict
from langgraph.graph import START, MessagesState, StateGraph

from langchain_autotools import ChatOpenAI, ToolsAndMessagesMixin, new_messages
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


class Prompt(BaseCallbackHandler):
    """Keeps the content that a tracer is told of the last request."""

    raise_error = True
    content: Any = None

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
        """Keep it."""
        self.content = messages[0][0].content


def traced(cls: type[BaseChatModel], block: dict[str, Any], way: str) -> Any:
    """What a tracer is told of a request with a block; None where core fails at it."""
    prompt = Prompt()
    model = cls(responses=["Seen."], callbacks=[prompt])  # type: ignore[call-arg]
    try:
        ran = model.invoke([HumanMessage([block])]) if way == "invoke" else [*model.stream([HumanMessage([block])])]
    except (KeyError, ValueError):
        return None
    assert ran
    return prompt.content


def test_law_1_what_core_reads_of_a_file_is_traced_as_core_reads_it() -> None:
    """Blocks of both of LangChain's forms, with and without a media type: only those that core fails at are told in another form."""
    sources = (
        {"source_type": "url", "url": "https://example.com/a"},
        {"source_type": "base64", "data": "QUJD"},
        {"source_type": "id", "id": "f"},
    )
    both = (*sources, {"url": "https://example.com/a"}, {"base64": "QUJD"}, {"file_id": "f"}, {"source_type": "text", "url": "Words."})
    failed = 0
    for kind, source, typed, way in product(("image", "audio", "file"), both, ({}, {"mime_type": "image/png"}), ("invoke", "stream")):
        block: dict[str, Any] = {"type": kind, **source, **typed}
        plain, ours = traced(FakeListChatModel, block, way), traced(Joined, block, way)
        failed += plain is None
        assert ours == plain if plain is not None else ours == [{"type": "non_standard", "value": block}], (block, way)
    assert failed == 4  # pictures as base64 without a media type, of both forms


MODES: Any = ["messages", "updates", "values"]


class Joined(ToolsAndMessagesMixin, FakeListChatModel):
    """LangChain's fake as a class of this package."""


class Order(BaseCallbackHandler):
    """Keeps what it hears of tokens and ends, between what a reader notes itself."""

    def __init__(self) -> None:
        self.order: list[Any] = []

    def on_llm_new_token(self, token: str, **_: Any) -> None:
        """Keep it."""
        self.order.append(("token", token))

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Keep it."""
        self.order.append(("end", response.generations[0][0].message.text))


async def order_of(entrance: str, model: Any) -> list[Any]:
    """What a handler hears and a reader gets, in order."""
    handler = Order()
    order, config = handler.order, {"callbacks": [handler]}
    if entrance == "stream":
        list(noting(order, model.stream("Hi", config)))
    elif entrance == "astream":
        async for chunk in model.astream("Hi", config):
            order.append(("chunk", chunk.text))
    elif entrance == "astream_log":
        return [(op["path"], getattr(op["value"], "text", None)) async for patch in model.astream_log("Hi") for op in patch.ops]
    elif entrance in ("v1", "v2"):
        seen = [event async for event in model.astream_events("Hi", version=entrance)]
        return [(event["event"], event["data"]["chunk"].text if "chunk" in event["data"] else None) for event in seen]
    else:
        order += list(graph_of(model, order).stream({"messages": [QUESTION]}, config, stream_mode=MODES))[:0]
    return order


def noting(order: list[Any], chunks: Iterator[Any]) -> Iterator[Any]:
    """The chunks, each noted as it comes."""
    for chunk in chunks:
        order.append(("chunk", chunk.text))
        yield chunk


def graph_of(model: Any, order: list[Any]) -> Any:
    """A graph whose node streams the model."""

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [reduce(add, noting(order, model.stream(state["messages"])))]}

    return StateGraph(MessagesState).add_node("ask", node).add_edge(START, "ask").compile()


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.parametrize("entrance", ["stream", "astream", "astream_log", "v1", "v2", "graph"])
async def test_law_1_the_end_comes_after_the_last_chunk(entrance: str) -> None:
    """Handlers hear of the end of a reply when its reader has its last chunk, as of LangChain's own models; bound tools change nothing."""
    wanted, own = [await order_of(entrance, cls(responses=["abc"])) for cls in (FakeListChatModel, Joined)]
    assert own == wanted
    with serving(Script([Said("abc")] * 2)) as server:
        for model in (chat(server), chat(server).bind_tools([Workshop().tools()[0]])):
            order = await order_of(entrance, model)
            assert [kind for kind, _ in order][-2:] == [kind for kind, _ in wanted][-2:]


def test_law_1_it_is_a_base_chat_model() -> None:
    """The class is LangChain's, its chunks are LangChain's, and what it adds to the constructor has a default."""
    assert issubclass(ChatOpenAI, BaseChatModel)
    with serving(Script([Said("Words.")])) as server:
        model = chat(server)
        assert {type(chunk) for chunk in model.stream("Hi")} == {AIMessageChunk}
        assert [type(message) for message in new_messages(model.invoke("Hi"))] == [AIMessage]
