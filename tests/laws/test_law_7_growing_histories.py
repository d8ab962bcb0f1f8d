"""Law 7: what is known of the request before changes no byte of the next, whatever happened to the messages in between."""

import copy
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import ChatOpenAI, ToolContext, new_messages
from tests.contract.wires import WIRES, Wire
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

CARD = "4111 1111 1111 1111"
EACH = [wire for wire in WIRES if not wire.name.startswith("azure")]
each_wire = pytest.mark.parametrize("wire", EACH, ids=lambda wire: wire.name)


def model_of(wire: Wire, server: Any, **more: Any) -> Any:
    """A model of this wire that asks for no caching, so that only the messages make its requests."""
    return wire.model(server, **({"prompt_caching": False} if wire.name == "anthropic" else {}), **more)


# ---------------------------------------------------------------------------------------------- random histories and edits


def turn(number: int, calls: int, made: bool) -> list[BaseMessage]:
    """A turn with calls, whose server may have given them no ids, and its results."""
    ids = [f"call_{number:04d}{place}{'0' * 15}" for place in range(calls)]
    entries = [{"name": "look", "args": {"n": [number]}, "id": one, "type": "tool_call"} for one in ids]
    records = [{"id": one, "sent_id": f"sent_{number}_{place}", "arguments": f'{{"n": [{number}]}}'} for place, one in enumerate(ids)]
    about = {"response_metadata": {"autotools": {"calls": records}}} if made else {}
    results = [ToolMessage(f"result {place}", tool_call_id=one, artifact=[number]) for place, one in enumerate(ids)]
    return [AIMessage("Let me look.", tool_calls=entries, id=f"m{number}", **about), *results]


class History:
    """A history that a caller keeps, and changes as they like."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Hello")]
        self.number = 0

    def change(self, how: str, place: int) -> None:
        """Change it in this way, at about this place."""
        self.number += 1
        at = place % len(self.messages)
        getattr(self, how)(at, self.messages[at])

    def ask(self, at: int, _: BaseMessage) -> None:
        """Add a question."""
        self.messages.append(HumanMessage([{"type": "text", "text": f"Question {self.number}"}] if at % 2 else f"Question {self.number}"))

    def work(self, at: int, _: BaseMessage) -> None:
        """Add a turn with calls, and an answer or a question."""
        self.messages += turn(self.number, 1 + at % 3, made=bool(at % 2))
        if at % 4 == 0:
            self.messages += [AIMessage("Done.", id=f"a{self.number}"), HumanMessage("And now?")]

    def instruct(self, at: int, _: BaseMessage) -> None:
        """Add an instruction, and a question."""
        self.messages += [SystemMessage(f"Rule {self.number}."), HumanMessage("Go on.")]

    def edit(self, at: int, message: BaseMessage) -> None:
        """Change the text of a message in place."""
        message.content = f"Edited {self.number}."

    def edit_deep(self, at: int, message: BaseMessage) -> None:
        """Change what is deep in a message in place."""
        if isinstance(message, AIMessage) and message.tool_calls:
            message.tool_calls[0]["args"]["n"].append(self.number)
        elif isinstance(message.content, list):
            message.content[0]["text"] += "!"  # type: ignore[index]
        else:
            message.name = f"name{self.number}"

    def replace(self, at: int, message: BaseMessage) -> None:
        """Put a changed copy in a message's place."""
        self.messages[at] = message.model_copy(update={"content": f"Other {self.number}."})

    def drop(self, at: int, message: BaseMessage) -> None:
        """Remove a question; or all from a later one on."""
        if isinstance(message, HumanMessage) and at > 1:
            del self.messages[at : at + 1 if self.number % 2 else None]
            self.messages.append(HumanMessage("Again."))

    def same(self, at: int, _: BaseMessage) -> None:
        """Send it again."""


CHANGES = ("ask", "work", "work", "work", "instruct", "edit", "edit_deep", "replace", "drop", "same")


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[Wire], tuple[Any, Any]]]:
    """Servers and models by wire, each made once."""
    with ExitStack() as stack:
        made: dict[str, tuple[Any, Any]] = {}

        def of(wire: Wire) -> tuple[Any, Any]:
            if wire.name not in made:
                server = stack.enter_context(wire.serve(lambda _: Turn("Good.")))
                made[wire.name] = model_of(wire, server), server
            return made[wire.name]

        yield of


@each_wire
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 60)), min_size=1, max_size=12))
def test_a_growing_history_is_sent_as_one_that_nobody_has_seen(served: Any, wire: Wire, changes: list[tuple[str, int]]) -> None:
    """After any changes of a history its request is, byte for byte, that of a history of new and equal messages."""
    model, server = served(wire)
    history = History()
    for change in changes:
        history.change(*change)
        model.invoke(history.messages)
        known = server.exchanges[-1].body
        model.invoke(copy.deepcopy(history.messages))
        assert known == server.exchanges[-1].body
    server.exchanges.clear()


# ---------------------------------------------------------------------------------------------- edits in place


class Masking(BaseCallbackHandler):
    """Masks the card number in all requests but the first."""

    def __init__(self) -> None:
        self.requests = 0

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
        """Mask it in place."""
        self.requests += 1
        if self.requests > 1:
            mask(messages[0])


def mask(messages: list[BaseMessage]) -> None:
    """Mask the card number of the first message, which is deep in it."""
    messages[0].content[0]["text"] = "My card is masked."  # type: ignore[index]


@each_wire
@pytest.mark.parametrize("who", ["caller", "tool", "callback"])
def test_an_old_message_that_is_changed_in_place_is_sent_as_it_is_now(wire: Wire, who: str) -> None:
    """A card number that the caller, a tool or a callback masks in an old message is in no later request."""
    history: list[BaseMessage] = [HumanMessage([{"type": "text", "text": f"My card is {CARD}."}])]

    def look_up() -> str:
        """Look up."""
        if who == "tool":
            mask(history)
        return "found"

    script = [Turn("", [Call("look_up")]), Turn("Done."), Turn("", [Call("look_up")]), Turn("Done.")]
    with wire.serve(script) as server:
        model = model_of(wire, server, tools=[look_up])
        callbacks = [Masking()] if who == "callback" else []
        history += new_messages(model.invoke(history, {"callbacks": callbacks}))
        if who == "caller":
            mask(history)
        history.append(HumanMessage("Again."))
        model.invoke(history, {"callbacks": callbacks})
        with_card = [CARD.encode() in exchange.body for exchange in server.exchanges]
    assert with_card == ([True, True, False, False] if who == "caller" else [True, False, False, False])


COUNTS = {"caller": [0, 1, 1, 1], "tool": [0, 1, 2, 1], "callback": [0, 1, 1, 1]}
"""How often the number occurs in each request of a run, by who masks it."""


@pytest.mark.further
@each_wire
@pytest.mark.parametrize(("who", "way"), [*((who, "stream") for who in COUNTS), ("tool", "invoke"), ("callback", "invoke")])
def test_a_message_of_the_run_itself_that_is_changed_in_place_is_sent_as_it_is_now(wire: Wire, who: str, way: str) -> None:
    """A card number that a tool has found is in no request after the one during which somebody has masked it."""
    held: list[BaseMessage] = []

    def hide() -> None:
        for message in held:
            if isinstance(message, ToolMessage) and CARD in str(message.content):
                message.content = "The card is masked."

    def look_up(context: ToolContext) -> str:
        """Look up."""
        held[:] = context.messages if who == "tool" else held
        if who == "tool" and len(held) > 4:
            hide()
        return f"My card is {CARD}."

    class Hiding(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
            held[:] = messages[0]

        def on_llm_end(self, response: Any, **_: Any) -> None:
            hide()

    script = [Turn("", [Call("look_up")]), Turn("", [Call("look_up")]), Turn("", [Call("look_up")]), Turn("Done.")]
    with wire.serve(script) as server:
        model = model_of(wire, server, tools=[look_up], no_progress=None)
        config: Any = {"callbacks": [Hiding()] if who == "callback" else []}
        for chunk in model.stream("Go", config) if way == "stream" else [model.invoke("Go", config)]:
            if who == "caller":
                hide()  # those of the chunks before
                held += new_messages(chunk)
        assert [exchange.body.count(CARD.encode()) for exchange in server.exchanges] == COUNTS[who]


def test_a_message_that_a_request_method_changes_in_place_is_sent_as_it_is_now() -> None:
    """A subclass whose `raw_stream` masks an old message before it calls the inherited one."""

    class Masks(ChatOpenAI):
        def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[Any]:
            if len(messages) > 1:
                mask(messages)
            return super().raw_stream(messages, stop, **kwargs)

    history: list[BaseMessage] = [HumanMessage([{"type": "text", "text": f"My card is {CARD}."}])]
    with OpenAIServer([Turn("One."), Turn("Two.")]) as server:
        model = Masks(model="any", base_url=server.url, api_key="key")
        for _ in range(2):
            history += [message for chunk in model.stream(history) for message in new_messages(chunk)]
            history.append(HumanMessage("Again."))
        assert [CARD.encode() in exchange.body for exchange in server.exchanges] == [True, False]


# ---------------------------------------------------------------------------------------------- many runs, and memory


@each_wire
def test_concurrent_runs_over_one_history_send_their_own_messages(wire: Wire) -> None:
    """Threads that go on with one shared history, on one model, send what each of them would send alone."""
    shared: list[BaseMessage] = [HumanMessage("Hello"), *turn(1, 2, made=True), AIMessage("Done.", id="a"), HumanMessage("And now?")]
    numbers = count()

    def look() -> str:
        """Look."""
        return f"found-{next(numbers)}"

    def script(exchange: Exchange) -> Turn:
        return Turn("", [Call("look")], style="no_ids") if exchange.body.count(b"found-") < 3 else Turn("Done.")

    with wire.serve(script) as server:
        model = model_of(wire, server, tools=[look], no_progress=None)
        model.invoke(shared)
        with ThreadPoolExecutor(8) as pool:
            runs = [new_messages(run) for run in pool.map(model.invoke, [shared] * 16)]
        sent = Counter(wire.messages(exchange) for exchange in server.exchanges)
        alone = model_of(wire, server)
        for messages in runs:
            for end in (2, 4, 6):
                alone.invoke(copy.deepcopy([*shared, *messages[:end]]))
                assert sent[wire.messages(server.exchanges[-1])] == 1
        assert sorted(sent.values())[-1] == len(runs) + 1


def test_what_is_known_of_a_conversation_is_no_larger_than_its_body_and_goes_with_it() -> None:
    """After a conversation of large results, memory has grown by at most 1.2 times its body; without its messages by nothing."""

    def kept(conversation: list[BaseMessage]) -> tuple[int, int]:
        """The memory that is kept of a conversation after its requests, and the size of the last one's body."""
        model.invoke("Hello")
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for end in range(3, len(conversation) + 1, 2):
            model.invoke(conversation[:end])
        body = len(server.exchanges[-1].body)
        model.invoke("Hello")  # on the same connection, whose thread of the server may still hold the large body until then
        server.exchanges.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before, body

    def conversation() -> list[BaseMessage]:
        """Twenty turns with results of 25 kB."""
        messages: list[BaseMessage] = [HumanMessage("Hello")]
        for number in range(20):
            call = {"name": "look", "args": {}, "id": f"call_{number}", "type": "tool_call"}
            messages += [AIMessage("", tool_calls=[call]), ToolMessage("x" * 25_000, tool_call_id=f"call_{number}")]
        return messages

    with OpenAIServer(lambda _: Turn("Good.")) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        model.invoke(conversation())
        tracemalloc.start()
        try:
            kept(conversation())  # what is kept once, whatever is sent
            conversations = [conversation() for _ in range(3)]
            # The smallest of three: a thread of the server that is about to read has 64 kB more, for a moment.
            grown, body = min(kept(messages) for messages in conversations)
            assert 0.9 * body < grown < 1.2 * body
            before, _ = tracemalloc.get_traced_memory()
            conversations.clear()
            gc.collect()
            assert before - tracemalloc.get_traced_memory()[0] > 3 * 1.9 * body  # the messages themselves, and what was known of them
        finally:
            tracemalloc.stop()
