"""Law 7, same bytes: the same history is the same request, and each request begins with the one before."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk, HumanMessage, message_chunk_to_message, messages_from_dict, messages_to_dict

from langchain_autotools import new_messages, repair
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import raw_value
from tests.laws.stories import Planned, Said, Script, replies, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, chat, law, run, serving, summed
from tests.laws.workshop import Workshop
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call

listeners = st.sampled_from(sorted(LISTENERS))
ways = st.sampled_from(WAYS)


def sent(server: OpenAIServer) -> list[bytes]:
    """The bytes of the messages of each request."""
    return [raw_value(exchange.body, "messages") for exchange in server.exchanges]


def check_grows(requests: Sequence[bytes]) -> None:
    """The messages of request n are, byte for byte, what those of request n+1 begin with."""
    for earlier, later in pairwise(requests):
        assert later.startswith(earlier[:-1] + b","), (earlier, later)


@law(4, 100)
def test_law_7_ten_turns_begin_with_the_one_before(data: st.DataObject) -> None:
    """Over a run of ten turns, and over the run that follows it, every request begins with the one before."""
    story = [*data.draw(st.lists(replies(calls=3), min_size=9, max_size=9)), Said("Done.")]
    with serving(Script(story)) as server:
        model = chat(server, tools=Workshop().tools(), output_version=data.draw(st.sampled_from([None, "v1"])))
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None, ran.error
        run(data.draw(ways), model, [QUESTION, *ran.new, HumanMessage("And now?")], listeners=data.draw(listeners))
        assert len(server.exchanges) == 11
        check_grows(sent(server))


@law(3, 40)
def test_law_7_ten_repetitions_send_the_same(data: st.DataObject) -> None:
    """Tools that take other times each time, other listeners, other ways: ten repetitions make identical requests."""
    story = data.draw(stories(turns=4, least=2, calls=4))
    chance = random.Random(data.draw(st.integers(0, 99)))
    with serving(Script(story)) as server:
        bodies = set()
        for repetition in range(10):
            server.exchanges.clear()
            way, heard = WAYS[1 + 2 * (repetition % 2)], chance.choice(sorted(LISTENERS))
            ran = run(way, chat(server, tools=Workshop(chance).tools()), [QUESTION], listeners=heard)
            assert ran.error is None, ran.error
            bodies.add(tuple(exchange.body for exchange in server.exchanges))
    assert len(bodies) == 1


@law(5)
def test_law_7_the_run_message_and_its_parts_are_one_history(data: st.DataObject) -> None:
    """Stored as the run message, as the sum of chunks, as its parts, or as JSON of these: the next request is the same, byte for byte."""
    identity = data.draw(st.sampled_from(["own", "none", "same"]))
    story = [replace(said, identity=identity) for said in data.draw(stories(least=1))]
    with serving(Script(story)) as server:
        model = chat(server, tools=Workshop().tools(), output_version=data.draw(st.sampled_from([None, "v1"])))
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None, ran.error
        first = sent(server)
        stored: list[list[Any]] = [[ran.message], list(ran.new), [summed(ran.chunks)] if ran.chunks else []]
        stored = [kept for kept in stored if kept] + [messages_from_dict(messages_to_dict(kept)) for kept in stored[:2]]
        bodies = []
        for kept in stored:
            server.exchanges.clear()
            again = run(data.draw(ways), model, [QUESTION, *kept, HumanMessage("Go on.")])
            assert again.error is None, again.error
            bodies.append(sent(server)[0])
        assert bodies[1:] == bodies[:1] * (len(bodies) - 1)
        check_grows([*first, bodies[0]])


@law(6)
def test_law_7_a_run_that_took_a_message_and_its_parts_are_one_history(data: st.DataObject) -> None:
    """A resumed run with `message=`: its requests grow, and however it is stored the next request is the same, byte for byte."""
    identity = data.draw(st.sampled_from(["own", "none", "same"]))
    asking = data.draw(replies().filter(lambda said: said.stops is None))
    story = [replace(said, identity=identity) for said in [asking, *data.draw(stories(least=1))]]
    said = data.draw(st.sampled_from(["And now?", HumanMessage("And now?"), HumanMessage("And now?", id="said")]))
    version = data.draw(st.sampled_from([None, "v1"]))
    with serving(Script(story)) as server:
        shop = Workshop()
        first = chat(server, output_version=version).bind_tools(shop.tools()).invoke([QUESTION])
        assume(first.tool_calls)
        model, history = chat(server, tools=shop.tools(), output_version=version), [QUESTION, *new_messages(first)]
        decisions = {call["id"]: True for call in first.tool_calls}
        ran = run(data.draw(ways), model, history, listeners=data.draw(listeners), resume=decisions, message=said)
        assert ran.error is None and ran.message is not None, ran.error
        assert [one.text for one in ran.new if one.type == "human"] == ["And now?"]
        requests = sent(server)[1:]
        whole = [ran.message, *([summed(ran.chunks)] if ran.chunks else [])]
        stored: list[list[Any]] = [ran.new, *([one] for one in whole), [*ran.new, ran.message], [*ran.new[:-1], ran.message]]
        stored += [messages_from_dict(messages_to_dict(kept)) for kept in stored]
        bodies = []
        for kept in stored:
            server.exchanges.clear()
            again = run(data.draw(ways), model, [*history, *kept, HumanMessage("Go on.")])
            assert again.error is None, again.error
            bodies.append(sent(server)[0])
        assert bodies[1:] == bodies[:1] * (len(bodies) - 1)
        check_grows([*requests, bodies[0]])


def test_law_7_a_server_that_gives_every_reply_one_id_loses_no_turn() -> None:
    """Two runs whose replies all have the same id are, as run messages and as parts, one history with every message in it."""
    call = Planned(Call("echo", {"text": "a"}), {"text": "a"}, True, "heard a")
    story = [Said("Look.", [call], identity="same"), Said("Again.", [call], identity="same"), Said("Done.", identity="same")]
    with serving(Script([*story, *story])) as server:
        model = chat(server, tools=Workshop().tools())
        first = run("stream", model, [QUESTION])
        second = run("invoke", model, [QUESTION, first.message, QUESTION])
        for kept in (
            [first.message, QUESTION, second.message],
            [*first.new, QUESTION, *second.new],
            [*first.new, QUESTION, second.message],
        ):
            server.exchanges.clear()
            run("invoke", model, [QUESTION, *kept, QUESTION])
            run_roles = ["assistant", "tool", "assistant", "tool", "assistant"]
            assert [message["role"] for message in server.messages[0]] == ["user", *run_roles, "user", *run_roles, "user"]


@law(4)
def test_law_7_arguments_go_back_as_they_were_written(data: st.DataObject) -> None:
    """The text of arguments that the model wrote, blanks and escapes included, is what the next request holds."""
    said: Said = replace(
        data.draw(replies()), style=data.draw(st.sampled_from(["standard", "whole", "one_based", "id_repeated", "no_ids"]))
    )
    with serving(Script([said])) as server:
        ran = run(data.draw(ways), chat(server, tools=Workshop().tools()), [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None, ran.error
        back = [call["function"]["arguments"] for call in server.messages[1][1]["tool_calls"]]
    for written, planned in zip(back, said.calls, strict=True):
        assert written == (planned.call.raw if planned.args is not None and planned.call.raw not in ("", "null") else "{}")


@st.composite
def interrupted(draw: st.DrawFn) -> list[list[AIMessageChunk]]:
    """The replies of a run: some are interrupted, some call a tool, the last is an answer; their texts have citations and numbers."""
    kinds = [*draw(st.lists(st.sampled_from(["pause", "call", "pause with call"]), max_size=4)), "answer"]
    plain, replies = draw(st.booleans()), []
    for number, kind in enumerate(kinds):
        said = draw(st.text(st.sampled_from("xyz \n"), max_size=4))
        block = {"type": "text", "text": said, "citations": [{"url": "http://x"}], "index": number}
        content: Any = said if plain else [block] if said else []
        ended = {"finish_reason": "pause_turn" if kind.startswith("pause") else "stop", "turn": number}
        piece = {"index": 0, "id": f"call_{number}", "function": {"name": "echo", "arguments": '{"text":"a"}'}}
        extra = {"tool_calls": [piece]} if "call" in kind else {}
        replies.append([AIMessageChunk(content, id=f"m{number}"), AIMessageChunk("", additional_kwargs=extra, response_metadata=ended)])
    return replies


@law(8)
def test_law_7_a_run_with_interrupted_turns_and_its_parts_are_one_history(data: st.DataObject) -> None:
    """Turns that the server interrupts are joined without a separator, and no text is taken for edited: citations and numbers stay."""
    separator = data.draw(st.sampled_from(["\n", "", " -- "]))
    model = ScriptedChatModel(tools=Workshop().tools(), replies=data.draw(interrupted()), message_separator=separator, no_progress=None)
    chunks = [model.invoke([QUESTION])] if data.draw(st.booleans()) else list(model.stream([QUESTION]))
    whole: Any = message_chunk_to_message(reduce(add, chunks))
    parts = new_messages(whole)
    assert repair([QUESTION, whole]) == repair([QUESTION, *parts]) == [QUESTION, *parts]
