"""Display of run messages as Markdown in a running IPython.

A method of the message cannot do it: run messages are plain `AIMessage`s, of no class of our own.
"""

import sys
from contextlib import suppress
from typing import Any

_AI_MESSAGE = ("langchain_core.messages.ai", "AIMessage")


def show_runs() -> None:
    """Register a formatter with the running IPython, unless the user has registered one."""
    with suppress(Exception):  # no display is worth an import that fails
        formatter = sys.modules["IPython"].get_ipython().display_formatter.formatters["text/markdown"]
        if formatter.for_type_by_name(*_AI_MESSAGE) is None:
            formatter.for_type_by_name(*_AI_MESSAGE, _markdown)


def _markdown(message: Any) -> str | None:
    from .display import run_markdown

    return run_markdown(message)
