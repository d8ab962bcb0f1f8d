"""Notification of callback handlers that all run inline, without the coroutines and the future that core makes for each chunk.

Core's asynchronous manager calls an inline handler with a plain method in the event loop's own thread, as its synchronous one does: only
the way there is longer.
"""

import inspect
from collections.abc import Callable

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.callbacks.manager import handle_event
from langchain_core.outputs import ChatGenerationChunk


def inline_notifier(manager: AsyncCallbackManagerForLLMRun | None) -> Callable[[ChatGenerationChunk], None] | None:
    """Return the function that notifies a manager's handlers of a chunk at once; None if one of them must be awaited or needs a thread."""
    if manager is None or type(manager).on_llm_new_token is not AsyncCallbackManagerForLLMRun.on_llm_new_token:
        return None
    handlers = manager.handlers
    if not all(one.run_inline and not inspect.iscoroutinefunction(one.on_llm_new_token) for one in handlers):
        return None
    run_id, parent, tags = manager.run_id, manager.parent_run_id, manager.tags

    def notify(chunk: ChatGenerationChunk) -> None:
        text = chunk.text
        handle_event(handlers, "on_llm_new_token", "ignore_llm", text, chunk=chunk, run_id=run_id, parent_run_id=parent, tags=tags)

    return notify
