"""How long a synchronous caller waits for an asynchronous tool."""

import logging
from typing import Any

from ..call import ToolRun
from .background import BackgroundTask

_logger = logging.getLogger("langchain_autotools")

SLOW_SECONDS = 5.0
"""After which time of an asynchronous tool a synchronous caller is told what it may be waiting for."""

_STRANDED = (
    "a synchronous run has it on an event loop of its own, which never hears of what was opened on another one (a session, a connection); "
    "if it uses such a thing call the model with ainvoke or astream, make the model on that loop, or open the thing within the tool"
)


def has_ended(task: BackgroundTask[Any], run: ToolRun) -> bool:
    """Wait for an asynchronous tool, for as long as it may take. One that may wait for ever does not do so in silence."""
    first = SLOW_SECONDS if run.timeout is None else min(SLOW_SECONDS, run.timeout)
    if task.wait(first) or first == run.timeout:
        return task.wait(0)
    what = "the event loop that it belongs to may be blocked" if task.is_home else _STRANDED
    _logger.warning("tool %s has not ended after %g s, call %s: %s", run.prepared.tool.name, first, run.call.id, what)
    return task.wait(None if run.timeout is None else run.timeout - first)
