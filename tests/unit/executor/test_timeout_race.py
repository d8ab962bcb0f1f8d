"""A synchronous tool that ends in the moment in which its time is over."""

from concurrent.futures import Future
from typing import Any

import pytest

from langchain_autotools import ToolExecutor, ToolPolicy
from langchain_autotools.executor import batch_drivers
from langchain_autotools.messages.calls import ToolCallRecord


class EndsInThisMoment(Future[Any]):
    """A future whose wait is over by the clock just as its result comes."""

    def result(self, timeout: float | None = None) -> Any:
        """The result; of a wait that is bounded only that it took too long, although the result is there."""
        found = super().result()
        if timeout is not None:
            raise TimeoutError
        return found


def test_a_result_that_is_there_is_not_given_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The tool has done its work: the model is told its result, and nothing is said to go on."""
    monkeypatch.setattr(batch_drivers, "Future", EndsInThisMoment)

    def work() -> str:
        """Do something."""
        return "done"

    (result,) = ToolExecutor([work], default_policy=ToolPolicy(timeout=30)).execute_all([ToolCallRecord("call_1", "work", "{}", {})])
    assert (result.content, result.status) == ("done", "success")
    assert "given up" not in caplog.text
