"""What a run sends of a long history: `compact=`, by which old results become lines that the model can open again.

The history itself stays whole. What was cut of a request is recorded on the AI message that answers it, so that the next request, also of
another run or process, cuts the same and begins with the same bytes. A record names results by their numbers among all results, and holds
a digest of the messages up to the last one that it cuts: where these were changed since, it says nothing. System messages count for
nothing in it, for some programs write them anew for each request.
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, TypeVar, cast

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, ValidationError

from ..errors import ConfigurationError
from ..event_types import ContextCompacted
from ..executor.names import own_name, tool_name
from ..executor.plan import Answer, PlannedCall
from ..executor.results import ToolCallResult, failed
from ..executor.user_functions import UserCall
from ..messages.calls import ToolCallRecord, calls_of, compact
from ..messages.incremental import GrowingHistory, Kept, MessageMemo, growing
from ..messages.metadata import COMPACTED, is_cut_reply, own_metadata, text_of, with_own_metadata
from ..messages.run_messages import open_run
from .settings import RunSettings
from .turn_wrappers import AsyncProceed, Mark, Notice, Proceed, TurnPart, TurnRequest, TurnWrapper

_Message = TypeVar("_Message", bound=AIMessage)

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
NO_RUN: Final = (
    "compact= needs a model with tools of its own, tools=[...] or handlers={...}: where tools are only declared there is no run in which "
    "the model could read again what was left out"
)
"""Why a model without tools of its own has no compaction."""


@dataclass(frozen=True)
class Compaction:
    """How requests are kept shorter than the context window of the model that gets them.

    Attributes:
        at: The part of the context window at which a request is shortened.
        keep: The number of the newest results that stay as they are.
        tool_name: The name of the tool by which the model reads what was left out.

    Raises:
        ConfigurationError: One of them cannot work.
    """

    at: float = 0.8
    keep: int = 4
    tool_name: str = "read_result"

    def __post_init__(self) -> None:
        if isinstance(self.at, bool) or not isinstance(self.at, int | float) or not 0 < self.at <= 1:
            raise ConfigurationError(f"at of a Compaction must be a number above 0, at most 1, not {self.at!r}")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 0:
            raise ConfigurationError(f"keep of a Compaction must be a whole number, 0 or more, not {self.keep!r}")
        if not isinstance(self.tool_name, str) or not _NAME.fullmatch(self.tool_name):
            words = "a name that every vendor takes for a tool: letters, digits, _ and -, at most 64"
            raise ConfigurationError(f"tool_name of a Compaction must be {words}, not {self.tool_name!r}")

    def wrapper(self) -> TurnWrapper:
        """Raise, because a model that makes no run of its own has none.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(NO_RUN)


def checked_compaction(value: Any) -> Compaction | None:
    """Return the compaction that a setting asks for; None for none.

    Raises:
        ConfigurationError: It is no such value.
    """
    if value is None or isinstance(value, bool):
        return Compaction() if value else None
    if not isinstance(value, Compaction):
        raise ConfigurationError(f"compact must be True, False or a Compaction, not {value!r}")
    return value


# ---------------------------------------------------------------------------------------------- a run with it


def with_compaction(settings: RunSettings, profiled: Callable[[Any, Mapping[str, Any]], int | None]) -> RunSettings:
    """Return the settings of a run whose requests are shortened, with our tool declared behind all others.

    Args:
        settings: The settings without it.
        profiled: Returns the context window of a model's profile for the keywords of a request.

    Raises:
        ConfigurationError: The server keeps the history or takes no tools, or the name of our tool is taken or asked for.
    """
    values, plan, request = settings.values, settings.plan, settings.request
    model, form, given = request.model, request.form, values["compact"]
    name = given.tool_name
    if (why := model.rules_out_compaction(request.keywords)) is not None:
        raise ConfigurationError(f"compact= cannot shorten the history: {why}")
    if name in {*settings.executor.tools, *plan.caller_tools, *map(tool_name, form.tools)}:
        raise ConfigurationError(
            f"there is a tool {name!r}, as compact= declares one: name ours otherwise, compact=Compaction(tool_name=...)"
        )
    choice = request.tool_choice
    if name in (choice, own_name(choice) if isinstance(choice, Mapping) else None):
        raise ConfigurationError(f"tool_choice cannot ask for {name!r}: the model reads what was left out when it needs it")
    compactor = Compactor(
        given,
        model,
        values["context_window"] if "context_window" in values["usage_limits"] else None,
        profiled,
        is_forced=form.choice.forced,
        reads_sent=values["before_turn"] is not None or bool(model.middleware),
    )
    tool, executor = reading_tool(name), copy(settings.executor)
    executor._declared = {**executor._declared, name: tool}
    executor.on_executed = executor.on_executed and compactor.told(executor.on_executed)
    form = replace(form, tools=[*form.tools, model.format_tool(tool)])
    compactor.request = replace(request, tools=[*request.tools, tool], form=form)
    return replace(
        settings,
        values={**values, "compact": compactor},
        plan=replace(plan, meant=partial(executor.meant, only=form.choice.allowed), compaction=compactor, own=frozenset({name})),
        executor=executor,
        request=compactor.request,
        lists_content=model.answers_in_blocks(form.tools),
    )


# ---------------------------------------------------------------------------------------------- a history, read


_LONGEST_LINE: Final = 300
"""Characters of a result that is not cut: the line in its place would save nothing."""

_LINE_TOKENS: Final = 60
"""Tokens of a line that stands for a result, as estimated."""

_BEGINNING: Final = 60
"""Characters of a result that its line shows."""

_MEDIA = frozenset({"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document", "media"})
_TEXTS = frozenset({"text", "text-plain"})
_BROKEN_OFF = frozenset({"incomplete", "deadline", "cancelled"})


@dataclass(frozen=True)
class Cut:
    """Which results of a history are cut, by their numbers among all results, from 0 on.

    Attributes:
        before: All with smaller numbers that are longer than a line.
        also: Others.
    """

    before: int = 0
    also: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        """The number after the last one that may be cut."""
        return max((self.before, *(number + 1 for number in self.also)))

    def has(self, number: int) -> bool:
        """Whether a result is cut, if it can be."""
        return number < self.before or number in self.also


def is_cuttable(message: ToolMessage) -> bool:
    """Whether a line may stand for a result: it is longer than one, and has nothing but text, pictures and files.

    What answers an item of the vendor's own has a form of its own, and a run that waits inside a call goes on with its record.
    """
    if message.additional_kwargs.get("type") or open_run(message) is not None:
        return False
    content = message.content
    if isinstance(content, str):
        return len(content) > _LONGEST_LINE
    kinds = {block.get("type") if isinstance(block, Mapping) else "text" for block in content}
    return kinds <= _TEXTS | _MEDIA and (bool(kinds & _MEDIA) or len(text_of(message)) > _LONGEST_LINE)


def _content_of(message: BaseMessage) -> bytes:
    """Return what of a message counts for a digest: role, text and other content, calls; not ids, metadata and cache marks."""
    content: list[Any] = [message.type, text_of(message)]
    if isinstance(message, AIMessage):
        content += [[call.name, call.arguments if call.args is None else compact(call.args)] for call in calls_of(message)]
    elif not isinstance(message.content, str):
        content += [block for block in message.content if isinstance(block, Mapping) and block.get("type") != "text"]
    return json.dumps(content, ensure_ascii=True, default=str, separators=(",", ":"), sort_keys=True).encode()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


@dataclass(slots=True)
class Reading:
    """A fold that reads a history: its sizes, its digests, what was cut of it before.

    Attributes:
        estimate: Returns the estimated tokens of a message.
        tokens: The tokens of the first messages together, by their number.
        chain: The digests of the first messages that are no system messages, by their number.
        savings: The tokens that cutting the first results saves, by their number.
        covered: The number of messages in `chain` up to each result.
        seen: The number of results before the last AI message, which the model has seen.
        cut: What is cut by the last valid record.
        windows: The context windows that servers have told, by the model's name.
        known: What the usage of the last reply says: the number of messages up to it, their tokens, what was saved of them.
    """

    estimate: Callable[[BaseMessage], int]
    tokens: list[int] = field(default_factory=lambda: [0])
    chain: list[str] = field(default_factory=lambda: [""])
    savings: list[int] = field(default_factory=lambda: [0])
    covered: list[int] = field(default_factory=list)
    seen: int = 0
    cut: Cut = Cut()
    windows: Mapping[str, int] = field(default_factory=dict)
    known: tuple[int, int, int] | None = None
    _has_records: bool = False

    def copy(self) -> "Reading":
        """Return an independent copy."""
        return replace(self, tokens=[*self.tokens], chain=[*self.chain], savings=[*self.savings], covered=[*self.covered])

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            size = self.estimate(message)
            self.tokens.append(self.tokens[-1] + size)
            if isinstance(message, SystemMessage):
                continue
            self.chain.append(_digest(self.chain[-1].encode(), _content_of(message)))
            if isinstance(message, AIMessage):
                self._read_reply(message)
            elif isinstance(message, ToolMessage):
                self.savings.append(self.savings[-1] + (max(0, size - _LINE_TOKENS) if is_cuttable(message) else 0))
                self.covered.append(len(self.chain) - 1)

    def _read_reply(self, message: AIMessage) -> None:
        self.seen = len(self.covered)
        record = own_metadata(message).get(COMPACTED)
        is_valid = record is not None and self._take(record)
        self._has_records = self._has_records or record is not None
        usage, about = message.usage_metadata, message.response_metadata
        broken = is_cut_reply(message) or about.get("finish_reason") in _BROKEN_OFF
        if usage and about and not broken and is_valid is self._has_records:  # else what was sent for it is not known
            self.known = len(self.tokens) - 1, usage["input_tokens"] + usage["output_tokens"], self.saved(self.cut)

    def _take(self, record: Any) -> bool:
        """Take up what a record says; return whether it is valid."""
        try:
            messages, before, also = record["messages"], record["results"], tuple(record.get("also", ()))
            numbers = (messages, before, *also)
            if not all(isinstance(one, int) and one >= 0 for one in numbers) or self.chain[messages] != record["digest"]:
                return False
            cut = Cut(before, also)
            if cut.end > len(self.covered):
                return False
            self.windows = {**self.windows, **{str(name): int(size) for name, size in record.get("windows", {}).items()}}
        except (AttributeError, LookupError, TypeError, ValueError):  # a history may come from anywhere
            return False
        self.cut = cut
        return True

    # ------------------------------------------------------------------------------------------ sizes

    def saving(self, number: int) -> int:
        """Return the tokens that cutting a result saves."""
        return self.savings[number + 1] - self.savings[number]

    def saved(self, cut: Cut) -> int:
        """Return the tokens that a cut saves."""
        return self.savings[cut.before] + sum(self.saving(number) for number in cut.also)

    def size(self, cut: Cut, declared: int) -> int:
        """Return the tokens of a request: what the last reply's usage says, and the estimate of what is new.

        Args:
            cut: What is cut of it.
            declared: The estimated tokens of its tools.
        """
        estimated = self.tokens[-1] + declared - self.saved(cut)
        if self.known is None:
            return estimated
        place, said, saved = self.known
        ratio = min(4.0, max(0.25, said / max(1, self.tokens[place] + declared - saved)))
        told = said + self.tokens[-1] - self.tokens[place] - int((self.saved(cut) - saved) * ratio)
        return max(told, estimated // 4)  # some servers do not count what their cache holds

    def record(self, cut: Cut, windows: Mapping[str, int]) -> dict[str, Any] | None:
        """Return the record of a cut; None where nothing is cut."""
        if not cut.end:
            return None
        messages = self.covered[cut.end - 1]
        made: dict[str, Any] = {"messages": messages, "digest": self.chain[messages], "results": cut.before}
        return made | ({"also": list(cut.also)} if cut.also else {}) | ({"windows": dict(windows)} if windows else {})


# ---------------------------------------------------------------------------------------------- what is cut


def results_cut(reading: Reading, keep: int, size: Callable[[Cut], int], limit: float, window: float) -> Cut:
    """Return what to cut of a history whose request would pass a limit.

    All results older than the newest `keep` are cut at once, so that the next requests begin alike for long. Where that is not enough, more
    are: first of the others that the model has seen, then of those that it has not, the largest first. What it has not seen, and what is no
    longer than it may read of a result at once, it sees while the window has room.

    Args:
        reading: The history.
        keep: The number of the newest results that stay.
        size: Returns the tokens of the request with a cut.
        limit: The most tokens that it may have.
        window: The context window.
    """
    count, before = len(reading.covered), reading.cut.before
    cut = _with_end(reading.cut, max(before, min(count - keep, reading.seen)))
    if reading.saved(cut) == reading.saved(reading.cut):
        cut = reading.cut
    seen = range(cut.before, reading.seen)
    new = range(max(cut.before, reading.seen), count)
    for numbers, least, most in ((seen, 0.0, limit), (new, window / 4, limit), (new, 0.0, window)):
        large = sorted((one for one in numbers if not cut.has(one)), key=lambda one: (-reading.saving(one), one))
        for number in large:
            if size(cut) <= most or reading.saving(number) <= least:
                break
            cut = Cut(cut.before, tuple(sorted((*cut.also, number))))
    return cut


def _with_end(cut: Cut, before: int) -> Cut:
    return Cut(before, tuple(number for number in cut.also if number >= before))


_SAID = (
    re.compile(r"(?:maximum|max|limit|context (?:length|window|size)|n_ctx|allowed)\D{0,60}?(\d[\d,]*)", re.IGNORECASE),
    re.compile(r"(\d[\d,]*)\D{0,20}(?:maximum|limit)", re.IGNORECASE),
)


def window_said(error: BaseException) -> int | None:
    """Return the context window that the words of a server's error name; None if they name none."""
    found = next((match for pattern in _SAID if (match := pattern.search(str(error)))), None)
    size = 0 if found is None else int(found[1].replace(",", ""))
    return size if size > 1 else None


# ---------------------------------------------------------------------------------------------- lines for results


_lines: MessageMemo[ToolMessage] = MessageMemo()  # the same line in every turn, so that what was encoded of it is found again
_kept: Kept = {}  # of histories as they are; what is sent of them ends in the same messages


def handle_of(message: ToolMessage, number: int) -> str:
    """Return the handle of a result: its number among all results, and a digest by which it is known when the number has changed."""
    return f"r{number + 1}-{_digest(_content_of(message))[:6]}"


def line_for(message: ToolMessage, number: int, tool_name: str) -> ToolMessage:
    """Return the message that stands for a result: how long it was, what it began with, how to read it. A cache mark stays."""
    known = _lines.get(message, (number, tool_name))
    if known is not None:
        return known
    text, blocks = text_of(message), message.content if isinstance(message.content, list) else []
    media = [one for one in blocks if isinstance(one, Mapping) and _is_media(one)]
    kinds = Counter("picture" if "image" in str(one.get("type")) else "file" for one in media)
    length = [f"{len(text):,} characters"] if text else []
    length += [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()]
    beginning = " ".join(text[: 4 * _BEGINNING].split())[:_BEGINNING]
    said = f', beginning "{beginning}"' if beginning else ""
    line = f'[Left out: {", ".join(length)}{said}. Read it with {tool_name}(handle="{handle_of(message, number)}").]'
    marks = {key: value for one in blocks if isinstance(one, Mapping) for key, value in _marks_of(one).items()}
    made = message.model_copy(update={"content": [{"type": "text", "text": line, **marks}] if marks else line})
    _lines.put(message, (number, tool_name), made)
    return made


def _is_media(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _MEDIA


def _marks_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's cache mark of a block."""
    extras = block.get("extras")
    marks = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return marks | (
        {"extras": {"cache_control": extras["cache_control"]}} if isinstance(extras, Mapping) and "cache_control" in extras else {}
    )


@dataclass(slots=True)
class _Lines:
    """A fold that makes the lines for cut results, by the places of the messages."""

    cut: Cut
    tool_name: str
    copies: dict[int, BaseMessage] = field(default_factory=dict)
    _places: int = 0
    _results: int = 0

    def copy(self) -> "_Lines":
        return replace(self, copies={**self.copies})

    def read(self, messages: Sequence[BaseMessage]) -> None:
        for place, message in enumerate(messages, self._places):
            if isinstance(message, ToolMessage):
                if self.cut.has(self._results) and is_cuttable(message):
                    self.copies[place] = line_for(message, self._results, self.tool_name)
                self._results += 1
        self._places += len(messages)


# ---------------------------------------------------------------------------------------------- requests


class Compactor(TurnWrapper):
    """The compaction of one run: a wrapper of its turns, what admits its calls of `read_result`, and what knows the size of its requests.

    Args:
        settings: The settings.
        model: The run's own model.
        window: The context window that the caller has set; None for none.
        profiled: Returns the context window of a model's profile for the keywords of a request.
        is_forced: Whether the first turn must call one of the caller's tools.
        reads_sent: Whether something may change the messages of a request: then what was sent may be read, and no more.

    Attributes:
        settings: The given settings.
        is_forced: As given.
        request: The run's requests, but for their messages, choice and configuration.
    """

    layer: ClassVar[str] = "compaction"

    def __init__(
        self,
        settings: Compaction,
        model: Any,
        window: int | None,
        profiled: Callable[[Any, Mapping[str, Any]], int | None],
        *,
        is_forced: bool,
        reads_sent: bool,
    ) -> None:
        self.settings = settings
        self.is_forced = is_forced
        self._model = model
        self._given = window
        self._profiled = profiled
        self._reads_sent = reads_sent
        self._learned: dict[str, int] = {}
        self._window: int | None = None
        self.request: TurnRequest
        self._history: Sequence[BaseMessage] = ()
        self._sent: Sequence[BaseMessage] | None = None
        self._declared: tuple[Any, int] = None, 0
        self._reads: Counter[str] = Counter()

    def wrapper(self) -> TurnWrapper:
        """Return this wrapper."""
        return self

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make the turn of the shortened request; after the server's error that it is too long, of one that is shortened once more."""
        turn = _Turn(self, request)
        while not turn.is_over:
            yield from turn.notices()
            try:
                yield from map(turn.part, proceed(turn.request))
                turn.is_over = True
            except ContextOverflowError as error:
                turn.shorten(error)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        turn = _Turn(self, request)
        while not turn.is_over:
            for notice in turn.notices():
                yield notice
            try:
                async with aclosing(cast("AsyncGenerator[TurnPart, None]", proceed(turn.request))) as parts:
                    async for part in parts:
                        yield turn.part(part)
                turn.is_over = True
            except ContextOverflowError as error:
                turn.shorten(error)

    # ------------------------------------------------------------------------------------------ the run

    def follow(self, history: Sequence[BaseMessage]) -> None:
        """Take the run's own list of messages, which grows."""
        self._history = history

    def tokens(self, history: Sequence[BaseMessage] | None = None) -> int:
        """Return the tokens of the next request of the run's own model, after what is cut of it."""
        asked = replace(self.request, messages=list(self._history if history is None else history))
        return _Shape(self, asked).size

    def declared(self, request: TurnRequest) -> int:
        """Return the estimated tokens of the tools of a request."""
        form, tokens = self._declared
        if form is not request.form:
            tokens = self._model._estimated_tokens([], request.form.tools)
            self._declared = request.form, tokens
        return tokens

    def window(self, request: TurnRequest, windows: Mapping[str, int]) -> int | None:
        """Return the context window of the model that makes a request; None if it is not known.

        Args:
            request: The request.
            windows: What servers have told, by the records of the history.
        """
        name = model_name(request.model)
        is_own = self._given is not None and name == model_name(self._model)
        of_profile = None if is_own else self._profiled(request.model, request.keywords)
        known = (self._given, of_profile, windows.get(name), self._learned.get(name))
        return min((size for size in known if size is not None), default=None)

    def learn(self, request: TurnRequest, size: int) -> None:
        """Remember the context window of the model that makes a request."""
        self._learned[model_name(request.model)] = size

    @property
    def learned(self) -> Mapping[str, int]:
        """The context windows that servers have told in this run, by the model's name."""
        return self._learned

    def noted(self, request: TurnRequest, window: int | None, *, is_cut: bool) -> None:
        """Note what a request has sent."""
        self._sent, self._window = request.messages, window
        if is_cut:
            self._reads.clear()

    # ------------------------------------------------------------------------------------------ calls

    @property
    def repeats(self) -> int:
        """How often one part of a result was read since the last cut."""
        return max(self._reads.values(), default=0)

    def told(self, listener: Callable[[ToolCallResult], Any]) -> Callable[[ToolCallResult], Any]:
        """Return a listener of the caller's for results as one that is not told of ours."""
        return lambda result: None if result.call.name == self.settings.tool_name else listener(result)

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Answer the calls of `read_result`; nothing of the caller's runs for them."""
        return [replace(answer, planned=[self._answered(one) for one in answer.planned]) for answer in answers]
        yield  # makes it a generator

    def _answered(self, planned: PlannedCall) -> PlannedCall:
        call = planned.call
        if call.name != self.settings.tool_name or call.args is None or call.waits:
            return planned
        return replace(planned, rejected=self._result(call))

    def _result(self, call: ToolCallRecord) -> ToolCallResult:
        messages = self._history
        if self._reads_sent:
            if self._sent is None:
                return failed(call, f"Not read: the run has gone on elsewhere since. Call {call.spelling} again.", LookupError)
            messages = self._sent
        try:
            wanted = ReadResult.model_validate(call.args)
            content = read_part(messages, wanted, self._window)
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            return failed(call, f"These arguments cannot be read: {'; '.join(problems)}", ValueError)
        except LookupError as error:
            return failed(call, str(error.args[0]), LookupError)
        self._reads[wanted.model_dump_json()] += 1
        message = ToolMessage(content=cast("Any", content), tool_call_id=call.id, name=call.spelling)
        return ToolCallResult(call, message)


def model_name(model: Any) -> str:
    """Return the name of a model in records, `<vendor>/<model>`."""
    params = model._get_ls_params()
    return f"{params.get('ls_provider')}/{params.get('ls_model_name') or type(model).__name__}"


class _Shape:
    """What is sent of the messages of a request.

    Args:
        compactor: The run's compaction.
        request: The request.
        limit: The most tokens that it may have; None: as the settings say.

    Attributes:
        cut: What is cut.
        size: Its tokens.
        before: Its tokens without what this request cuts for the first time.
        window: The context window; None if it is not known.
    """

    def __init__(self, compactor: Compactor, request: TurnRequest, limit: float | None = None) -> None:
        model, settings = request.model, compactor.settings
        self.history: GrowingHistory = growing(request.messages, _kept)
        key = ("compaction", type(model), getattr(model, "custom_get_token_ids", None))
        self.reading: Reading = self.history.derive(key, partial(Reading, lambda one: model._estimated_tokens([one], ())))
        declared = compactor.declared(request)
        self.window = compactor.window(request, self.reading.windows)
        self.before = self.size = self.reading.size(self.reading.cut, declared)
        self.cut = self.reading.cut
        most = limit if limit is not None or self.window is None else settings.at * self.window
        if most is not None and self.size > most:
            window = most if limit is not None or self.window is None else self.window
            # where results are not enough, a summary of whole turns is made of what `results_cut` leaves
            self.cut = results_cut(self.reading, settings.keep, lambda cut: self.reading.size(cut, declared), most, window)
            self.size = self.reading.size(self.cut, declared)

    @property
    def is_new(self) -> bool:
        """Whether the request cuts something for the first time."""
        return self.cut != self.reading.cut

    def messages(self, tool_name: str) -> list[BaseMessage]:
        """Return the messages to send. What is kept of a history goes on from here."""
        made = [*self.history]
        if self.cut.end:
            lines = self.history.derive(("lines", self.cut, tool_name), partial(_Lines, self.cut, tool_name))
            for place, line in lines.copies.items():
                made[place] = line
        self.history.keep()
        return made

    @property
    def newly_cut(self) -> int:
        """The number of results that the request cuts for the first time."""
        old, new, reading = self.reading.cut, self.cut, self.reading
        return sum(1 for one in range(old.before, new.end) if new.has(one) and not old.has(one) and reading.saving(one))


class _Turn:
    """One turn, whose request is shortened, once more where the server finds it too long.

    Args:
        compactor: The run's compaction.
        request: The request as it came.

    Attributes:
        is_over: Whether the turn has its end.
        request: The request to make.
    """

    def __init__(self, compactor: Compactor, request: TurnRequest) -> None:
        self.is_over = False
        self._compactor = compactor
        self._asked = request
        self._has_left = self._is_again = False
        self._set(_Shape(compactor, request))

    def _set(self, shape: _Shape) -> None:
        self._shape = shape
        self.request = replace(self._asked, messages=shape.messages(self._compactor.settings.tool_name))
        self._compactor.noted(self._asked, shape.window, is_cut=shape.is_new)
        self._record = shape.reading.record(shape.cut, {**shape.reading.windows, **self._compactor.learned})

    def notices(self) -> Iterator[TurnPart]:
        """Yield what listeners are told before the request."""
        shape = self._shape
        if shape.is_new:
            event = ContextCompacted(run_id="", what="results", results=shape.newly_cut, from_tokens=shape.before, to_tokens=shape.size)
            yield Notice(replace(event, window=shape.window))

    def part(self, part: TurnPart) -> TurnPart:
        """Return a part of the turn; the last one of the reply with the record of what was cut."""
        if isinstance(part, Mark):
            return part
        self._has_left = True
        if self._record is None or getattr(part, "chunk_position", "last") != "last":
            return part
        return with_record(part, self._record)

    def shorten(self, error: ContextOverflowError) -> None:
        """Shorten the request once more, after the server's error that it is too long.

        Raises:
            ContextOverflowError: The error, where the request cannot be shortened, was shortened already, or its reply has begun.
        """
        if self._has_left or self._is_again:
            raise error
        self._is_again = True
        size, said = self._shape.size, window_said(error)
        self._compactor.learn(self._asked, said or size)
        limit = min(size * 3 / 4, self._compactor.settings.at * (said or size))
        shape, before = _Shape(self._compactor, self._asked, limit), self._shape.cut
        if shape.reading.saved(shape.cut) <= shape.reading.saved(before):
            raise error
        self._set(shape)


def with_record(message: _Message, record: Mapping[str, Any]) -> _Message:
    """Return a message or chunk with the record of what was cut of its request."""
    own = {**own_metadata(message), COMPACTED: dict(record)}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, own)})


# ---------------------------------------------------------------------------------------------- the tool that reads results


_PIECE: Final = 1000
"""Characters of one line of a result, as it is read; longer lines are several."""

_LEAST: Final = 1000
_WITHOUT_WINDOW: Final = 24_000
_HANDLE = re.compile(r"r?(\d{1,9})(?:-([0-9a-f]{6}))?")
_ABOUT = (
    "Read the result of an earlier tool call again that was left out of the conversation to save space: a line in its place names the "
    "handle. Whole if it is short enough; else read it in parts, or only the lines that contain a text."
)


_ARGUMENTS: Final[Mapping[str, Any]] = {  # shorter than what pydantic makes of the class, for it is sent with every request
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "The handle, as the line names it."},
        "find": {"type": "string", "description": "Only the lines that contain this text, in upper or lower case, with their numbers."},
        "start": {"type": "integer", "description": "The number of the first line to read, from 1 on."},
        "lines": {"type": "integer", "description": "How many lines to read at most."},
    },
    "required": ["handle"],
}


class ReadResult(BaseModel):
    """The arguments of a call that reads a result."""

    handle: str
    find: str | None = None
    start: int | None = Field(default=None, ge=1)
    lines: int | None = Field(default=None, ge=1)


@lru_cache(maxsize=16)
def reading_tool(name: str) -> BaseTool:
    """Return the tool to declare under this name. Runs answer its calls themselves."""

    def unread(**_: Any) -> str:
        """Raise, because only a run has results."""
        raise LookupError("only a run with compact= can read its results")

    return StructuredTool(name=name, description=_ABOUT, args_schema=dict(_ARGUMENTS), func=unread)


def read_part(messages: Sequence[BaseMessage], wanted: ReadResult, window: int | None) -> str | list[Any]:
    """Return the content of a result, or a part of it: at most about a quarter of the context window.

    Args:
        messages: The history.
        wanted: What is wanted.
        window: The context window; None if it is not known.

    Raises:
        LookupError: There is no such result; the text is for the model.
    """
    message, handle = _found(messages, wanted.handle)
    most = _WITHOUT_WINDOW if window is None else max(_LEAST, window // 4 * 3)  # three characters of a token: more in most languages
    text, media = text_of(message), [one for one in message.content if _is_media(one)] if isinstance(message.content, list) else []
    if wanted.find is None and wanted.start is None and wanted.lines is None and len(text) <= most:
        if not media:
            return text
        return [
            {key: value for key, value in one.items() if key != "cache_control"} if isinstance(one, dict) else one
            for one in message.content
        ]
    pieces = [line[at : at + _PIECE] for line in text.split("\n") for at in range(0, max(1, len(line)), _PIECE)]
    return _found_lines(pieces, wanted, handle, most) if wanted.find else _part_of(pieces, wanted, handle, most)


def _found(messages: Sequence[BaseMessage], given: str) -> tuple[ToolMessage, str]:
    """Return the result that a handle means, and its whole handle."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    match = _HANDLE.fullmatch(given.strip().strip("\"'`[]()").lower())
    number = int(match[1]) - 1 if match else -1
    if match and 0 <= number < len(results):
        known = handle_of(results[number], number)
        if match[2] is None or known.endswith(match[2]):
            return results[number], known
    for place, message in enumerate(results) if match and match[2] else ():
        if (known := handle_of(message, place)).endswith(str(match and match[2])):
            return message, known
    example = next((handle_of(one, place) for place, one in enumerate(results) if is_cuttable(one)), "r1-0a1b2c")
    raise LookupError(f"There is no result {given[:60]!r}. A handle stands in the line in place of a result, and looks like {example!r}.")


def _part_of(pieces: Sequence[str], wanted: ReadResult, handle: str, most: int) -> str:
    """Return lines of a result, with where they stand."""
    first = (wanted.start or 1) - 1
    if first >= len(pieces):
        return f"[{handle} has {len(pieces):,} lines: there is no line {first + 1:,}.]"
    last = len(pieces) if wanted.lines is None else min(len(pieces), first + wanted.lines)
    ends, total = list[int](), 0
    for piece in pieces[first:last]:
        total += len(piece) + 1
        ends.append(total)
    shown = first + max(1, bisect_left(ends, most))
    last = min(last, shown)
    more = f" Go on with start={last + 1}." if last < len(pieces) else ""
    head = f"[Lines {first + 1:,} to {last:,} of {len(pieces):,} of {handle}.{more}]"
    return "\n".join([head, *pieces[first:last]])


def _found_lines(pieces: Sequence[str], wanted: ReadResult, handle: str, most: int) -> str:
    """Return the lines of a result that contain a text, with their numbers."""
    text, start = str(wanted.find).lower(), (wanted.start or 1) - 1
    numbers = [number for number in range(start, len(pieces)) if text in pieces[number].lower()]
    if not numbers:
        return f"[No line of the {len(pieces):,} lines of {handle} contains {wanted.find!r}.]"
    shown, total = list[str](), 0
    for number in numbers[: wanted.lines]:
        line = f"{number + 1}: {pieces[number]}"
        total += len(line) + 1
        if shown and total > most:
            break
        shown.append(line)
    more = f" Go on with start={numbers[len(shown)] + 1}." if len(shown) < len(numbers) else ""
    return "\n".join([f"[{len(numbers):,} of {len(pieces):,} lines of {handle} contain {wanted.find!r}.{more}]", *shown])
