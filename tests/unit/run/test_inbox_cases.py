"""`inbox=` at length: what else ends or begins a run, kinds of queues and messages, other entrances, what is told of it, retries."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict, messages_to_dict
from pydantic import BaseModel

from langchain_autotools import (
    Agent,
    ChatOpenAI,
    ConfigurationError,
    LimitReachedError,
    NextTurn,
    aevents,
    events,
    new_messages,
    pending_calls,
    repair,
    run_cost,
    run_usage,
)
from langchain_autotools.event_types import MessageDone, RunEnded, TextDelta
from langchain_autotools.history import join_generations, split_generations
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, Ran, run, waited
from tests.support.claims import MemoryClaims
from tests.support.desk import QUESTION, TURN, Desk, asked, asking, call, reason
from tests.support.failing import DOWN, called, pair
from tests.support.inboxes import LOOKS, SAID, User, declared, kinds, left, texts
from tests.support.middleware import Around
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn

pytestmark = pytest.mark.further
STREAMS = ("stream", "astream")
AGAIN = asking(call("look", "3", city="Oslo"))

# ---------------------------------------------------------------------------------------------- where it is read


@pytest.mark.parametrize("way", WAYS)
def test_what_is_there_before_the_run_waits_for_the_same_places(way: str) -> None:
    """It is not read before the first request, whose history may end in results, too."""
    user = User()
    user.inbox.put(SAID)
    model = user.model()
    history = [QUESTION, LOOKS, *(ToolMessage("21", tool_call_id=call_id) for call_id in "12")]
    ran = run(way, model, history, inbox=user.inbox)
    assert kinds(model.requests[0].messages) == ["human", "ai", "tool", "tool"]
    assert kinds(ran.new) == ["ai", "human", "ai"]


@pytest.mark.parametrize("way", WAYS)
def test_behind_calls_of_the_input_that_are_answered_as_interrupted(way: str) -> None:
    """A request follows: it is read there."""
    user = User()
    user.inbox.put(SAID)
    model = user.model()
    ran = run(way, model, [QUESTION, LOOKS], inbox=user.inbox)
    assert kinds(ran.new) == ["tool", "tool", "human", "ai"] and user.looked == []
    assert texts(model.requests[0].messages) == [QUESTION.text, SAID]


@pytest.mark.parametrize("way", WAYS)
def test_behind_the_message_that_comes_with_decisions(way: str) -> None:
    """Results, the message of `resume`, then what was in the queue, in order; with an id of the other message it is refused."""
    desk, user = Desk(), User()
    rules: dict[str, Any] = {"requires_approval": ["send"]}
    history, pending, _ = asked(desk.model(TURN, **rules), way)
    decisions = [one.approve() for one in pending]
    user.inbox.put(HumanMessage("Second.", id="b"))
    model = desk.model(**rules)
    ran = run(way, model, history, resume=decisions, message=HumanMessage("First.", id="a"), inbox=user.inbox)
    assert kinds(ran.new) == ["tool", "tool", "human", "human", "ai"] and texts(ran.new) == ["First.", "Second."]
    assert texts(model.requests[0].messages) == [QUESTION.text, "First.", "Second."]
    user.inbox.put(HumanMessage("Second.", id="a"))
    ran = run(way, desk.model(**rules), history, resume=decisions, message=HumanMessage("First.", id="a"), inbox=user.inbox)
    assert isinstance(ran.error, ConfigurationError) and texts(ran.new) == ["First."]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limit", [{"max_turns": 1}, {"max_tool_calls": 1}, {"token_budget": 1}], ids=str)
def test_the_last_answer_at_a_limit_answers_it(way: str, limit: dict[str, Any]) -> None:
    """A request is certain. What is said during that answer stays in the queue."""
    user = User()
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    model = user.model(user.says(SAID, then=LOOKS.model_copy(update={"usage_metadata": usage})), user.says("Later.", then="At last."))
    ran = run(way, model, [QUESTION], inbox=user.inbox, **limit)
    assert (kinds(ran.new), reason(ran)) == (["ai", "tool", "tool", "human", "ai"], next(iter(limit)))
    assert model.requests[1].tool_choice == "none" and left(user.inbox) == ["Later."]


@pytest.mark.parametrize("way", WAYS)
def test_limits_count_on(way: str) -> None:
    """Messages make turns until a limit is reached; what is said then stays, and the run is complete: its reply is whole."""
    user = User()
    model = user.model(*[user.says(f"{number}.", then=f"Reply {number}") for number in range(4)])
    ran = run(way, model, [QUESTION], inbox=user.inbox, max_turns=3)
    assert (reason(ran), len(model.requests), texts(ran.new), left(user.inbox)) == ("complete", 3, ["0.", "1."], ["2."])


@pytest.mark.parametrize("way", WAYS)
def test_what_the_user_says_is_progress(way: str) -> None:
    """The same call with the same result may be sensible after a word of the user's."""
    user = User()
    same = asking(call("look", "1", city="Paris")), asking(call("look", "2", city="Paris")), asking(call("look", "3", city="Paris"))
    quiet = run(way, user.model(*same), [QUESTION], inbox=user.inbox, no_progress=2)
    assert reason(quiet) == "no_progress"
    said = run(
        way, user.model(user.says("Once more.", then=same[0]), user.says("And.", then=same[1])), [QUESTION], inbox=user.inbox, no_progress=2
    )
    assert reason(said) == "complete"


def test_a_reading_ends_though_the_queue_never_does() -> None:
    """Of a source that always has something more, one reading takes a thousand messages."""

    class Endless:
        def __init__(self) -> None:
            self.given = 0

        def empty(self) -> bool:
            return False

        def get_nowait(self) -> str:
            self.given += 1
            return f"{self.given}."

    ran = run("invoke", User().model(AGAIN), [QUESTION], inbox=Endless(), max_turns=2)
    assert (len(texts(ran.new)), reason(ran)) == (1000, "complete")


# ---------------------------------------------------------------------------------------------- where it stays in the queue


@pytest.mark.parametrize("way", WAYS)
def test_the_next_run_reads_what_stayed(way: str) -> None:
    """Once the calls that waited are decided about: behind their results."""
    user = User()
    model = user.model(user.says(SAID, then=LOOKS), requires_approval=True)
    first = run(way, model, [QUESTION], inbox=user.inbox)
    decisions = [one.approve() for one in pending_calls([QUESTION, *first.new])]
    half = run(way, model, [QUESTION, *first.new], resume=decisions[:1], inbox=user.inbox)
    assert (reason(half), kinds(half.new)) == ("calls_pending", ["tool"])
    ran = run(way, model, [QUESTION, *first.new, *half.new], resume=decisions[1:], inbox=user.inbox)
    assert (kinds(ran.new), texts(ran.new)) == (["tool", "human", "ai"], [SAID])


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_ends_from_outside_leaves_it(way: str) -> None:
    """By its caller, its deadline, a tool's listener, a request that fails, a limit that raises."""
    user = User()
    flag, hold = threading.Event(), threading.Event()

    def halt() -> str:
        """Cancel."""
        flag.set()
        return "Halted."

    def wait() -> str:
        """Wait."""
        hold.wait(10)
        return "Waited."

    said = user.says(SAID, then=asking(call("halt", "1")))
    ran = run(way, user.model(said, tools=[halt]), [QUESTION], inbox=user.inbox, cancel=flag)
    assert (reason(ran), left(user.inbox)) == ("cancelled", [SAID])
    slow = user.model(user.says(SAID, then=asking(call("wait", "1"))), tools=[wait])
    ran = run(way, slow, [QUESTION], inbox=user.inbox, deadline=0.4)
    assert (reason(ran), left(user.inbox)) == ("deadline", [SAID])
    hold.set()
    flag.clear()
    ran = run(way, user.model(cancelling(user, flag)), [QUESTION], inbox=user.inbox, cancel=flag)
    assert ran.message is not None and left(user.inbox) == [SAID]

    def full(result: Any) -> None:
        raise OSError("full")

    ran = run(way, user.model(user.says(SAID, then=LOOKS), on_executed=full), [QUESTION], inbox=user.inbox)
    assert (type(ran.error), left(user.inbox), texts(ran.new)) == (OSError, [SAID], [])
    ran = run(way, user.model(user.says(SAID, then=RuntimeError("gone"))), [QUESTION], inbox=user.inbox)
    assert (type(ran.error), left(user.inbox)) == (RuntimeError, [SAID])
    raising = user.model(user.says(SAID, then=LOOKS), max_turns=1, on_limit="raise")
    ran = run(way, raising, [QUESTION], inbox=user.inbox)
    assert (type(ran.error), left(user.inbox)) == (LimitReachedError, [SAID])


def cancelling(user: User, flag: threading.Event) -> Callable[..., Any]:
    """A reply during which the user says something, and cancels."""

    def reply(messages: Any, **_: Any) -> str:
        user.inbox.put(SAID)
        flag.set()
        return "Done."

    return reply


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_that_fails_at_the_last_reply_leaves_it(way: str) -> None:
    """The reply is whole, and kept; the queue is not read for a run that is over."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Full(BaseCallbackHandler):
        raise_error = True

        def on_llm_end(self, *_: Any, **__: Any) -> None:
            raise OSError("full")

    user = User()
    ran = run(way, user.model(user.says(SAID)), [QUESTION], inbox=user.inbox, config={"callbacks": [Full()]})
    assert (type(ran.error), kinds(ran.new), left(user.inbox)) == (OSError, ["ai"], [SAID])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["between", "after"])
def test_max_cost_leaves_it_or_ends_behind_it(way: str, place: str) -> None:
    """Before a request that is too costly it stays; where it makes the request too costly itself, it is in the history, without a reply."""
    usage: Any = {"input_tokens": 999, "output_tokens": 1, "total_tokens": 1000}
    reply = LOOKS if place == "between" else AIMessage("Well.")
    reply = reply.model_copy(update={"usage_metadata": usage, "response_metadata": {"model_provider": "own", "model_name": "m"}})
    long = "Only in Celsius. " * 10_000
    ends = {"between": ("max_cost", "max_cost"), "after": ("complete", "max_cost")}[place]
    for said, most, why in ((SAID, 0.015, ends[0]), (long, 0.025, ends[1])):
        user = User()
        model = Named(
            tools=[Desk().look], replies=[user.says(said, then=reply), "Done."], prices={"m": {"input_mtok": 10, "output_mtok": 10}}
        )
        ran = run(way, model, [QUESTION], inbox=user.inbox, max_cost=most)
        assert (reason(ran), len(model.requests)) == (why, 1)
        assert (left(user.inbox), texts(ran.new)) == (([SAID], []) if said == SAID else ([], [long]))


class Named(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "m"


def test_a_reader_that_leaves_leaves_the_queue() -> None:
    """What no chunk has brought was not taken."""
    user = User()
    for _ in user.model(user.says(SAID, then=LOOKS)).stream([QUESTION], inbox=user.inbox):
        break
    assert left(user.inbox) == [SAID]


# ---------------------------------------------------------------------------------------------- what kinds of queues


QUEUES: dict[str, Callable[[], Any]] = {
    "Queue": queue.Queue,
    "LifoQueue": queue.LifoQueue,
    "SimpleQueue": queue.SimpleQueue,
    "asyncio.Queue": asyncio.Queue,
    "multiprocessing.Queue": multiprocessing.Queue,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", QUEUES)
def test_queues_of_the_standard_library(way: str, kind: str) -> None:
    """Of threads, of processes, and in asynchronous runs of asyncio."""
    user = User(QUEUES[kind]())
    if kind == "asyncio.Queue" and not way.startswith("a"):
        ran = run(way, user.model(), [QUESTION], inbox=user.inbox)
        assert isinstance(ran.error, ConfigurationError) and "goes with ainvoke and astream" in str(ran.error)
        return

    def arrived(city: str) -> str:
        """Wait until what was put can be read: another process's queue has a thread between."""
        while user.inbox.empty():
            pass
        return "yes"

    model = user.model(user.says(SAID, then=asking(call("arrived", "1", city="x"))), tools=[arrived])
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (kinds(ran.new), texts(ran.new)) == (["ai", "tool", "human", "ai"], [SAID])


class Faster:
    """A queue that another reader has emptied meanwhile."""

    def __init__(self, error: BaseException, *given: Any) -> None:
        self.error = error
        self.given = list(given)

    def empty(self) -> bool:
        """It looks as if there were something."""
        return False

    def get_nowait(self) -> Any:
        """Give the next one, or fail."""
        if not self.given:
            raise self.error
        return self.given.pop(0)


def test_another_reader_may_be_faster_and_a_queue_may_fail() -> None:
    """The errors of empty queues, and of queues that are shut down, mean that nothing is there; others are raised, and nothing is lost."""
    gone = [queue.Empty(), asyncio.QueueEmpty()]
    gone += [kind() for kind in (getattr(queue, "ShutDown", None), getattr(asyncio, "QueueShutDown", None)) if kind]
    for error in gone:
        ran = run("invoke", User().model(LOOKS), [QUESTION], inbox=Faster(error, SAID))
        assert (kinds(ran.new), reason(ran)) == (["ai", "tool", "tool", "human", "ai"], "complete")
    for way in WAYS:
        ran = run(way, User().model(LOOKS), [QUESTION], inbox=Faster(ConnectionError("broker"), "One.", "Two."))
        assert isinstance(ran.error, ConnectionError)
        assert (kinds(ran.new), texts(ran.new)) == (["ai", "tool", "tool", "human", "human"], ["One.", "Two."])


class Later:
    """Its methods are coroutines."""

    async def empty(self) -> bool:
        """Nobody waits for it."""
        return True

    async def get_nowait(self) -> Any:
        """Nor for this."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", [[], "text", 3, queue.Queue, object(), iter(()), Later()], ids=lambda one: type(one).__name__)
def test_what_is_no_queue_is_refused(way: str, wrong: Any) -> None:
    """Before a request."""
    model = User().model()
    ran = run(way, model, [QUESTION], inbox=wrong)
    assert isinstance(ran.error, ConfigurationError) and "inbox must be a queue.Queue, an asyncio.Queue, or another" in str(ran.error)
    assert model.requests == []


WRONG = [3, None, ["text"], AIMessage("x"), SystemMessage("x"), {"role": "user"}, b"x", "", HumanMessage(""), HumanMessage([])]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["between", "after"])
@pytest.mark.parametrize("wrong", [*WRONG, HumanMessage("x", id="known"), HumanMessage("x", id="again")], ids=repr)
def test_what_is_no_message_ends_the_run_with_what_it_has(way: str, place: str, wrong: Any) -> None:
    """In words, once it is taken; what was before it is in the run's messages, what was behind it in the queue."""
    user = User()
    first = HumanMessage("One.", id="again")
    reply = LOOKS if place == "between" else AIMessage("Well.")
    ran = run(way, user.model(user.says(first, wrong, "Three.", then=reply)), [HumanMessage("Go.", id="known")], inbox=user.inbox)
    assert isinstance(ran.error, ConfigurationError)
    words = "a message of the inbox must be", "a message of the inbox is empty", "has a message with the id"
    assert any(one in str(ran.error) for one in words)
    assert (kinds(ran.new), texts(ran.new), left(user.inbox)) == (
        ["ai", *["tool"] * (2 if place == "between" else 0), "human"],
        ["One."],
        ["Three."],
    )
    model = user.model()
    run(way, model, [HumanMessage("Go.", id="known"), *ran.new])
    assert texts(model.requests[0].messages) == ["Go.", "One."]


def test_a_message_that_is_said_twice_is_two_messages() -> None:
    """Without an id each has its own, and the caller's object none."""
    user, said = User(), HumanMessage(SAID)
    ran = run("invoke", user.model(user.says(said, said, then=LOOKS)), [QUESTION], inbox=user.inbox)
    assert texts(ran.new) == [SAID, SAID] and ran.new[3].id != ran.new[4].id and said.id is None


def test_an_image_is_taken_as_it_is() -> None:
    """Content blocks join, and the wire has them."""
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    said: Any = [{"type": "text", "text": "This one."}, image]
    inbox: queue.Queue[Any] = queue.Queue()
    inbox.put(HumanMessage(said))
    with OpenAIServer([Turn(calls=[Call("look", {"city": "Paris"})]), Turn("Fine.")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[Desk().look])
        ran = model.invoke([QUESTION], inbox=inbox)
        assert [one["role"] for one in server.messages[-1]] == ["user", "assistant", "tool", "user"]
        assert [part["type"] for part in server.messages[-1][-1]["content"]] == ["text", "image_url"]
        assert server.rejections == []
    assert new_messages(ran)[2].content == said


# ---------------------------------------------------------------------------------------------- where it is refused


def test_it_belongs_to_one_run() -> None:
    """A batch, a pickle, the constructor and a single turn refuse it, in words; None is none."""
    import pickle

    inbox: queue.Queue[Any] = queue.Queue()
    model = User().model()
    attempts: list[Callable[[], Any]] = [
        lambda: model.batch([[QUESTION]], inbox=inbox),
        lambda: waited(model.abatch([[QUESTION]], inbox=inbox)),
        lambda: list(model.batch_as_completed([[QUESTION]], inbox=inbox)),
        lambda: model.abatch_as_completed([[QUESTION]], inbox=inbox),
        lambda: model.bind(inbox=inbox).batch([[QUESTION]]),
        lambda: model.bind_tools([declared("theirs")]).batch([[QUESTION]], inbox=inbox),
        lambda: list(model.bind(inbox=inbox).batch_as_completed([[QUESTION]])),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigurationError, match="an inbox is one run's: batch takes none"):
            attempt()
    for attempt in (lambda: model.generate([[QUESTION]], inbox=inbox), lambda: waited(model.agenerate([[QUESTION]], inbox=inbox))):
        with pytest.raises(ConfigurationError, match="inbox is for invoke, stream and their asynchronous twins"):
            attempt()
    with pytest.raises(ConfigurationError, match="'inbox': it belongs to one call"):
        ScriptedChatModel(replies=[], inbox=inbox)  # type: ignore[call-arg]
    for one in (inbox, asyncio.Queue[Any](), Faster(queue.Empty())):
        with pytest.raises(pickle.PicklingError, match="inbox cannot be pickled; what is put into a queue of this process"):
            pickle.dumps(model.bind(inbox=one))
    assert model.requests == []
    assert len(model.bind(inbox=None).batch([[QUESTION]])) == 1


# ---------------------------------------------------------------------------------------------- other entrances


@pytest.mark.parametrize("way", WAYS)
def test_a_model_without_tools_has_a_run_for_it(way: str) -> None:
    """As for `before_turn`: its message has a stop reason."""
    user = User()
    model = ScriptedChatModel(replies=[user.says(SAID, then="First."), "Second."])
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (kinds(ran.new), reason(ran)) == (["ai", "human", "ai"], "complete")
    assert ran.message is not None and ran.message.text == "First.\nSecond."


@pytest.mark.parametrize("way", WAYS)
def test_bound_models_and_pipes(way: str) -> None:
    """`bind`, `bind_tools`, `with_config`, `with_retry` and what a pipe hands on."""
    from langchain_core.runnables import RunnableLambda

    made: list[Callable[[Any, Any], tuple[Any, dict[str, Any]]]] = [
        lambda model, inbox: (model.bind(inbox=inbox), {}),
        lambda model, inbox: (model.bind(inbox=inbox).bind_tools([declared("theirs")]), {}),
        lambda model, inbox: (model.bind_tools([declared("theirs")]), {"inbox": inbox}),
        lambda model, inbox: (model.with_config(tags=["a"]), {"inbox": inbox}),
        lambda model, inbox: (model.with_retry(), {"inbox": inbox}),
        lambda model, inbox: (RunnableLambda(lambda given: given) | model.bind(inbox=inbox), {}),
    ]
    for bound in made:
        user = User()
        model, keywords = bound(user.model(user.says(SAID, then=LOOKS)), user.inbox)
        ran = run(way, model, [QUESTION], **keywords)
        assert (ran.error, kinds(ran.new)) == (None, ["ai", "tool", "tool", "human", "ai"])


@pytest.mark.parametrize("way", ["run", "arun", "run_stream", "arun_stream"])
def test_the_conversation_of_an_agent_keeps_it(way: str) -> None:
    """Where the model read it, once."""
    user = User()
    agent = Agent(user.model(user.says("One.", then=LOOKS), user.says("Two.", then="Well.")))
    if way == "run":
        agent.run(QUESTION, inbox=user.inbox)
    elif way == "run_stream":
        list(agent.run_stream(QUESTION, inbox=user.inbox))
    elif way == "arun":
        waited(agent.arun(QUESTION, inbox=user.inbox))
    else:
        waited(read_all(agent.arun_stream(QUESTION, inbox=user.inbox)))
    assert kinds(agent.history) == ["human", "ai", "tool", "tool", "human", "ai", "human", "ai"]
    assert texts(agent.history) == [QUESTION.text, "One.", "Two."]


async def read_all(stream: Any) -> list[Any]:
    """All that a stream gives."""
    return [one async for one in stream]


class Answer(BaseModel):
    """An answer."""

    text: str


@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
def test_structured_output_reads_it_between_turns_alone(method: Any) -> None:
    """Before the output it joins; what is said while the output is written stays in the queue."""
    data = {"text": "quick"}
    user = User()
    output = Turn(calls=[Call("Answer", data)]) if method == "function_calling" else Turn(json.dumps(data))

    def look(city: str) -> str:
        """Look."""
        user.inbox.put(SAID)
        return "21"

    def script(exchange: Any) -> Turn:
        if exchange.json["messages"][-1]["role"] == "user" and len(exchange.json["messages"]) > 1:
            user.inbox.put("Later.")
            return output
        return Turn(calls=[Call("look", {"city": "Paris"})])

    with OpenAIServer(script) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[look])
        bound: Any = model if method == "json_schema" else model.bind(inbox=user.inbox)
        given: Any = {"inbox": user.inbox} if method == "json_schema" else {}
        made = bound.with_structured_output(Answer, method=method, include_raw=True).invoke([HumanMessage("Answer in json.")], **given)
        assert [one["role"] for one in server.messages[-1]] == ["user", "assistant", "tool", "user"]
        assert server.rejections == []
    assert (made["parsed"], left(user.inbox)) == (Answer(text="quick"), ["Later."])


@pytest.mark.parametrize("way", WAYS)
def test_a_model_as_a_tool_does_not_read_the_queue_of_the_run_around_it(way: str) -> None:
    """What the user says is for the outermost run."""
    user = User()
    inner = ScriptedChatModel(
        tools=[Desk().look], replies=[user.says(SAID, then=asking(call("look", "i", city="Bonn"))), user.says("More.", then="Inner.")]
    )
    model = user.model(asking(call("helper", "o", question="Go.")), tools=[inner.as_tool(name="helper", description="Helps.")])
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (kinds(ran.new), texts(ran.new), len(inner.requests)) == (["ai", "tool", "human", "human", "ai"], [SAID, "More."], 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_repeated_resume_leaves_the_queue_alone(way: str) -> None:
    """With a store of claims the second run brings what the first one brought, its messages of the user among them."""
    desk, store, user = Desk(), MemoryClaims(), User()
    rules: dict[str, Any] = {"requires_approval": ["send"], "claim": store}
    history, pending, _ = asked(desk.model(TURN, **rules), way)
    decisions = [one.approve() for one in pending]
    user.inbox.put(SAID)
    first = run(way, desk.model(**rules), history, resume=decisions, inbox=user.inbox)
    user.inbox.put("Later.")
    model = desk.model(**rules)
    second = run(way, model, history, resume=decisions, inbox=user.inbox)
    assert [one.id for one in second.new] == [one.id for one in first.new] and texts(second.new) == [SAID]
    assert (model.requests, left(user.inbox)) == ([], ["Later."])
    assert first.message is not None and second.message is not None and second.message.text == first.message.text


@pytest.mark.parametrize("way", STREAMS)
def test_never_between_the_parts_of_a_reply(way: str) -> None:
    """The next model goes on with a reply that broke off, and a server with one that it interrupted, before anything is read."""
    user = User()
    model, _ = pair([user.says(SAID, then=["Let me ", DOWN]), "Done."], ["look."])
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert (reason(ran), [one.text for one in ran.new]) == ("complete", ["Let me ", "look.", SAID, "Done."])
    assert ran.message is not None and ran.message.text == "Let me look.\nDone."
    paused = AIMessage("Let me ", response_metadata={"finish_reason": "pause_turn"})
    model = user.model(user.says(SAID, then=paused), "look.")  # type: ignore[assignment]
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert [one.text for one in ran.new] == ["Let me ", "look.", SAID, "Done."]
    assert ran.message is not None and ran.message.text == "Let me look.\nDone."


@pytest.mark.parametrize("way", STREAMS)
def test_a_model_that_has_taken_over_is_left_once_the_user_has_said_something(way: str) -> None:
    """As after any word of the user's: the first model is asked again."""
    user = User()
    model, other = pair([DOWN, "First again."], [user.says(SAID, then=called()), "Second."])
    ran = run(way, model, [QUESTION], inbox=user.inbox)
    assert kinds(ran.new) == ["ai", "tool", "human", "ai"]
    assert (len(model.requests), len(other.requests)) == (2, 1)


@pytest.mark.parametrize("way", WAYS)
def test_hooks_see_it_in_the_request(way: str) -> None:
    """Middleware and `before_turn`; what they change of the request is not stored."""
    user, seen = User(), list[list[str]]()

    def watch(request: Any) -> Any:
        seen.append(kinds(request.messages))
        return (yield request)

    def before(turn: NextTurn) -> NextTurn:
        seen.append(kinds(turn.messages))
        return turn

    expected = [["human"], ["human", "ai", "tool", "tool", "human"]]
    run(way, user.model(user.says(SAID, then=LOOKS), middleware=[Around(watch)]), [QUESTION], inbox=user.inbox)
    assert seen == expected
    seen.clear()
    run(way, user.model(user.says(SAID, then=LOOKS), before_turn=before), [QUESTION], inbox=user.inbox)
    assert seen == expected


# ---------------------------------------------------------------------------------------------- what is told


def steered(way: str = "invoke", **fields: Any) -> Ran:
    """A run that took a message behind results, and one after its last reply."""
    user = User()
    text = LOOKS.model_copy(update={"content": "Let me look."})
    model = user.model(user.says("One.", then=text), user.says("Two.", then="Well."), **fields)
    return run(way, model, [QUESTION], inbox=user.inbox)


@pytest.mark.parametrize("way", WAYS)
def test_the_run_message_and_its_parts_are_one_history(way: str) -> None:
    """In each form, beside one another, through JSON: the next request is the same."""
    ran = steered(way)
    assert ran.message is not None and ran.message.text == "Let me look.\nWell.\nDone."
    data = messages_from_dict(json.loads(json.dumps(messages_to_dict([ran.message]))))
    forms: dict[str, list[BaseMessage]] = {
        "parts": ran.new,
        "run message": [ran.message],
        "read back": data,
        "parts, then the run message": [*ran.new, *data],
        "some parts, then the run message": [*ran.new[:5], *data],
        "the run message, then the reply": [*data, ran.new[-1]],
    }
    requests = {}
    for name, form in forms.items():
        model = ScriptedChatModel(replies=["Fine."])
        model.invoke([QUESTION, *form, HumanMessage("Next?", id="next")])
        requests[name] = messages_to_dict(model.requests[0].messages)
        assert texts(repair([QUESTION, *form])) == [QUESTION.text, "One.", "Two."], name
    assert all(one == requests["parts"] for one in requests.values())


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_ends_in_what_the_user_said(way: str) -> None:
    """The request that would have answered it is cut: the message is the last of the run, and no text is lost or doubled."""
    user, flag = User(), threading.Event()

    def cut(messages: Any, **_: Any) -> Any:
        flag.set()
        return ["Lost"]

    ran = run(way, user.model(user.says(SAID, then="First."), cut), [QUESTION], inbox=user.inbox, cancel=flag)
    assert ran.message is not None and kinds(ran.new)[:2] == ["ai", "human"]
    assert repair([QUESTION, ran.message]) == repair([QUESTION, *ran.new])


def test_an_edited_text_of_the_run_changes_the_replies_and_no_message_of_the_user() -> None:
    """As of any run message."""
    message = steered().message
    assert message is not None
    edited = message.model_copy(update={"content": "Let me look.\nWell.\nDone, they say."})
    assert [one.text for one in repair([QUESTION, edited])][-3:] == ["Well.", "Two.", "Done, they say."]


def test_rows_sums_and_cost() -> None:
    """Rows of a table, in which it belongs to no turn; usage and cost are those of all turns."""
    usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    user = User()
    reply = AIMessage("Well.", usage_metadata=usage, response_metadata={"model_name": "m", "model_provider": "p"})  # type: ignore[arg-type]
    model = ScriptedChatModel(replies=[user.says(SAID, then=reply), reply])
    ran = run("invoke", model, [QUESTION], inbox=user.inbox)
    assert ran.message is not None
    rows = split_generations([QUESTION, ran.message])
    assert [row["message"]["type"] for row in rows] == ["human", "ai", "human", "ai"]
    assert kinds(join_generations(rows)) == ["human", "ai", "human", "ai"]
    total = run_usage(ran.message)
    assert total is not None and total["total_tokens"] == 22
    assert ran.message.usage_metadata is not None and ran.message.usage_metadata["total_tokens"] == 11
    assert len(run_cost(ran.message, prices={"m": {"input_mtok": 10, "output_mtok": 10}}).turns) == 2


def test_events_have_it_where_it_was_read() -> None:
    """As a message of the history; the texts of the events with their separators are the text of the run message."""

    def check(got: list[Any], message: Any) -> None:
        assert [one.message.type for one in got if isinstance(one, MessageDone)] == ["ai", "tool", "tool", "human", "ai", "human", "ai"]
        assert "".join(one.separator + one.text for one in got if isinstance(one, TextDelta)) == message.text
        assert message.text == "Let me look.\nWell.\nDone."
        (end,) = [one for one in got if isinstance(one, RunEnded)]
        assert kinds(new_messages(message)) == ["ai", "tool", "tool", "human", "ai", "human", "ai"] and end.turns == 3

    def model(user: User) -> Any:
        text = LOOKS.model_copy(update={"content": "Let me look."})
        return user.model(user.says("One.", then=text), user.says("Two.", then="Well."))

    user = User()
    told = events(model(user).stream([QUESTION], inbox=user.inbox))
    check(list(told), told.message)

    async def read() -> tuple[list[Any], Any]:
        user = User(asyncio.Queue())
        stream = aevents(model(user).astream([QUESTION], inbox=user.inbox))
        return [one async for one in stream], stream.message

    check(*asyncio.run(read()))


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_the_v3_event_streams_take_it(way: str) -> None:
    """LangChain's own protocol of events: one reply after another."""
    user = User()
    model = user.model(user.says(SAID, then=LOOKS), user.says("Two.", then="Well."))
    if way == "stream":
        stream = model.stream_events([QUESTION], version="v3", inbox=user.inbox)
        list(stream)
        message = stream.output
    else:

        async def read() -> Any:
            stream = await model.astream_events([QUESTION], version="v3", inbox=user.inbox)
            async for _ in stream:
                pass
            return await stream.output

        message = waited(read())
    assert texts(new_messages(message)) == [SAID, "Two."] and user.inbox.empty()


def test_without_a_carrier_it_is_in_the_new_messages_of_the_process() -> None:
    """As all messages of the run are."""
    ran = steered(carry_messages=False)
    assert ran.message is not None
    assert texts(new_messages(ran.message)) == ["One.", "Two."]
    assert "One." not in json.dumps(ran.message.response_metadata)


def test_at_a_terminal_the_texts_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """`show` shows replies, not what the user has typed there; their texts are not glued together."""
    from langchain_autotools import show

    user = User()
    model = user.model(user.says(SAID, then="First."))
    message = show(model.stream([QUESTION], inbox=user.inbox))
    assert message.text == "First.\nDone."
    assert "First.Done." not in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- retries


def looking(user: User) -> Any:
    """A tool during whose first call the user says something."""

    def look(city: str) -> str:
        """Look."""
        if not user.looked:
            user.inbox.put(SAID)
        user.looked.append(city)
        return "21"

    return look


def test_retries_of_the_request_keep_it_and_retries_of_the_run_lose_it() -> None:
    """`max_retries` repeats one request, which has the message; `with_retry` begins again with the input, and the queue is empty."""
    calls = Turn(calls=[Call("look", {"city": "Paris"})])
    for retried in ("request", "run"):
        user = User()

        replies = [calls, Failure(), *([] if retried == "request" else [calls]), Turn("Done.")]
        with OpenAIServer(replies) as server:
            retries = 1 if retried == "request" else 0
            model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[looking(user)], max_retries=retries)
            again: Any = model if retried == "request" else model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
            ran = again.invoke([QUESTION], inbox=user.inbox)
            assert server.rejections == []
        assert texts(new_messages(ran)) == ([SAID] if retried == "request" else [])
        assert len(user.looked) == (1 if retried == "request" else 2)


def test_the_log_has_no_text_of_the_user(caplog: pytest.LogCaptureFixture) -> None:
    """Content is told only by opt-in."""
    with caplog.at_level(logging.DEBUG, "langchain_autotools"):
        steered()
    assert "One." not in caplog.text
