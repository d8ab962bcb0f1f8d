"""`ToolPolicy` in whole runs over loopback HTTP: four ways, fields and keywords, the scope of a cache, and runs without any policy."""

import pickle
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.tracers.context import collect_runs

from langchain_autotools import (
    ChatOpenAI,
    ConfigurationError,
    RetryPolicy,
    ToolCallResult,
    ToolExecutor,
    ToolPolicy,
    new_messages,
    pending_calls,
)
from langchain_autotools.executor import batch as wrapping
from langchain_autotools.executor import policies, results
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import WAYS, run_in
from tests.support.entered import entered
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

QUESTION = HumanMessage("How warm is it in Paris?")
PARIS = {"city": "Paris"}
AT_ONCE = RetryPolicy(attempts=3, wait_scale=0)


class Station:
    """Tools that fail some times, count their runs, say much, and note who runs beside whom."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.runs: Counter[str] = Counter()
        self.running = self.most = 0
        self._lock = threading.Lock()

    def measure(self, city: str) -> str:
        """Measure in a thread."""
        with self._lock:
            self.runs[city] += 1
            self.running += 1
            self.most = max(self.most, self.running)
            failing, self.failures = self.failures > 0, self.failures - 1
        time.sleep(0.002)
        with self._lock:
            self.running -= 1
        if failing:
            raise ConnectionError("the station does not answer")
        return f"{city}: " + "x" * 1000

    async def ameasure(self, city: str) -> str:
        """Measure on an event loop."""
        return self.measure(city)


def script() -> list[Turn]:
    """Two turns that make the same two calls, and an answer; all of it three times."""
    first = [Call("measure", PARIS, id="call_1"), Call("ameasure", PARIS, id="call_2")]
    second = [Call("measure", PARIS, id="call_3"), Call("measure", PARIS, id="call_4")]
    return [Turn("Let me look.", first), Turn("", second), Turn("Warm.")] * 3


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A server with that script."""
    with OpenAIServer(script()) as running:
        yield running


def chat(server: OpenAIServer, station: Station, **more: Any) -> Any:
    """A model of that server with the station's tools."""
    return ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[station.measure, station.ameasure], **more)


def results_of(messages: list[BaseMessage]) -> list[ToolMessage]:
    """The results among new messages."""
    return [message for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("way", WAYS)
async def test_a_run_with_policies(way: str, server: OpenAIServer) -> None:
    """Calls are tried again, those that are the same run once in all turns, the model reads the heads and tails, the program all."""
    station, told = Station(failures=2), []
    policy = ToolPolicy(retry=AT_ONCE, retry_on=(ConnectionError,), cache=True, max_output=300)
    model = chat(server, station, default_policy=policy, on_executed=told.append, parallel=False)
    with collect_runs() as traced:
        ran = await run_in(way, model, [QUESTION])
    whole = "Paris: " + "x" * 1000
    results = results_of(ran.new)
    assert [message.tool_call_id for message in results] == ["call_1", "call_2", "call_3", "call_4"]
    assert [len(message.text) for message in results] == [300] * 4 and len({message.text for message in results}) == 1
    assert [message.artifact for message in results] == [whole] * 4
    assert [(one.attempts, one.executed) for one in told] == [(3, True), (1, True), (0, False), (0, False)]
    assert {one.full_content for one in told} == {whole}
    assert station.runs == {"Paris": 4}
    sent = [[body["content"] for body in exchange.json["messages"] if body["role"] == "tool"] for exchange in server.exchanges]
    assert sent == [[], [results[0].text] * 2, [results[0].text] * 4] and server.rejections == []
    assert len({message.id for message in results}) == 4
    runs = [child.name for run in traced.traced_runs for child in run.child_runs if child.run_type == "tool"]
    assert runs == ["measure", "measure", "measure", "ameasure"]


@pytest.mark.parametrize("way", WAYS)
async def test_exclusive_tools_run_beside_nothing(way: str, server: OpenAIServer) -> None:
    """Also where one of a turn's calls is a coroutine's and the other a thread's; the other tools are as free as ever."""
    meeting: list[str] = []

    class Meeting(Station):
        async def ameasure(self, city: str) -> str:
            """Measure alone."""
            meeting.append("in")
            assert self.running == 0
            meeting.append("out")
            return city

    station = Meeting()
    model = chat(server, station, policies={"ameasure": ToolPolicy(exclusive=True)})
    ran = await run_in(way, model, [QUESTION])
    assert (meeting, [message.status for message in results_of(ran.new)]) == (["in", "out"], ["success"] * 4)


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_kept_is_kept_for_one_run_or_in_the_policys_mapping(way: str, server: OpenAIServer) -> None:
    """A second run makes the call again, unless the mapping has its result; no model keeps anything."""
    station = Station()
    model = chat(server, station, default_policy=ToolPolicy(cache=True))
    before = pickle.dumps({name: getattr(model, name) for name in ("default_policy", "policies")})
    for runs in (2, 4):
        await run_in(way, model, [QUESTION])
        assert station.runs["Paris"] == runs
    assert pickle.dumps({name: getattr(model, name) for name in ("default_policy", "policies")}) == before
    kept: dict[str, Any] = {"measure:x": "of another program"}
    await run_in(way, model, [QUESTION], default_policy=ToolPolicy(cache=kept))
    assert station.runs["Paris"] == 6 and len(kept) == 3


async def test_the_words_of_a_call_go_first_field_by_field(server: OpenAIServer) -> None:
    """Then those of the executor, then the model's."""
    station = Station(failures=1)
    executor = ToolExecutor(
        [station.measure, station.ameasure], policies={"measure": ToolPolicy(max_output=400, retry=AT_ONCE, retry_on=())}
    )
    model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=executor, policies={"ameasure": ToolPolicy(max_output=500)})
    told: list[ToolCallResult] = []
    retrying = ToolPolicy(retry=AT_ONCE, retry_on=(ConnectionError,))
    words: dict[str, Any] = {"policies": {"measure": retrying}, "default_policy": ToolPolicy(timeout=7), "parallel": False}
    model.invoke([QUESTION], on_executed=told.append, **words)
    assert {one.call.id: len(one.message.text) for one in told} == {"call_1": 400, "call_2": 500, "call_3": 400, "call_4": 400}
    assert [one.attempts for one in told] == [2, 1, 1, 1]


async def test_policies_can_be_bound(server: OpenAIServer) -> None:
    """To a model, as every setting of a run; one that cannot work is refused there, and a name that is nearly right, too."""
    station = Station()
    model = chat(server, station)
    ran = await run_in("invoke", model.bind(default_policy=ToolPolicy(max_output=200)), [QUESTION])
    assert {len(message.text) for message in results_of(ran.new)} == {200}
    with pytest.raises(ConfigurationError, match="default_policy must be a ToolPolicy"):
        model.bind(default_policy=5)
    with pytest.raises(ConfigurationError, match="did you mean 'policies'"):
        model.invoke([QUESTION], polices={})


def test_the_whole_of_a_shortened_result_survives_storage(server: OpenAIServer) -> None:
    """As JSON, with the rest of the run's messages."""
    run = chat(server, Station(), default_policy=ToolPolicy(max_output=300)).invoke([QUESTION])
    stored = messages_from_dict(messages_to_dict([run]))
    assert [message.artifact for message in results_of(new_messages(stored[0]))] == ["Paris: " + "x" * 1000] * 4


def test_a_resumed_call_has_its_policy() -> None:
    """A call that the input ends in, with other arguments than it was made with: the result says what it ran with, and how often."""
    station, told = Station(failures=1), []
    asks = {"name": "measure", "args": PARIS, "id": "call_1"}
    model = ScriptedChatModel(
        replies=["Warm."],
        tools=[station.measure],
        policies={"measure": ToolPolicy(retry=AT_ONCE, retry_on=(ConnectionError,), cache=True, max_output=300)},
        on_executed=told.append,
    )
    history: list[BaseMessage] = [QUESTION, AIMessage("", tool_calls=[asks])]
    run = model.resume(history, {"call_1": {"city": "Rome"}})
    assert (told[0].attempts, station.runs) == (2, {"Rome": 2})
    assert "Rome" in results_of(new_messages(run))[0].text


def test_an_edited_call_that_is_known_already_says_what_ran() -> None:
    """Its result is that of a call with the arguments it was changed to: it is not said that nothing ran."""
    station = Station()
    kept: dict[str, Any] = {}
    model = ScriptedChatModel(
        replies=[AIMessage("", tool_calls=[{"name": "measure", "args": PARIS, "id": "call_1"}]), "Warm."] * 2,
        tools=[station.measure],
        policies={"measure": ToolPolicy(cache=kept)},
        approve=lambda waiting: waiting.edit({"city": "Rome"}),
    )
    for _ in range(2):
        (result,) = results_of(new_messages(model.invoke([QUESTION])))
        assert 'changed before it ran. It ran with: {"city": "Rome"}' in result.text
    assert station.runs == {"Rome": 1}


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_calls_that_wait_for_approval_have_their_policies_when_they_run(asynchronous: bool) -> None:
    """Those that stay pending run nothing; among those that run an exclusive one is alone, and a failing one is tried again."""
    station, told = Station(failures=1), []
    calls = [{"name": "measure", "args": {"city": city}, "id": city} for city in ("Oslo", "Paris", "Rome")]
    model = ScriptedChatModel(
        replies=[AIMessage("", tool_calls=calls)],
        tools=[station.measure],
        policies={"measure": ToolPolicy(exclusive=True, retry=AT_ONCE, retry_on=(ConnectionError,), max_output=300)},
        approve=lambda waiting: None if waiting.args["city"] == "Oslo" else waiting.approve(),
        on_executed=told.append,
    )
    run = await model.ainvoke([QUESTION]) if asynchronous else model.invoke([QUESTION])
    assert [call.id for call in pending_calls(run)] == ["Oslo"]
    assert (station.most, station.runs["Oslo"]) == (1, 0)
    assert [(one.call.id, one.attempts, len(one.message.text)) for one in told] == [("Paris", 2, 300), ("Rome", 1, 300)]


def test_a_run_without_policies_enters_none_of_this(server: OpenAIServer) -> None:
    """Nothing of policies is called once the model is made, nor for tools that have no policy of their own."""
    files = {module.__file__ for module in (policies, policies)}
    names = {(wrapping.__file__, name) for name in ("apply_policies", "policy_steps", "_tries")} | {(results.__file__, "shortened")}
    model = chat(server, Station(), parallel=False)
    with entered() as functions:
        assert model.invoke([QUESTION]).text == "Let me look.\nWarm."
    assert [name for file, name in functions if file in files or (file, name.partition(".")[0]) in names] == []
