"""What a durable run costs in the database: steps and statements, and how often an idle worker looks for work."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS

from langchain_autotools.durable import launch
from langchain_autotools.errors import ConfigurationError
from tests.support.durable import Life, double, doubling
from tests.support.statements import statements


@pytest.mark.parametrize("rerun", [[], ["double"]])
def test_a_call_that_may_run_again_is_one_step(life: Life, rerun: list[str]) -> None:
    """Two requests, two calls and the events are seven steps, five where nobody needs to know who began a call; each is four statements."""
    chat = life.model(doubling, [double], rerun=rerun)
    life.begin()
    with statements("") as made:
        chat.invoke("Go", run_id="one")
    names = sorted(step["function_name"] for step in DBOS.list_workflow_steps("one"))
    assert names == [*([] if rerun else ["begin call 0", "begin call 1"]), "call call 0", "call call 1", "events", "turn 1", "turn 2"]
    assert sum("operation_outputs" in one for one in made) == 2 * len(names)
    assert sum("workflow_status.status FROM" in one for one in made) == len(names)


@pytest.mark.parametrize("interval", [0, -1, True, "0.1", float("inf"), float("nan")])
def test_an_interval_that_is_none_is_refused(interval: Any) -> None:
    """At the call, before anything is launched."""
    with pytest.raises(ConfigurationError, match="poll_interval must be a number of seconds"):
        launch("sqlite://", poll_interval=interval)


def test_a_worker_looks_for_messages_as_often_as_it_was_launched_to(life: Life) -> None:
    """The interval is in the row of the queue, where every worker reads it: the last launch sets it for all."""
    life.conversations(doubling, [double])
    launch(life.url, f"worker of {life.folder}", poll_interval=7.5)
    assert polled() == 7.5
    life.again()
    assert polled() == 0.1


def polled() -> float:
    """The interval of the queue of conversations."""
    (queue,) = [one for one in DBOS.list_queues() if one.name == "langchain_autotools.Conversations test"]
    return float(queue.polling_interval_sec)
