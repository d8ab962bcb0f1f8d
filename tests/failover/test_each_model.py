"""What each model of a failover keeps for itself: its fields, its server's state, its name in traces and costs; none has the cooldown."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from langchain_autotools import new_messages, pending_calls, run_cost
from langchain_autotools.run import failover
from tests.failover.vendors import VENDORS, model_of
from tests.laws.ways import WAYS, run
from tests.support.http_server import Gate, Pause
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call as ToolCall
from tests.support.script import Cut, Failure, Turn

TEXT = "Let me look at the first of both places now, and then at the other one."


@pytest.fixture(autouse=True)
def warm() -> Iterator[None]:
    """No endpoint cools down before or after a test."""
    failover._cooling.clear()
    yield
    failover._cooling.clear()


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_fields_hold_for_the_model_that_has_them(way: str) -> None:
    """The limit of tokens of each model goes into its own requests; one of a call is in all."""
    with VENDORS["openai"][0](lambda _: Failure(500)) as down, VENDORS["anthropic"][0](lambda _: Turn("Here.")) as other:
        model = model_of("openai", down, max_tokens=111, fallbacks=[model_of("anthropic", other, max_tokens=222)])
        run(way, model, [HumanMessage("Go.")])
        run(way, model, [HumanMessage("Go.")], max_tokens=33)
        of_first, of_other = ([limit_in(body) for body in server.requests] for server in (down, other))
    assert (of_first, of_other) == ([111, 33], [222, 33])


@pytest.mark.parametrize("way", ["stream", "ainvoke"])
def test_each_model_gets_of_a_result_what_it_can_carry(way: str) -> None:
    """What a wire cannot carry of a result is said in words, to the fallback it goes whole. A picture of the user's that the fallback
    cannot carry hides no error of the first model."""
    report = {"type": "file", "url": "https://example.com/report.pdf", "mime_type": "application/pdf"}
    script = iter([Turn("", [ToolCall("fetch")]), Failure(503), Failure(503)])
    with VENDORS["openai"][0](lambda _: next(script)) as down, VENDORS["anthropic"][0](lambda _: Turn("Read.")) as other:
        model = model_of("openai", down, tools=[fetch_of(report)], fallbacks=[model_of("anthropic", other)], fallback_attempts=1)
        message = run(way, model, [HumanMessage("Go.")]).message
        assert message is not None and message.text.endswith("Read.")
        assert "report.pdf: this model cannot read it" in str(down.requests[1])
        assert {"type": "document", "source": {"type": "url", "url": report["url"]}} in other.requests[0]["messages"][-1]["content"][0][
            "content"
        ]
        picture = HumanMessage([{"type": "image", "url": "https://example.com/a.png"}])
        with VENDORS["ollama"][0](lambda _: Turn("Never.")) as blind:
            last = model_of("openai", down, fallbacks=[model_of("ollama", blind)], fallback_attempts=1)
            assert isinstance(run(way, last, [picture]).error, ModelError) and not blind.requests


def fetch_of(block: Any) -> Any:
    """A tool that returns a block."""

    def fetch() -> list[Any]:
        """Fetch."""
        return [block]

    return fetch


SAID: Mapping[str, Any] = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 33, "stop": ["x"], "reasoning_effort": "low", "timeout": 30}


@pytest.mark.parametrize("name", [name for name in VENDORS if name != "openai"])
def test_keywords_of_a_call_are_written_for_every_wire(name: str) -> None:
    """Those that all vendors have, one by one; a seed for those that have one. No server refuses the request."""
    keywords = [{key: value} for key, value in SAID.items()] + ([] if name == "anthropic" else [{"seed": 3}])
    with VENDORS["openai"][0](lambda _: Failure(500)) as down, VENDORS[name][0](lambda _: Turn("Here.")) as other:
        model = model_of("openai", down, fallbacks=[model_of(name, other)])
        for given in keywords:
            assert model.invoke("Go.", **given).text == "Here.", given
        assert other.rejections == [] and len(other.exchanges) == len(down.exchanges) == len(keywords)


def limit_in(body: dict[str, Any]) -> Any:
    """The limit of tokens of a request."""
    return body.get("max_completion_tokens", body.get("max_tokens"))


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_timeout_holds_for_the_model_that_has_it(way: str) -> None:
    """Of the model that took over its own, though its reply takes longer than the first one's may."""
    silent, slow = Turn("Never.", holds={0: Gate()}), Turn("Here.", holds={0: Pause(0.6)})
    with VENDORS["openai"][0](lambda _: silent) as down, VENDORS["anthropic"][0](lambda _: slow) as other:
        ran = run(way, model_of("openai", down, timeout=0.3, fallbacks=[model_of("anthropic", other, timeout=60)]), [HumanMessage("Go.")])
        assert ran.message is not None and ran.message.text == "Here."


def test_a_handler_answers_the_calls_of_every_model() -> None:
    """Under the same rule: a shell's command waits for its approval whoever asks for it."""
    ran: list[Any] = []

    def shell(action: Any) -> str:
        ran.append(action)
        return "a.txt"

    tool: dict[str, Any] = {"type": "bash_20250124", "name": "bash"}
    asks = Turn(calls=[ToolCall("bash", {"command": "ls"})])
    with VENDORS["anthropic"][0]([Failure(500)]) as down, VENDORS["anthropic"][0]([asks, Turn("Done.")]) as other:
        fallback = model_of("anthropic", other, model="two")
        model = model_of("anthropic", down, tools=[tool], handlers={"shell": shell}, fallbacks=[fallback])
        history: list[BaseMessage] = [HumanMessage("Go.")]
        history += new_messages(model.invoke(history))
        assert ran == [] and other.requests[0]["tools"] == [tool]
        assert model.resume(history, [call.approve() for call in pending_calls(history)]).text == "Done."
        assert len(ran) == 1 and other.rejections == [] and len(down.exchanges) == 1


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_state_that_a_server_keeps_is_left_behind(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """`previous_response_id` goes to no other vendor, with a WARNING."""
    with ResponsesServer([Turn("First."), Failure(500)]) as down, VENDORS["anthropic"][0]([Turn("Here.")]) as other:
        model = model_of("openai", down, use_responses_api=True, fallbacks=[model_of("anthropic", other)])
        stored = model.invoke("Hello.").response_metadata["id"]
        with caplog.at_level(logging.WARNING):
            ran = run(way, model, [HumanMessage("Go.")], previous_response_id=stored)
        (body,), (_, first) = other.requests, down.requests
    assert ran.message is not None and ran.message.text == "Here."
    assert first["previous_response_id"] == stored and "previous_response_id" not in body
    assert any("previous_response_id continues what only the server of" in one.message for one in caplog.records)


@pytest.mark.parametrize("where", ["a field", "a reply"])
def test_a_container_is_left_behind(where: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whether the model's own field names it, or a reply of the history in which the vendor's code ran."""
    fields = {"container": "container_1"} if where == "a field" else {}
    said = AIMessage("Done.", response_metadata={"container": {"id": "container_1"}} if where == "a reply" else {})
    with VENDORS["anthropic"][0](lambda _: Failure(500)) as down, VENDORS["openai"][0](lambda _: Turn("Here.")) as other:
        model = model_of("anthropic", down, fallbacks=[model_of("openai", other)], **fields)
        with caplog.at_level(logging.WARNING):
            assert model.invoke([HumanMessage("Go."), said, HumanMessage("And?")]).text == "Here."
        assert "container" not in other.requests[0] and other.rejections == []
    assert any("container continues what only the server of anthropic/" in one.message for one in caplog.records)


class Traces(BaseTracer):
    """Keeps the runs that have no parent."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def traced(run: Run) -> tuple[str, Any, Any, Any, bool]:
    """The names of the model in one run of a trace, as what stands for and as what was asked for, and whether the run failed."""
    extra = run.extra or {}
    metadata, params = extra["metadata"], extra["invocation_params"]
    return run.name, metadata["ls_provider"], metadata["ls_model_name"], params["model"], run.error is not None


@pytest.mark.parametrize("failure", [Failure(500), Cut(Turn(TEXT), 1000)], ids=["before text", "after text"])
@pytest.mark.parametrize("way", WAYS)
def test_traces_name_each_model(way: str, failure: Any) -> None:
    """Below the one root: a run of the model that failed, and one of the model that took over, whose reply has its name too."""
    traces = Traces()
    with VENDORS["anthropic"][0](lambda _: failure) as down, VENDORS["google"][0](lambda _: Turn("That is all.")) as other:
        model = model_of("anthropic", down, model="one", fallbacks=[model_of("google", other, model="two")])
        ran = run(way, model, [HumanMessage("Go.")], config={"callbacks": [traces]})
    (root,) = traces.roots
    failed, took_over = root.child_runs
    assert ran.error is None and root.error is None
    assert traced(failed) == ("ChatAnthropic", "anthropic", "one", "one", True)
    assert traced(took_over) == ("ChatGoogleGenerativeAI", "google_genai", "two", "two", False)
    ((generation,),) = (took_over.outputs or {})["generations"]
    assert generation["message"]["kwargs"]["response_metadata"]["model_name"] == "two"


def test_the_cost_names_each_model() -> None:
    """A reply that was cut off after text, and the one that goes on, each at the price of its model."""
    prices = {"one": {"input_mtok": 1, "output_mtok": 1}, "two": {"input_mtok": 100, "output_mtok": 100}}
    with VENDORS["anthropic"][0](lambda _: Cut(Turn(TEXT), 1000)) as down, VENDORS["anthropic"][0](lambda _: Turn("That is all.")) as other:
        model = model_of("anthropic", down, model="one", fallbacks=[model_of("anthropic", other, model="two")])
        ran = run("stream", model, [HumanMessage("Go.")])
    assert ran.message is not None
    cost = run_cost(ran.message, prices=prices)
    assert [turn.model for turn in cost.turns] == ["one", "two"]
    assert cost.total == sum((turn.total for turn in cost.turns if turn.total is not None), Decimal())


WHOSE: Mapping[str, Any] = {
    "openai": {"api_key": "another-key"},
    "anthropic": {"default_headers": {"Helicone-Auth": "another"}},
    "google": {"additional_headers": {"x-team": "another"}},
    "ollama": {"client_kwargs": {"headers": {"Authorization": "Bearer another"}}},
}


@pytest.mark.parametrize("name", VENDORS)
def test_a_model_cools_down_for_whose_key_has_failed(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """One customer's refused key sends no other to the fallback; what is known of it holds no key, and a run that it changes says so."""
    with VENDORS[name][0](lambda _: Failure(401)) as down, VENDORS["anthropic"][0](lambda _: Turn("Here.")) as other:
        customers = [
            model_of(name, down, fallbacks=[model_of("anthropic", other, model="two")], cooldown=60, **fields)
            for fields in ({}, WHOSE[name])
        ]
        for customer in customers:
            before = len(down.requests)
            assert customer.invoke("Go.").text == customer.model_copy().invoke("Go.").text == "Here."
            assert len(down.requests) == before + 1
    assert sum("cools down" in one.message for one in caplog.records) == 2
    assert "another" not in repr(failover._cooling) and "key" not in repr(failover._cooling)


def test_the_cooldown_is_in_no_pickle() -> None:
    """What the process knows of an endpoint that has failed stays in it: the model and its copies look there."""
    with VENDORS["openai"][0](lambda _: Failure(500)) as down, VENDORS["anthropic"][0](lambda _: Turn("Here.")) as other:
        model = model_of("openai", down, fallbacks=[model_of("anthropic", other)], cooldown=60)
        before = pickle.dumps(model)
        model.invoke("Go.")
        assert pickle.dumps(model) == before
        asked = len(down.requests)
        assert model.model_copy().invoke("Go.").text == "Here." and len(down.requests) == asked
