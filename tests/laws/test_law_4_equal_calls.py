"""Law 4 on streams of whole calls, many of them equal: none runs that was not meant, and none is lost in silence."""

import json
from collections import Counter
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import law

IDS = ("none", "empty", "own", "shared")
INDICES = ("none", "all 0", "own")
RESENT = ("never", "never", "all at the end", "each at once")

ran: list[tuple[str, int | None]] = []


@tool
def f(q: int | None = None) -> str:
    """Note a number."""
    ran.append(("f", q))
    return "noted"


@tool
def g(q: int | None = None) -> str:
    """Note a number."""
    ran.append(("g", q))
    return "noted"


calls = st.lists(st.tuples(st.sampled_from(("f", "g")), st.sampled_from((None, 1, 2))), min_size=1, max_size=4)


def fragment(number: int, call: tuple[str, int | None], ids: str, index: str, typed: bool) -> dict[str, Any]:
    """A whole call as a server of this kind writes it."""
    name, q = call
    args = {} if q is None else {"q": q}
    head: dict[str, Any] = {"type": "function"} if typed else {}
    if ids != "none":
        head["id"] = {"empty": "", "own": f"call_{number}", "shared": "call_0"}[ids]
    if index != "none":
        head["index"] = number if index == "own" else 0
    return {**head, "function": {"name": name, "arguments": json.dumps(args)}}


def cut(fragments: list[dict[str, Any]], data: st.DataObject) -> list[list[dict[str, Any]]]:
    """The fragments in one chunk or in many."""
    chunks: list[list[dict[str, Any]]] = [[]]
    for one in fragments:
        if chunks[-1] and data.draw(st.booleans()):
            chunks.append([])
        chunks[-1].append(one)
    return chunks


@law(20, many=2000)
def test_law_4_whole_calls_run_as_often_as_they_are_meant(data: st.DataObject) -> None:
    """Never more often, and what does not run is refused: whatever ids, indices and chunks say, and where calls are sent once more.

    Equal calls under one id are one, and a call without arguments is under the id of others a placeholder for theirs.
    """
    meant, ids, index = data.draw(calls), data.draw(st.sampled_from(IDS)), data.draw(st.sampled_from(INDICES))
    typed = data.draw(st.booleans())
    sent = [fragment(number, call, ids, index, typed) for number, call in enumerate(meant)]
    header = sorted(sent[0].keys() - {"function"})
    resent = data.draw(st.sampled_from(RESENT)) if header else "never"
    if resent != "never":
        left_out = data.draw(st.sets(st.sampled_from(header), min_size=1))
        again = [{key: value for key, value in one.items() if key not in left_out} for one in sent]
        sent = [*sent, *again] if resent == "all at the end" else [one for pair in zip(sent, again, strict=True) for one in pair]
    ran.clear()
    chunks = [AIMessageChunk("", additional_kwargs={"tool_calls": fragments}) for fragments in cut(sent, data)]
    run = ScriptedChatModel(tools=[f, g], replies=[chunks, "done"], parallel=False).invoke("go")
    results = [message for message in new_messages(run) if isinstance(message, ToolMessage)]
    refused = sum(message.status == "error" for message in results)
    assert not Counter(ran) - Counter(meant)
    assert len(ran) + refused == len(results)
    least = {call for call in meant if call[1] is not None} if ids == "shared" else meant
    assert len(ran) + refused >= len(least)
