"""The model in chains and under LangChain's own wrappers."""

import contextvars
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool

from langchain_autotools import final_message, new_messages
from langchain_autotools.testing import ScriptedChatModel

from .conftest import TEXT, answer, get_temperature, ran

Make = Callable[..., ScriptedChatModel]
PROMPT = ChatPromptTemplate.from_messages([("system", "Be short."), ("user", "{question}")])


def test_a_chain_gives_the_same_invoked_and_streamed(chat: Make) -> None:
    """`prompt | model | StrOutputParser()` gives the run's text either way."""
    chain = PROMPT | chat() | StrOutputParser()
    assert chain.invoke({"question": "?"}) == TEXT == "".join(chain.stream({"question": "?"}))


async def test_an_async_chain_gives_the_same(chat: Make) -> None:
    """And asynchronously."""
    chain = PROMPT | chat() | StrOutputParser()
    assert await chain.ainvoke({"question": "?"}) == TEXT == "".join([part async for part in chain.astream({"question": "?"})])


def test_a_parser_reads_the_last_message_alone(chat: Make) -> None:
    """`model | final_message | JsonOutputParser()` is not disturbed by the text of earlier turns."""

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        return AIMessage('{"paris": 5}') if messages[-1].type == "tool" else answer(messages)

    assert (PROMPT | chat(replies=reply) | final_message | JsonOutputParser()).invoke({"question": "?"}) == {"paris": 5}


class Recorder(BaseCallbackHandler):
    """Notes which run began under which."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, Any, Any]] = []
        self.metadata: list[dict[str, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
        """A parent run."""
        self.runs.append(("chain", run_id, parent_run_id))

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
        """A turn."""
        self.runs.append(("turn", run_id, parent_run_id))
        self.metadata.append(kwargs["metadata"])

    def on_tool_start(self, serialized: Any, text: str, *, run_id: Any, parent_run_id: Any = None, **kwargs: Any) -> None:
        """A tool call."""
        self.runs.append(("tool", run_id, parent_run_id))
        self.metadata.append(kwargs["metadata"])


@pytest.mark.parametrize("streamed", [False, True])
def test_turns_and_tools_are_children_of_one_run(chat: Make, streamed: bool) -> None:
    """One parent run, one model run a turn, one tool run a call; tags and metadata reach them all."""
    recorder = Recorder()
    config: RunnableConfig = {"callbacks": [recorder], "metadata": {"user": "u1"}, "tags": ["t"]}
    if streamed:
        list(chat().stream("?", config))
    else:
        chat().invoke("?", config)
    (parent,) = [run for run in recorder.runs if run[0] == "chain"]
    children = [run for run in recorder.runs if run is not parent]
    assert sorted(kind for kind, *_ in children) == ["tool", "tool", "turn", "turn"]
    assert {above for *_, above in children} == {parent[1]}
    assert all(metadata["user"] == "u1" for metadata in recorder.metadata)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_usage_counts_each_turn_once(chat: Make, way: str) -> None:
    """The usage callback sums the turns: 10 and 5 tokens, then 40 and 5."""
    usage = UsageMetadataCallbackHandler()
    config: RunnableConfig = {"callbacks": [usage]}
    if way == "invoke":
        chat().invoke("?", config)
    elif way == "stream":
        list(chat().stream("?", config))
    elif way == "ainvoke":
        await chat().ainvoke("?", config)
    else:
        _ = [chunk async for chunk in chat().astream("?", config)]
    (counted,) = usage.usage_metadata.values()
    assert (counted["input_tokens"], counted["output_tokens"]) == (50, 10) and list(usage.usage_metadata) == ["scripted-1"]


USER: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_configuration_and_context_reach_tools(chat: Make, kind: str) -> None:
    """`configurable`, tags and context variables are there inside a tool, in synchronous and asynchronous runs."""
    seen: list[Any] = []

    @tool("get_temperature")
    def look(city: str, config: RunnableConfig) -> str:
        """Current temperature of a city."""
        seen.append((USER.get(), config["configurable"]["key"], "t" in config["tags"]))
        return "1"

    model = chat(tools=[look])
    config: RunnableConfig = {"configurable": {"key": "k"}, "tags": ["t"]}
    token = USER.set("u1")
    try:
        if kind == "sync":
            RunnableLambda(lambda text: model.invoke(text)).invoke("?", config)
        else:
            await RunnableLambda(model.ainvoke).ainvoke("?", config)
    finally:
        USER.reset(token)
    assert seen == [("u1", "k", True)] * 2


def test_batch_keeps_runs_apart(chat: Make) -> None:
    """Every input of a batch is a run of its own."""
    runs = chat().batch(["one", "two", "three"])
    assert [run.text for run in runs] == [TEXT] * 3 and len(ran) == 6


async def test_abatch_keeps_runs_apart(chat: Make) -> None:
    """And asynchronously."""
    runs = await chat().abatch(["one", "two", "three"])
    assert [run.text for run in runs] == [TEXT] * 3


def test_a_fallback_takes_the_whole_run(chat: Make) -> None:
    """`with_fallbacks` starts the run again on the other model."""
    broken = chat(replies=[ConnectionError("gone")])
    assert broken.with_fallbacks([chat()]).invoke("?").text == TEXT


def test_a_retry_runs_again(chat: Make) -> None:
    """`with_retry` repeats a run that failed."""
    model = chat(replies=[ConnectionError("gone"), "Hello."])
    assert model.with_retry(retry_if_exception_type=(ConnectionError,), wait_exponential_jitter=False).invoke("?").text == "Hello."


def without_id(message: BaseMessage) -> BaseMessage:
    """The message without its id."""
    return message.model_copy(update={"id": None})


def free(message: Any) -> Any:
    """The message with the note that it has cost nothing, where it is a reply."""
    known = isinstance(message, AIMessage) and message.usage_metadata
    return message.model_copy(update={"usage_metadata": {**known, "total_cost": 0}}) if known else message


def test_a_cached_run_is_replayed_without_a_request(chat: Make) -> None:
    """The second run makes no request, and says the same, in messages of its own, which say that they have cost nothing."""
    model = chat(cache=InMemoryCache())
    first, requests = model.invoke("?"), len(model.requests)
    again = model.invoke("?")
    assert (again.text, again.usage_metadata) == (first.text, free(first).usage_metadata) and len(model.requests) == requests == 2
    assert [without_id(message) for message in new_messages(again)] == [free(without_id(message)) for message in new_messages(first)]
    assert {message.id for message in new_messages(again)}.isdisjoint(message.id for message in new_messages(first))


@pytest.mark.parametrize("tools", [[get_temperature], []])
async def test_a_cached_reply_without_usage_is_replayed(tools: list[Any]) -> None:
    """Core adds a cost to the usage of a cache hit, also where the server reports none."""
    call = AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Paris"}, "id": "call_1"}])
    model = ScriptedChatModel(tools=tools, replies=[call, "5 degrees."] if tools else ["Hi."], cache=InMemoryCache())
    first, requests = model.invoke("?"), len(model.requests)
    assert first.usage_metadata is None
    runs = [first, model.invoke("?"), await model.ainvoke("?")]
    assert len({run.id for run in runs}) == 3 and all(run.usage_metadata is None and run.text == first.text for run in runs)
    assert len(model.requests) == requests


def test_a_copy_with_other_tools_does_not_hit_the_cache(chat: Make) -> None:
    """`model_copy(update={"tools": ...})` asks again."""
    model = chat(cache=InMemoryCache())
    model.invoke("?")

    def get_wind(city: str) -> str:
        """Current wind in a city."""
        return "calm"

    other = model.model_copy(update={"tools": [get_temperature, get_wind]})
    other.invoke("?")
    assert other.requests[-1].tool_names == ["get_temperature", "get_wind"] and len(other.requests) == 4


class Counter(BaseRateLimiter):
    """Counts what it lets through."""

    def __init__(self) -> None:
        self.count = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        """Let through."""
        self.count += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        """Let through."""
        return self.acquire()


def test_the_rate_limiter_sees_every_request(chat: Make) -> None:
    """Each turn of a run is one request."""
    limiter = Counter()
    chat(rate_limiter=limiter).invoke("?")
    assert limiter.count == 2


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("streamed", [False, True])
def test_message_history_stores_what_continues_the_conversation(chat: Make, streamed: bool) -> None:
    """RunnableWithMessageHistory stores the run message; the next request has all its parts."""
    store = InMemoryChatMessageHistory()
    model = chat()
    runnable = RunnableWithMessageHistory(model, lambda session_id: store)
    config: RunnableConfig = {"configurable": {"session_id": "1"}}
    if streamed:
        list(runnable.stream([HumanMessage("?")], config))
    else:
        runnable.invoke([HumanMessage("?")], config)
    assert [message.type for message in store.messages] == ["human", "ai"]
    runnable.invoke([HumanMessage("thanks")], config)
    assert [message.type for message in model.requests[-1].messages] == ["human", "ai", "tool", "tool", "ai", "human"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("streamed", [False, True])
def test_message_history_stores_each_message_once(chat: Make, streamed: bool) -> None:
    """Around the bare model, RunnableWithMessageHistory takes the new messages out of the trace's input: it is as the caller gave it."""
    store = InMemoryChatMessageHistory()
    runnable = RunnableWithMessageHistory(chat(), lambda session_id: store)
    config: RunnableConfig = {"configurable": {"session_id": "1"}}
    for question in ("?", "and now?", "thanks"):
        if streamed:
            list(runnable.stream([HumanMessage(question)], config))
        else:
            runnable.invoke([HumanMessage(question)], config)
    assert [message.text for message in store.messages] == ["?", TEXT, "and now?", TEXT, "thanks", "You are welcome."]


def test_a_caller_may_append_to_the_list_that_is_streamed(chat: Make) -> None:
    """The input is copied before the first chunk."""
    model, history = chat(), [HumanMessage("?")]
    for chunk in model.stream(history):
        history += new_messages(chunk)
    assert [message.type for message in history] == ["human", "ai", "tool", "tool", "ai"]
    assert [message.type for message in model.requests[-1].messages] == ["human", "ai", "tool", "tool"]


def test_streaming_switched_off_still_runs_the_tools(chat: Make) -> None:
    """With `disable_streaming` a stream is the whole conversation all the same, each tool run once."""
    chunks = list(chat(disable_streaming=True).stream("?"))
    assert "".join(chunk.text for chunk in chunks) == TEXT and sorted(ran) == ["Paris", "Rome"]
    assert all(isinstance(chunk, AIMessageChunk) for chunk in chunks)


def test_forced_tool_choice_holds_for_the_first_turn(chat: Make) -> None:
    """Else the run would never end."""
    model = chat()
    model.invoke("?", tool_choice="any")
    assert [request.tool_choice for request in model.requests] == ["any", None]


@pytest.mark.parametrize(("choice", "asked"), [("any", ["any", "any"]), ("get_temperature", ["get_temperature", None])])
def test_any_of_the_callers_tools_must_be_called(chat: Make, choice: str, asked: list[Any]) -> None:
    """`any` with bound tools holds until one of them is called, a name for the first turn only."""

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        if messages[-1].type == "tool" and kwargs.get("tool_choice") == "any":
            return AIMessage("", tool_calls=[{"name": "report", "args": {}, "id": "r"}])
        return answer(messages)

    def report() -> None:
        """Report."""

    model = chat(replies=reply)
    run = model.bind_tools([report], tool_choice=choice).invoke("?")
    assert [request.tool_choice for request in model.requests] == asked
    assert [call["name"] for call in run.tool_calls] == (["report"] if choice == "any" else [])


def test_structured_output_after_a_talkative_turn(chat: Make) -> None:
    """A constructor tool runs, the text of its turn is withheld, the schema's call ends the run."""
    schema = {"title": "Report", "type": "object", "properties": {"paris": {"type": "integer"}}, "required": ["paris"]}

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("", tool_calls=[{"name": "Report", "args": {"paris": 5}, "id": "r"}])
        return answer(messages)

    model = chat(replies=reply)
    assert model.with_structured_output(schema).invoke("?") == {"paris": 5}
    assert [request.tool_choice for request in model.requests] == ["any", "any"]
    assert model.requests[0].tool_names == ["get_temperature", "Report"]


def test_many_threads_share_one_model(chat: Make) -> None:
    """100 runs in threads, each with its own question in its tool's arguments: no crosstalk."""

    @tool("get_temperature")
    def echo(city: str) -> str:
        """Current temperature of a city."""
        return city

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        number = messages[0].text
        if messages[-1].type == "tool":
            return AIMessage(f"{number}: {messages[-1].text}")
        return AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": number}, "id": f"c{number}"}])

    model = chat(replies=reply, tools=[echo])
    texts: dict[int, str] = {}

    def run(number: int) -> None:
        texts[number] = model.invoke(str(number)).text

    threads = [threading.Thread(target=run, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert texts == {number: f"{number}: {number}" for number in range(100)}


def test_a_user_may_write_the_carrier_to_disk(chat: Make) -> None:
    """The run message is plain data."""
    run = chat().invoke("?")
    again = AIMessage(**json.loads(run.model_dump_json()))
    assert new_messages(again) == new_messages(run)


@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize("streamed", [False, True])
def test_json_output_after_a_talkative_turn(chat: Make, carry: bool, streamed: bool) -> None:
    """Where the answer itself is JSON, the text of the turn that called the tools is withheld."""

    def reply(messages: list[Any], **kwargs: Any) -> AIMessage:
        return AIMessage('{"paris": 5}') if messages[-1].type == "tool" else answer(messages)

    said = {"kwargs": {"method": "json_mode"}, "schema": None}
    model = chat(replies=reply, carry_messages=carry).bind(ls_structured_output_format=said)
    text = "".join(chunk.text for chunk in model.stream("?")) if streamed else model.invoke("?").text
    assert text == '{"paris": 5}' and sorted(ran) == ["Paris", "Rome"]


async def test_generate_is_one_turn_that_declares_and_never_executes(chat: Make) -> None:
    """`generate`, `agenerate` and `generate_prompt` declare the constructor's tools and return their calls."""
    model = chat()
    results = [
        model.generate([[HumanMessage("?")]]),
        await model.agenerate([[HumanMessage("?")]]),
        model.generate_prompt([PROMPT.invoke({"question": "?"})]),
    ]
    for result in results:
        assert [call["id"] for call in result.generations[0][0].message.tool_calls] == ["call_1", "call_2"]
    assert ran == [] and all(request.tool_names == ["get_temperature"] for request in model.requests)
