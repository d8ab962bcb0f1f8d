"""`ToolCallResult`, and the texts of failures for the model."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from pydantic import ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from ..compat import asks_for_a_graph
from ..messages.artifacts import portable_result
from ..messages.calls import ToolCallRecord
from ..messages.open_runs import open_run
from ..strict_json import mend_surrogates

Place = tuple[int | str, ...]
"""A position in the arguments: keys and indices, from the outside in."""


@dataclass(frozen=True)
class ToolCallResult:
    """The result of one tool call.

    Attributes:
        call: The call.
        message: Its answer, for the model. `message.status` is "error" where something went wrong.
        error: The tool's exception, or the reason why it did not run. None for a success, and if the tool handled its error itself
            (`handle_tool_error`).
        duration: The duration of the tool's run in seconds.
        return_direct: Whether the answer goes to the user instead of back to the model. Never for an error.
        executed: Whether the tool's own code began to run. It does not for a result that came from a cache.
        commands: The graph commands that the tool returned. A model cannot apply them; a graph around it can.
        inner: The results of the calls that the call bundles.
        attempts: The number of attempts: 1, unless a policy retries the call; 0 if nothing ran (`executed` is False). Of a bundle
            that of the call inside that was tried most often.
        full_content: The whole content, where a policy's `max_output` has shortened that of the message.
    """

    call: ToolCallRecord
    message: ToolMessage
    error: BaseException | None = None
    duration: float = 0.0
    return_direct: bool = False
    executed: bool = True
    commands: tuple[Any, ...] = ()
    inner: tuple["ToolCallResult", ...] = ()
    attempts: int = 1
    full_content: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: portable_result(value) for name, value in vars(self).items()}

    @property
    def tool_call_id(self) -> str:
        """The id of the call."""
        return self.call.id

    @property
    def success(self) -> bool:
        """Whether the call succeeded: its message is not an error."""
        return self.message.status != "error"

    @property
    def content(self) -> str | list[str | dict[Any, Any]]:
        """The content of the message for the model."""
        return self.message.content


def failed(
    call: ToolCallRecord, text: str, error: BaseException | None = None, *, duration: float = 0.0, executed: bool = False
) -> ToolCallResult:
    """Return the result of a failed call: `{"error": text}`, for the model to act on."""
    content = json.dumps({"error": mend_surrogates(text)}, ensure_ascii=False)
    message = ToolMessage(content=content, tool_call_id=call.id, name=call.spelling, status="error")
    return ToolCallResult(call, message, error, duration, executed=executed, attempts=int(executed))


def is_changed(result: ToolCallResult) -> bool:
    """Whether a result says that its call was changed and waits for approval. A run that waits inside a call has begun."""
    return not result.executed and open_run(result.message) is not None


def cancelled_result(call: ToolCallRecord, *, executed: bool = False, duration: float = 0.0) -> ToolCallResult:
    """Return the result of a call that was still running when its run was cancelled."""
    text = "cancelled before it finished; what it did until then may remain" if executed else "cancelled before it ran"
    return failed(call, text, asyncio.CancelledError(text), duration=duration, executed=executed)


def overdue_result(call: ToolCallRecord) -> ToolCallResult:
    """Return the answer to a call whose run ended before it began."""
    text = "Not run: the time for this run is over."
    return failed(call, text, TimeoutError(text))


def not_alone(call: ToolCallRecord, exclusive: ToolCallRecord) -> ToolCallResult:
    """Return the answer to a call that must not run beside another one that is exclusive or still running.

    Args:
        call: The call.
        exclusive: The one that must run alone.
    """
    text = f"Not run: {exclusive.name!r} must run alone, and a call of this turn that took too long has not ended yet."
    return failed(call, text, TimeoutError(text))


def describe(error: BaseException) -> str:
    """Describe an exception for the model: type and message, without traceback; for a group, those of its exceptions.

    For a `ToolException` the message alone."""
    if isinstance(error, BaseExceptionGroup):  # of a session or task group that failed: the group's own text says nothing
        return "; ".join(dict.fromkeys(describe(inner) for inner in error.exceptions))
    if isinstance(error, ValidationError | ValidationErrorV1):
        return f"{type(error).__name__}: {'; '.join(_problems(error))}"
    if asks_for_a_graph(error):
        return "the tool cannot run here: it asks for the graph around it (a stream writer, a store, an interrupt), and there is none"
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, ToolException) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def describe_arguments(error: ValidationError | ValidationErrorV1, name: str, conceals: Callable[[Place], bool]) -> str:
    """Describe invalid arguments of a call for the model: places and messages, without values.

    Args:
        error: The error of the tool's schema.
        name: The tool's name.
        conceals: Tells the places that are none of the model's business.
    """
    problems = _problems(error, conceals)
    if problems:
        return f"The arguments of {name!r} are not valid: {'; '.join(problems)}. Correct them and call the tool again."
    return f"The tool {name!r} cannot run here: an argument that its caller must supply is missing or not valid."


def _problems(error: ValidationError | ValidationErrorV1, conceals: Callable[[Place], bool] = lambda _: False) -> list[str]:
    if isinstance(error, ValidationError):
        entries: list[Any] = list(error.errors(include_url=False, include_context=False, include_input=False))
    else:
        entries = list(error.errors())
    return [": ".join(filter(None, (".".join(map(str, entry["loc"])), entry["msg"]))) for entry in entries if not conceals(entry["loc"])]
