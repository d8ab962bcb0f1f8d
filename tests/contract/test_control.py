"""How a run is steered: calls that wait for approval, policies of tools, progress, cancelling; over every wire, in every way."""

import json
import threading
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import Decision, RetryPolicy, ToolContext, ToolPolicy, pending_calls, stop_reason
from tests.contract.stories import PIXEL
from tests.contract.talk import Run, Start
from tests.support.inboxes import Readings
from tests.support.script import Call, Turn

QUESTION = HumanMessage("How warm is it in Paris? Tell Anna.")


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


async def test_a_call_waits_until_it_is_approved(start: Start, run: Run) -> None:
    """What needs no approval runs; the other call waits, goes through JSON, is edited, runs once with that, and the answer follows."""
    sent: list[str] = []

    def send_mail(to: str, text: str) -> str:
        """Send a mail."""
        sent.append(f"{to}: {text}")
        return f"Sent to {to}."

    calls = [Call("get_temperature", {"city": "Paris"}), Call("send_mail", {"to": "Anna", "text": "21 °C"})]
    settings = {"tools": [get_temperature, send_mail], "requires_approval": ["send_mail"]}
    talk = start([Turn("Let me look.", calls), Turn("I told her.")], **settings, approval_key="a secret")
    ran = await run(talk.model, [QUESTION])
    assert (stop_reason(ran.message), [call["name"] for call in ran.message.tool_calls]) == ("calls_pending", ["send_mail"])
    assert [message.type for message in ran.new] == ["ai", "tool"]
    history = messages_from_dict(json.loads(json.dumps(messages_to_dict([QUESTION, *ran.new]))))
    (call,) = pending_calls(history)
    assert (call.kind, call.args) == ("approval", {"to": "Anna", "text": "21 °C"})
    decision = Decision.from_dict(json.loads(json.dumps(call.edit({"to": "Bert", "text": "21 °C"}).to_dict())))
    resumed = await run(talk.model, history, resume=[decision])
    assert sent == ["Bert: 21 °C"]
    assert (resumed.message.text, stop_reason(resumed.message)) == ("I told her.", "complete")
    assert [message.type for message in resumed.new] == ["tool", "ai"]
    first, second = talk.texts()
    assert first == "Paris: 21 °C"
    assert "It ran with" in second
    assert "Sent to Bert." in second
    assert "digest" not in str(talk.server.exchanges[-1].json)


@pytest.mark.further
async def test_what_the_user_says_joins_the_run(start: Start, run: Run) -> None:
    """What the user says while a run goes on is sent behind the results of a turn, and after the last reply. A stored history has it."""
    picture = [{"type": "text", "text": "Here:"}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]
    inbox = Readings([["Only in Celsius.", HumanMessage(picture)], ["Quickly."], ["One more thing."]])
    first = [Call("get_temperature", {"city": city}) for city in ("Paris", "Rome")]
    second = [Call("get_temperature", {"city": "Oslo"})]
    script = [Turn("Let me look.", first), Turn("Once more.", second), *map(Turn, ("All are 21 °C.", "Fine.", "Yes.", "Yes."))]
    talk = start(script, tools=[get_temperature])
    ran = await run(talk.model, [QUESTION], inbox=inbox)
    assert "".join(message.type[0] for message in ran.new) == "atthhathaha" and not inbox.taken[4:]
    assert (ran.message.text, stop_reason(ran.message)) == ("Let me look.\nOnce more.\nAll are 21 °C.\nFine.", "complete")
    for stored in (ran.new, [ran.message]):
        await run(talk.model, [QUESTION, *stored, HumanMessage("And?")])
    sent = [talk.wire.messages(exchange) for exchange in talk.server.exchanges]
    assert all(later.startswith(earlier[:-1].rstrip()) for earlier, later in pairwise(sent[:5])) and sent[4] == sent[5]


async def test_policies_progress_and_cancelling(start: Start, run: Run) -> None:
    """A tool that fails is tried again and tells how far it is; its long result is cut; the caller then ends the run, which returns."""
    seen: list[Any] = []
    cancel, tries = threading.Event(), iter([True, False])

    def search(city: str, context: ToolContext) -> str:
        """Search for a city."""
        context.report(f"{city}?")
        if next(tries):
            raise ConnectionError("once")
        return "x" * 1000

    policy = ToolPolicy(retry=RetryPolicy(wait_scale=0), retry_on=(ConnectionError,), max_output=300)
    talk = start([Turn("Let me look.", [Call("search", {"city": "Paris"})])], tools=[search], policies={"search": policy})

    def executed(result: Any) -> None:
        seen.append((result.attempts, len(result.content), len(result.full_content)))
        cancel.set()

    ran = await run(talk.model, [QUESTION], on_progress=lambda call, value: seen.append(value), on_executed=executed, cancel=cancel)
    assert seen == ["Paris?", "Paris?", (2, 300, 1000)]
    assert [message.type for message in ran.new] == ["ai", "tool"]
    assert (stop_reason(ran.message), ran.message.text) == ("cancelled", "Let me look.")
    assert len(talk.server.exchanges) == 1
    assert "ToolContext" not in str(talk.server.exchanges[0].json["tools"])
