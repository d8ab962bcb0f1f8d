"""The limit in money of durable runs: a run that goes on after a crash has spent what it had."""

from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import ConfigurationError, new_messages, run_cost, run_usage, stop_reason
from langchain_autotools.durable import RunFailedError, durable
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, crash

PRICES = {"m": {"input_mtok": 10, "output_mtok": 10}}


class Model(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "m"


def test_the_limit_holds_over_a_crash(life: Life) -> None:
    """Two turns fit into the limit, in one life or in two: what was recorded is neither paid for again nor forgotten."""
    crashes = [True]

    def look(number: int) -> str:
        """Look."""
        if number == 3 and crashes.pop():
            crash()
        return "fine"

    def reply(messages: list[BaseMessage], **_: Any) -> AIMessage:
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        call = {"name": "look", "args": {"number": len(messages)}, "id": f"call {len(messages)}"}
        return AIMessage("", tool_calls=[call], usage_metadata=usage, response_metadata={"model_name": "m"})

    model = Model(replies=reply, tools=[look], prices=PRICES)
    chat = durable(model, "test", ["look"])
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one", max_cost=0.0033)
    life.again()
    run = chat.result("one")
    assert (stop_reason(run), len(model.requests), len(new_messages(run))) == ("max_cost", 2, 4)
    assert run_cost(run, prices=PRICES).total == run_cost(chat.invoke("Go", max_cost=0.0033), prices=PRICES).total


def test_what_runs_inside_have_used_is_recorded(life: Life) -> None:
    """After a crash the result of a call of a model is read again, and with it what its run has used."""
    crashes = [True]

    def pay() -> str:
        """Pay."""
        if crashes.pop():
            crash()
        return "paid"

    def used(text: str, *calls: Any) -> AIMessage:
        usage: Any = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        return AIMessage(text, tool_calls=list(calls), usage_metadata=usage, response_metadata={"model_name": "m"})

    helper = Model(name="helper", replies=[used("Hello.")])
    asked, paying = ({"name": name, "args": args, "id": name} for name, args in (("helper", {"question": "?"}), ("pay", {})))
    model = Model(tools=[helper, pay], replies=[used("", asked), used("", paying), used("Done.")], prices=PRICES)
    chat = durable(model, "test", ["pay"])
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one", max_cost=1)
    crashes.append(False)
    life.again()
    run = chat.result("one")
    usage = run_usage(run)
    assert (len(helper.requests), len(model.requests), usage and usage["total_tokens"]) == (1, 3, 440)
    assert run_cost(run, prices=PRICES).total == Decimal("0.0044")


def test_what_is_no_plain_data_is_refused(life: Life) -> None:
    """A run's keywords are stored: an amount is a number there."""
    chat = durable(Model(replies=["Hi."], prices=PRICES), "test")
    life.begin()
    with pytest.raises(ConfigurationError, match="plain JSON"):
        chat.invoke("Go", max_cost=Decimal("0.1"))
