"""How a run asks its model for a summary of old turns (`compact=`).

The first request is the last one of the run again, with an instruction behind it, so that it begins with what the server's cache holds. A
model that goes on with its task instead is asked once more, with a plain transcript and without tools. A reply that is no summary leaves
the turns as they are until many more have come.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from ..history.cuts import Cut, Reading
from ..history.summaries import Summary, instruction, summary_text, transcript
from ..messages.metadata import COMPACTED, own_metadata
from .turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, WireForm


class RunSummaries:
    """The summaries of one run that no reply records yet: a turn that is made again, by another model too, has the same.

    Attributes:
        unpaid: The replies that were asked for summaries, which the next reply's record counts among what was paid for.
    """

    def __init__(self) -> None:
        self.unpaid: list[AIMessage] = []
        self._made: tuple[Summary, str] | None = None
        self._unstored: int | None = None
        self._tried: tuple[int, str] = 0, ""

    def known_of(self, reading: Reading) -> tuple[Cut, int]:
        """Return what is cut of a history, the run's new summary included, and up to which number of messages one was tried."""
        cut, tried, chain = reading.cut, reading.tried, reading.chain
        if self._made is not None:
            summary, digest = self._made
            former = 0 if cut.summary is None else cut.summary.messages
            if former < summary.messages < len(chain) and chain[summary.messages] == digest:
                cut = replace(cut, summary=summary)
        messages, digest = self._tried
        return cut, messages if tried < messages < len(chain) and chain[messages] == digest else tried

    def take(self, reading: Reading, summary: Summary, messages: int) -> None:
        """Take a summary of a history, which its next requests have; or one without text, which was asked for and not made.

        Args:
            reading: The history.
            summary: The summary.
            messages: The number of messages of the run so far.
        """
        digest = reading.chain[summary.messages]
        if summary.text:
            self._made, self._unstored = (summary, digest), messages
        else:
            self._tried = summary.messages, digest

    def are_stored(self, history: Sequence[BaseMessage]) -> bool:
        """Whether the messages of the run have a record of its new summary: a reply that goes back to the model is not among them."""
        if self._unstored is not None and any(map(_records_summary, history[self._unstored :])):
            self._unstored = None
        return self._unstored is None

    def take_unpaid(self) -> list[AIMessage]:
        """Return the replies that are not counted yet; the next ones are others."""
        replies, self.unpaid = self.unpaid, []
        return replies


def _records_summary(message: BaseMessage) -> bool:
    return "summary" in own_metadata(message).get(COMPACTED, ())


# ---------------------------------------------------------------------------------------------- the requests

Asking = Generator[TurnRequest, AIMessage | None, str | None]
"""The requests for one summary. It is sent the reply to each, None for a request that was too long, and returns the text, None for none."""

_FORMATS: Final = frozenset({"response_format", "response_schema", "response_json_schema", "response_mime_type", "format"})
_HOLD_FORMATS: Final = frozenset({"output_config", "text"})
_OF_REPLIES: Final = _FORMATS | {"stop", "ls_structured_output_format"}
"""Keywords that say what form a reply has, or where it ends."""


def asking(
    request: TurnRequest,
    prefix: Sequence[BaseMessage] | None,
    quoted: Sequence[BaseMessage],
    tokens: int,
    window: int,
    replies: list[AIMessage],
) -> Asking:
    """Ask for a summary.

    Args:
        request: The request that is to be shortened.
        prefix: The messages to sum up, with which the last request begins; None where they do not fit.
        quoted: The messages to sum up, with all results cut that can be.
        tokens: The tokens that it is to have at most.
        window: The context window.
        replies: Where the replies are added, to be paid for.
    """
    asked = _for_text(request)
    plain = replace(asked, tools=(), tool_choice=None, form=WireForm(asked.model))
    attempts = [] if prefix is None else [replace(asked, messages=[*prefix, instruction(tokens)])]
    attempts.append(replace(plain, messages=[transcript(quoted, tokens, max(2000, (window - tokens) * 3 // 2))]))
    for attempt in attempts:
        reply = yield attempt
        replies += () if reply is None else (reply,)
        request.end.check()
        if (text := summary_text(reply)) is not None:
            return text
    return None


def _for_text(request: TurnRequest) -> TurnRequest:
    """Return a request as one for plain text: it is not streamed, no form is asked for, no call is forced. The tools are the same."""
    model, choice, config = _without_format(request.model), request.form.choice, request.config or RunnableConfig()
    if choice.lasting is not None and model.read_tool_choice(choice.lasting).forced:
        choice = replace(choice, lasting=None)
    form = replace(request.form, model=model if request.form.model is request.model else request.form.model, choice=choice)
    config = cast("RunnableConfig", {**config, "run_name": "summary", "tags": [*(config.get("tags") or ()), "nostream"]})
    return replace(
        request, model=model, choice="auto", form=form, keywords=_plain(request.keywords), config=config, streams=False, insists=False
    )


def _plain(keywords: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in keywords.items() if name not in _OF_REPLIES}
    for name in _HOLD_FORMATS & kept.keys():
        if isinstance(kept[name], Mapping):
            kept[name] = {key: value for key, value in kept[name].items() if key != "format"}
    return kept


def _without_format(model: Any) -> Any:
    """Return a model without a form of replies of its own; the same one where it has none."""
    known, own = type(model).model_fields, getattr(model, "model_kwargs", None) or {}
    changed: dict[str, Any] = {name: None for name in sorted(_FORMATS & known.keys()) if getattr(model, name) is not None}
    for name in sorted(_HOLD_FORMATS & known.keys()):
        if isinstance(value := getattr(model, name), Mapping) and "format" in value:
            changed[name] = {key: one for key, one in value.items() if key != "format"}
    if (plain := _plain(own)) != own:
        changed["model_kwargs"] = plain
    return model.model_copy(update=changed) if changed else model


# ---------------------------------------------------------------------------------------------- the requests, made


def make_all(steps: Generator[TurnRequest, AIMessage | None, None], proceed: Proceed) -> None:
    """Make the requests of a generator and send it the replies. A run's journal has each reply as a step of its own."""
    reply: AIMessage | None = None
    while (asked := _next(steps, reply)) is not None:
        make = partial(_reply, asked, proceed)
        reply = make() if asked.recorded is None else asked.recorded(asked.messages, make)


def _reply(asked: TurnRequest, proceed: Proceed) -> AIMessage | None:
    """Return the reply to a request; None where it is too long."""
    try:
        return _last([*proceed(asked)])
    except ContextOverflowError:
        return None


async def amake_all(steps: Generator[TurnRequest, AIMessage | None, None], proceed: AsyncProceed) -> None:
    """Like `make_all`, asynchronously. An asynchronous run has no journal."""
    reply: AIMessage | None = None
    while (asked := _next(steps, reply)) is not None:
        try:
            async with aclosing(cast("AsyncGenerator[TurnPart, None]", proceed(asked))) as parts:
                reply = _last([part async for part in parts])
        except ContextOverflowError:
            reply = None


def _next(steps: Generator[TurnRequest, AIMessage | None, None], reply: AIMessage | None) -> TurnRequest | None:
    try:
        return steps.send(reply)
    except StopIteration:
        return None


def _last(parts: Sequence[TurnPart]) -> AIMessage | None:
    """Return the message of a reply that came whole."""
    return next((part for part in reversed(parts) if isinstance(part, AIMessage)), None)
