"""What is seen of killed workers, and what holds of the calls and the events of all runs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools.event_types import CallDiscarded, CallResult, CallsPending, CallStarted, MessageDiscarded, RunEvent, TextDelta


@dataclass
class Figures:
    """What was seen.

    Attributes:
        kills: How many processes were killed while they worked.
        replaced: How many of them were not restarted: a worker of another id came instead.
        frozen: How many times a worker was frozen for longer than its lease, and then went on.
        runs: How many runs have ended.
        elsewhere: How many of them ended in the worker that lives on.
        calls: How many calls they made.
        twice: Keys of calls that ran twice and must not.
        repeated: How many calls ran again that may.
        interrupted: How many calls were answered as interrupted.
        swapped: Results that belong to another call.
        wrong: What else is not as it must be.
        taken: How many messages joined a run that went on.
    """

    kills: int = 0
    replaced: int = 0
    frozen: int = 0
    runs: int = 0
    elsewhere: int = 0
    calls: int = 0
    twice: list[str] = field(default_factory=list)
    repeated: int = 0
    interrupted: int = 0
    swapped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    taken: int = 0


def look_at_calls(
    messages: Sequence[BaseMessage], effects: Counter[str], figures: Figures, is_rejected: Callable[[str], bool] = lambda _: False
) -> None:
    """Each call of some messages has its own result, and ran once, or not at all where it was rejected."""
    asked = [call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
    results = [one for one in messages if isinstance(one, ToolMessage)]
    if [call["id"] for call in asked] != [one.tool_call_id for one in results]:
        figures.wrong.append(f"calls without their result: {messages}")
    for call, result in zip(asked, results, strict=False):
        figures.calls += 1
        key, times = call["args"]["key"], effects[call["args"]["key"]]
        if is_rejected(key):
            if times or "done" in str(result.content):
                figures.wrong.append(f"{key} was rejected, ran {times} times, and is answered with {result.content}")
            continue
        was_interrupted = "interrupted, outcome unknown" in str(result.content)
        figures.interrupted += was_interrupted
        if not was_interrupted and result.content != f"done {key}":
            figures.swapped.append(f"{key}: {result.content}")
        if call["name"] == "look":
            figures.repeated += times > 1
        elif times > 1:
            figures.twice.append(key)
        if (not times and not was_interrupted) or (was_interrupted and call["name"] == "look"):
            figures.wrong.append(f"{key} ran {times} times, and is answered with {result.content}")


def look_at_texts(told: Sequence[RunEvent], messages: Sequence[BaseMessage], figures: Figures) -> None:
    """What is told of messages that are not void is what the messages say; each call that begins has an end, or waits."""
    texts: dict[str, str] = {}
    for event in told:
        if isinstance(event, TextDelta):
            texts[event.message_id] = texts.get(event.message_id, "") + event.text
        elif isinstance(event, MessageDiscarded):
            texts.pop(event.message_id, None)
    if texts != {str(one.id): one.text for one in messages if isinstance(one, AIMessage) and one.text}:
        figures.wrong.append(f"what is read is {texts} of {messages}")
    begun = Counter((event.run_id, event.call_id) for event in told if isinstance(event, CallStarted))
    ended = Counter((event.run_id, event.call_id) for event in told if isinstance(event, CallResult | CallDiscarded))
    waiting = ((event.run_id, call.id) for event in told if isinstance(event, CallsPending) for call in event.calls)
    ended.update(call for call in waiting if call in begun)
    if begun != ended:
        figures.wrong.append(f"calls are told of without an end: {begun} {ended} {messages}")
