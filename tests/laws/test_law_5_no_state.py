"""Law 5, no run state on the model: any number of runs share one, in threads and in tasks, and the caller's list is his own."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_autotools import new_messages
from tests.laws.checks import check_told
from tests.laws.stories import Said, Script, run_text, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, chat, law, run, serving, summed, waited
from tests.laws.workshop import Workshop
from tests.support.http_server import Exchange
from tests.support.script import Call, Reply, Turn


class Tellers:
    """Plays one story for each question; what has been said is counted in the request, so runs may mix as they like."""

    def __init__(self, tales: list[list[Said]]) -> None:
        self.replies = [said for tale in tales for said in tale]
        self._tales = tales

    def __call__(self, exchange: Exchange) -> Reply:
        """The next reply of the story that the question names."""
        messages = exchange.json["messages"]
        number = int(next(message["content"] for message in messages if message["role"] == "user").split()[-1])
        said = sum(message["role"] == "assistant" for message in messages)
        return self._tales[number][said].reply(exchange)


def question(number: int) -> HumanMessage:
    """What makes the model tell a story."""
    return HumanMessage(f"story {number}")


@law(3, 100)
def test_law_5_concurrent_runs_do_not_mix(data: st.DataObject) -> None:
    """Random conversations at once on one model, each in its own way: each gives its own messages and text."""
    tales = data.draw(st.lists(stories(), min_size=8, max_size=8))
    ways = data.draw(st.lists(st.sampled_from(WAYS), min_size=8, max_size=8))
    heard = data.draw(st.lists(st.sampled_from(sorted(LISTENERS)), min_size=8, max_size=8))
    with serving(Tellers(tales)) as server:
        model = chat(server, tools=Workshop().tools())
        run("invoke", model, [question(0)])  # core describes a model to its handlers once
        before = {**model.__dict__}
        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(lambda n: run(ways[n], model, [question(n)], listeners=heard[n]), range(8)))
        assert model.__dict__ == before
    for ran, tale in zip(runs, tales, strict=True):
        assert ran.error is None, ran.error
        check_told(ran.new, tale)
        assert ran.message.text == run_text(tale)


def one_of_many(exchange: Exchange) -> Turn:
    """Three calls with the number of the question in them, then their results in words."""
    messages = exchange.json["messages"]
    number = messages[0]["content"]
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        return Turn(f"Asked {number}.", [Call("meet", {"number": f"{number}.{part}"}) for part in range(3)], style="no_ids")
    return Turn(" ".join(results), characters=3)


def belongs(number: int) -> str:
    """The text of a run over `one_of_many`."""
    return f"Asked {number}.\n" + " ".join(f"<{number}.{part}>" for part in range(3))


@pytest.mark.parametrize("runs", [30, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_law_5_many_runs_in_threads_and_in_tasks(runs: int) -> None:
    """Many runs at once, in threads and then in tasks, each get what belongs to them."""

    def meet(number: str) -> str:
        """Meet."""
        return f"<{number}>"

    with serving(one_of_many) as server:
        model = chat(server, tools=[meet])

        def in_thread(number: int) -> str:
            return str(summed(list(model.stream(str(number)))).text)

        async def in_task(number: int) -> str:
            return str(summed([chunk async for chunk in model.astream(str(number))]).text)

        async def in_tasks() -> list[str]:
            return await asyncio.gather(*map(in_task, range(runs)))

        with ThreadPoolExecutor(runs) as pool:
            assert list(pool.map(in_thread, range(runs))) == list(map(belongs, range(runs)))
        assert waited(in_tasks()) == list(map(belongs, range(runs)))


@law(4)
def test_law_5_the_callers_list_is_copied(data: st.DataObject) -> None:
    """A caller may append to, empty or spoil the list that he gave while it is streamed; the requests do not notice."""
    story = data.draw(stories(least=1))
    deed = data.draw(st.sampled_from(["append", "clear", "spoil"]))
    way = data.draw(st.sampled_from(["stream", "astream"]))
    with serving(Tellers([story])) as server:
        model = chat(server, tools=Workshop().tools())
        bodies = []
        for changes in (False, True):
            server.exchanges.clear()
            history: list[Any] = [question(0)]

            def take(chunk: Any, history: list[Any] = history, changes: bool = changes) -> None:
                if changes and deed == "append":
                    history.extend(new_messages(chunk))
                elif changes:
                    history[:] = [] if deed == "clear" else [None, "nonsense", 3]

            async def collect(history: list[Any] = history, take: Any = take) -> None:
                async for chunk in model.astream(history):
                    take(chunk)

            if way == "astream":
                waited(collect())
            else:
                for chunk in model.stream(history):
                    take(chunk)
            bodies.append([exchange.body for exchange in server.exchanges])
        assert bodies[0] == bodies[1]


def test_law_5_parallel_tools_meet_whoever_listens() -> None:
    """Three calls of one turn, synchronous and asynchronous, are at one place at the same time, in every way."""
    barrier = threading.Barrier(3, timeout=20)

    def meet(number: int) -> str:
        """Meet in a thread."""
        barrier.wait()
        return f"met {number}"

    async def ameet(number: int) -> str:
        """Meet from an event loop."""
        await asyncio.to_thread(barrier.wait)
        return f"met {number}"

    calls = [Call("meet", {"number": 1}), Call("ameet", {"number": 2}), Call("meet", {"number": 3})]
    for way in WAYS:
        for listeners in ("nobody", "all"):
            with serving(Script([Turn(calls=calls), Turn("Done.")])) as server:
                ran = run(way, chat(server, tools=[meet, ameet]), [QUESTION], listeners=listeners)
                assert ran.error is None, ran.error
                assert [message.text for message in ran.new] == ["", "met 1", "met 2", "met 3", "Done."]
