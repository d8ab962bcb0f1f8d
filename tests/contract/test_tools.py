"""What a run does with the calls of a model: each is answered once, in order, and the answer follows; over every wire, in every way."""

import json
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.contract.talk import Run, Start, run_in
from tests.support.script import Call, Turn

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
QUESTION = [HumanMessage("How warm is it in Paris and in Rome?")]


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


@tool
def tell_time() -> str:
    """Tell the time."""
    return "12:00"


@tool
def break_down(city: str) -> str:
    """Fail always."""
    raise ValueError(f"no such city: {city}")


def kinds(messages: list[Any]) -> list[str]:
    """The types of messages."""
    return [message.type for message in messages]


def describe(city: str, **options: str) -> str:
    """Describe a city."""
    return f"{city} {options}"


async def test_any_further_names_are_not_declared(start: Start, run: Run) -> None:
    """A function's `**options` are no parameter of that name: given as a function or as a tool, run or only declared."""
    for given in (describe, tool(describe)):
        talk = start([Turn("Let me look.", [Call("describe", {"city": "Paris"})]), Turn("It is large."), Turn("Hello.")], tools=[given])
        await run(talk.model, QUESTION)
        await run(talk.model.bind_tools([given]), QUESTION)
        assert all("city" in str(exchange.json["tools"]) for exchange in talk.server.exchanges)
        assert not [exchange for exchange in talk.server.exchanges if "options" in str(exchange.json["tools"])]


async def test_a_simple_tool(start: Start, run: Run) -> None:
    """One call runs, its result goes back under its id, and the texts of both turns are the answer."""
    talk = start([Turn("Let me look.", [Call("get_temperature", {"city": "Paris"})]), Turn("21 °C.")], tools=[get_temperature])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Let me look.\n21 °C."
    assert (type(ran.message), ran.message.tool_calls, ran.message.invalid_tool_calls) == (AIMessage, [], [])
    assert kinds(ran.new) == ["ai", "tool", "ai"]
    asked, result, answer = ran.new
    assert [(call["name"], call["args"]) for call in asked.tool_calls] == [("get_temperature", {"city": "Paris"})]
    assert (result.tool_call_id, result.content, result.status) == (asked.tool_calls[0]["id"], "Paris: 21 °C", "success")
    assert (asked.text, answer.text) == ("Let me look.", "21 °C.")
    assert talk.results() == [(asked.tool_calls[0]["id"], "Paris: 21 °C")]
    assert (talk.server.left, len(talk.server.exchanges)) == (0, 2)


async def test_usage_is_the_last_turns_and_the_runs_total_is_told(start: Start, run: Run) -> None:
    """The run message's usage is the size of the last context; `run_usage` counts every turn once."""
    from langchain_autotools import run_usage

    talk = start([Turn(calls=[Call("tell_time")], usage=(10, 5)), Turn("Noon.", usage=(20, 2))], tools=[tell_time])
    ran = await run(talk.model, QUESTION)
    assert ran.message.usage_metadata is not None
    assert (ran.message.usage_metadata["input_tokens"], ran.message.usage_metadata["output_tokens"]) == (20, 2)
    total = run_usage(ran.message)
    assert (total["input_tokens"], total["output_tokens"], total["total_tokens"]) == (30, 7, 37)


async def test_parallel_tools_run_at_once_and_answer_in_order(start: Start, run: Run) -> None:
    """Three calls of one turn meet at a barrier; the last to be asked finishes first; the results keep the order of the calls."""
    barrier = threading.Barrier(3, timeout=20)
    finished = {3: threading.Event(), 2: threading.Event(), 1: threading.Event()}

    @tool
    def work(number: int) -> str:
        """Meet the others, then finish after the next one."""
        barrier.wait()
        if number < 3:
            assert finished[number + 1].wait(20)
        finished[number].set()
        return f"done {number}"

    talk = start([Turn(calls=[Call("work", {"number": number}) for number in (1, 2, 3)]), Turn("All done.")], tools=[work])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "All done."
    assert talk.texts() == ["done 1", "done 2", "done 3"]
    assert [message.content for message in ran.new if isinstance(message, ToolMessage)] == ["done 1", "done 2", "done 3"]


async def test_asynchronous_tools_run_at_once_too(start: Start, run: Run) -> None:
    """Tools that are coroutines only work in synchronous runs as well, side by side."""
    import asyncio

    met = asyncio.Barrier(3)

    async def work(number: int) -> str:
        """Meet the others."""
        async with asyncio.timeout(20):
            await met.wait()
        return f"done {number}"

    talk = start([Turn(calls=[Call("work", {"number": number}) for number in (1, 2, 3)]), Turn("All done.")], tools=[work])
    await run(talk.model, QUESTION)
    assert talk.texts() == ["done 1", "done 2", "done 3"]


async def test_sequential_tools(start: Start, run: Run) -> None:
    """Calls of later turns see the results of earlier ones; each request holds all before it."""
    script = [
        Turn(calls=[Call("get_temperature", {"city": "Paris"})]),
        Turn("Now the time.", [Call("tell_time")]),
        Turn("21 °C at 12:00."),
    ]
    talk = start(script, tools=[get_temperature, tell_time])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Now the time.\n21 °C at 12:00."
    assert kinds(ran.new) == ["ai", "tool", "ai", "tool", "ai"]
    assert (talk.texts(1), talk.texts(2)) == (["Paris: 21 °C"], ["12:00"])
    first, second, third = (talk.wire.messages(exchange)[:-1] for exchange in talk.server.exchanges)
    assert second.startswith(first) and third.startswith(second)


async def test_a_failing_tool_is_answered_with_its_error(start: Start, run: Run) -> None:
    """An exception becomes the result that the model reads; the other call of the turn is not touched."""
    calls = [Call("break_down", {"city": "Atlantis"}), Call("tell_time")]
    talk = start([Turn(calls=calls), Turn("Sorry.")], tools=[break_down, tell_time])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Sorry."
    failed, fine = (message for message in ran.new if isinstance(message, ToolMessage))
    assert (failed.status, fine.status) == ("error", "success")
    assert "no such city: Atlantis" in json.loads(failed.text)["error"]
    assert "no such city: Atlantis" in talk.texts()[0]
    assert talk.texts()[1] == "12:00"


async def test_an_unknown_tool_is_answered_with_the_names_there_are(start: Start, run: Run) -> None:
    """A call of a tool that does not exist runs nothing and tells the model what exists (wire quirk N-04)."""
    talk = start([Turn(calls=[Call("get_weather", {"city": "Paris"})]), Turn("Sorry.")], tools=[get_temperature, tell_time])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Sorry."
    assert "get_temperature" in talk.texts()[0] and "tell_time" in talk.texts()[0]
    assert ran.new[1].status == "error"


@pytest.mark.parametrize("args", [{}, {"city": ["Paris"]}, {"town": "Paris"}], ids=["missing", "wrong type", "unknown"])
async def test_arguments_that_do_not_fit_are_answered(start: Start, run: Run, args: dict[str, Any]) -> None:
    """Arguments that the tool's schema refuses run nothing and name the field."""
    talk = start([Turn(calls=[Call("get_temperature", args)]), Turn("Sorry.")], tools=[get_temperature])
    ran = await run(talk.model, QUESTION)
    assert ran.new[1].status == "error"
    assert "city" in talk.texts()[0]


CUT_OFF = '{"city": "Par'


@pytest.mark.parametrize(
    ("raw", "finish"),
    [(CUT_OFF, "length"), (CUT_OFF, "tool_calls"), ('{"city": "Paris"}', "length"), ('{"city": "Paris"}', "content_filter"), ("[1]", None)],
    ids=["cut by the limit", "cut though finished", "whole but the turn was cut", "filtered", "no object"],
)
async def test_a_truncated_call_never_runs(start: Start, run: Run, raw: str, finish: str | None) -> None:
    """What is not one whole object of a turn that ended normally does not run; the model is told, and the next request is accepted."""
    ran_with: list[str] = []

    @tool
    def get_temperature(city: str) -> str:
        """Current temperature of a city."""
        ran_with.append(city)
        return "21 °C"

    talk = start([Turn("Looking.", [Call("get_temperature", raw)], finish=finish), Turn("Sorry.")], tools=[get_temperature])
    ran = await run(talk.model, QUESTION)
    assert ran_with == []
    assert (ran.message.tool_calls, ran.message.text.split("\n")[0]) == ([], "Looking.")
    following = await run(start([Turn("Fine.")], tools=[get_temperature]).model, [*QUESTION, *ran.new, HumanMessage("Go on.")])
    assert following.message.text == "Fine."


@pytest.mark.parametrize("raw", ["", "{}", "null"])
async def test_a_tool_without_arguments(start: Start, run: Run, raw: str) -> None:
    """However a server writes "no arguments", the tool runs."""
    talk = start([Turn(calls=[Call("tell_time", raw)]), Turn("Noon.")], tools=[tell_time])
    ran = await run(talk.model, QUESTION)
    assert (ran.message.text, talk.texts()) == ("Noon.", ["12:00"])
    assert ran.new[0].tool_calls[0]["args"] == {}


async def test_a_tool_that_returns_an_image(start: Start, run: Run) -> None:
    """An image in a result reaches the model in a form that the server accepts; the stored result keeps its blocks."""

    @tool
    def take_picture() -> list[dict[str, Any]]:
        """Take a picture."""
        return [{"type": "text", "text": "One pixel."}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]

    talk = start([Turn(calls=[Call("take_picture"), Call("tell_time")]), Turn("A pixel.")], tools=[take_picture, tell_time])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "A pixel."
    assert "One pixel." in talk.texts()[0] if talk.texts() else True
    assert PIXEL in talk.server.exchanges[1].body.decode()
    assert [block["type"] for block in ran.new[1].content] == ["text", "image"]


async def test_no_tools_no_change(start: Start, run: Run) -> None:
    """A model without tools of its own declares what is bound and returns the calls, executing nothing."""
    talk = start([Turn(calls=[Call("get_temperature", {"city": "Paris"})])])
    ran = await run(talk.model.bind_tools([get_temperature]), QUESTION)
    assert [(call["name"], call["args"]) for call in ran.message.tool_calls] == [("get_temperature", {"city": "Paris"})]
    assert kinds(ran.new) == ["ai"]
    assert len(talk.server.exchanges) == 1


async def test_a_bound_tool_is_left_to_the_caller(start: Start, run: Run) -> None:
    """In one turn the model's own tool runs and the bound one is the caller's: the run ends with that call pending."""
    calls = [Call("tell_time"), Call("get_temperature", {"city": "Rome"})]
    talk = start([Turn(calls=calls), Turn("Done.")], tools=[tell_time])
    bound = talk.model.bind_tools([get_temperature])
    ran = await run(bound, QUESTION)
    assert [(call["name"], call["args"]) for call in ran.message.tool_calls] == [("get_temperature", {"city": "Rome"})]
    assert [message.content for message in ran.new if isinstance(message, ToolMessage)] == ["12:00"]
    [pending] = ran.message.tool_calls
    answered = [*QUESTION, *ran.new, get_temperature.invoke({**pending, "type": "tool_call"})]
    assert (await run(bound, answered)).message.text == "Done."
    assert talk.texts() == ["12:00", "Rome: 21 °C"]


@pytest.mark.parametrize("choice", ["any", "tell_time", True])
async def test_the_choice_of_one_call_is_said_in_the_words_of_its_wire(start: Start, choice: Any) -> None:
    """A word, a name or True beside the messages asks for a call as it would in `bind_tools`, on the first turn only."""
    talk = start([Turn(calls=[Call("tell_time")]), Turn("Noon.")], tools=[tell_time])
    assert (await run_in("stream", talk.model, QUESTION, tool_choice=choice)).message.text == "Noon."
    bound = start([Turn("Noon.")]).model.bind_tools([tell_time], tool_choice=choice)
    assert (await run_in("ainvoke", bound, QUESTION)).message.text == "Noon."


async def test_the_tools_of_one_call_may_be_functions(start: Start) -> None:
    """Tools beside the messages are declared, in whatever form they come, and their calls left to the caller."""
    talk = start([Turn(calls=[Call("get_temperature", {"city": "Rome"})])])
    ran = await run_in("astream", talk.model, QUESTION, tools=[get_temperature, tell_time], tool_choice="auto")
    assert [(call["name"], call["args"]) for call in ran.message.tool_calls] == [("get_temperature", {"city": "Rome"})]


async def test_a_function_without_a_docstring_is_declared(start: Start) -> None:
    """What a function does may be told by its name alone."""

    def double(number: int) -> int:
        return 2 * number

    talk = start([Turn(calls=[Call("double", {"number": 2})])])
    message = await talk.model.bind_tools([double]).ainvoke(QUESTION)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("double", {"number": 2})]
    assert '"number"' in json.dumps(talk.server.exchanges[0].json)
