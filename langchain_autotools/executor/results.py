"""What became of a call: `ToolCallResult`, and the words in which a failure is told to the model."""

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
from ..strict_json import mend_surrogates

Place = tuple[int | str, ...]
"""Where in the arguments something is wrong: keys and positions, from the outside in."""


@dataclass(frozen=True)
class ToolCallResult:
    """What became of one tool call.

    Attributes:
        call: The call.
        message: Its answer, for the model. `message.status` is "error" where something went wrong.
        error: What the tool raised, or why it did not run. None for a success, and where the tool handled its error itself
            (`handle_tool_error`).
        duration: How long the tool ran, in seconds.
        return_direct: Whether the answer goes to the user instead of back to the model. Never for an error.
        executed: Whether the tool's own code began to run. It does not for a result that came from a cache.
        commands: The graph commands that the tool returned. A model cannot apply them; a graph around it can.
        inner: The results of the calls that the call bundles.
        attempts: How often its tool was tried: 1, unless a policy has it retried; 0 where nothing ran (`executed` is False). Of a bundle
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
        """Whether the call succeeded: its answer is no error."""
        return self.message.status != "error"

    @property
    def content(self) -> str | list[str | dict[Any, Any]]:
        """What the model is told."""
        return self.message.content


def failed(
    call: ToolCallRecord, text: str, error: BaseException | None = None, *, duration: float = 0.0, executed: bool = False
) -> ToolCallResult:
    """The result of a call that did not succeed: `{"error": text}`, for the model to act on."""
    content = json.dumps({"error": mend_surrogates(text)}, ensure_ascii=False)
    message = ToolMessage(content=content, tool_call_id=call.id, name=call.spelling, status="error")
    return ToolCallResult(call, message, error, duration, executed=executed, attempts=int(executed))


def cancelled_result(call: ToolCallRecord, *, executed: bool = False, duration: float = 0.0) -> ToolCallResult:
    """The result of a call that had not ended when its run was cancelled."""
    text = "cancelled before it finished; what it did until then may remain" if executed else "cancelled before it ran"
    return failed(call, text, asyncio.CancelledError(text), duration=duration, executed=executed)


def overdue_result(call: ToolCallRecord) -> ToolCallResult:
    """The answer to a call whose run was over before it began."""
    text = "Not run: the time for this run is over."
    return failed(call, text, TimeoutError(text))


def not_alone(call: ToolCallRecord, exclusive: ToolCallRecord) -> ToolCallResult:
    """The answer to a call that would have run beside another one, one of which must run alone.

    Args:
        call: The call.
        exclusive: The one that must run alone.
    """
    text = f"Not run: {exclusive.name!r} must run alone, and a call of this turn that took too long has not ended yet."
    return failed(call, text, TimeoutError(text))


def describe(error: BaseException) -> str:
    """An exception in words for the model: type and message, no traceback; of a group those of the exceptions inside. A `ToolException`
    speaks for itself."""
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
    """What is wrong with the arguments of a call, in words for the model that wrote them: places and messages, no values.

    Args:
        error: What the tool's schema says of them.
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
