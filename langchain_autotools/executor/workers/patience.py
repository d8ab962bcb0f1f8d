"""Waiting of a synchronous caller for an asynchronous tool."""

import logging
from typing import Any

from ..call import ToolRun
from ..sources import SourceTool
from .background import BackgroundTask

_logger = logging.getLogger("langchain_autotools")

SLOW_SECONDS = 5.0
"""Seconds after which a synchronous caller is warned about a slow asynchronous tool."""

_STRANDED = (
    "a synchronous run has it on an event loop of its own, which never hears of what was opened on another one (a session, a connection); "
    "if it uses such a thing call the model with ainvoke or astream, make the model on that loop, or open the thing within the tool"
)


def has_ended(task: BackgroundTask[Any], run: ToolRun) -> bool:
    """Wait for an asynchronous tool within its timeout; log a warning if the wait may be endless."""
    first = SLOW_SECONDS if run.timeout is None else min(SLOW_SECONDS, run.timeout)
    if task.wait(first) or first == run.timeout:
        return task.wait(0)
    if isinstance(run.prepared.tool, SourceTool):
        return task.wait(None if run.timeout is None else run.timeout - first)
    what = "the event loop that it belongs to may be blocked" if task.is_home else _STRANDED
    _logger.warning("tool %s has not ended after %g s, call %s: %s", run.prepared.tool.name, first, run.call.id, what)
    return task.wait(None if run.timeout is None else run.timeout - first)
