"""Any history, once repaired, is a request that Google accepts, for newer models and for older ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools.errors import UnsupportedFeatureError
from langchain_autotools.history import to_send
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from tests.support.strict_google import Known, check_request

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE: dict[str, Any] = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
IDS = st.sampled_from(["a", "b", "c", ""])
NAMES = st.sampled_from(["f", "g h", "1 café"])
ARGUMENTS = st.sampled_from([{}, {"q": 1}, {"größe": [None, 1.5]}])
INVALID = {"id": "i", "name": "f", "args": '{"q": ', "error": "cut", "type": "invalid_tool_call"}

CALL = st.builds(lambda identifier, name, args: {"id": identifier, "name": name, "args": args}, IDS, NAMES, ARGUMENTS)
SAID: list[Any] = [
    "ok",
    "",
    " ",
    [{"type": "thinking", "thinking": "z", "signature": "s"}, {"type": "text", "text": "u"}],
    [{"type": "reasoning"}],
]
HEARD: list[Any] = ["hi", "", ["x", IMAGE], [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]]
MESSAGE: st.SearchStrategy[BaseMessage] = st.one_of(
    st.sampled_from(HEARD).map(HumanMessage),
    st.sampled_from(["be brief", ""]).map(SystemMessage),
    st.builds(
        lambda content, calls, invalid: AIMessage(content, tool_calls=calls, invalid_tool_calls=invalid),
        st.sampled_from(SAID),
        st.lists(CALL, max_size=3),
        st.sampled_from([[], [INVALID]]),
    ),
    st.builds(
        lambda content, identifier, status: ToolMessage(content, tool_call_id=identifier, status=status),
        st.sampled_from(["r", "", '{"x": 1}', [IMAGE]]),
        IDS,
        st.sampled_from(["success", "error"]),
    ),
    st.builds(lambda role: ChatMessage("said", role=role), st.sampled_from(["assistant", "user"])),
)


@given(st.lists(MESSAGE, min_size=1, max_size=9))
def test_any_history_is_accepted(history: list[BaseMessage]) -> None:
    """Roles, pairing, names, signatures and media are in order, whatever came in; a system message alone is no request."""
    for older in (False, True):
        mapper, mended = GenerateContentMapper(older=older), to_send(history)
        if mended and all(isinstance(message, SystemMessage) for message in mended):
            with pytest.raises(UnsupportedFeatureError, match="add a HumanMessage"):
                mapper.encode_request(mended, {})
            continue
        body = mapper.encode_request(mended, {})
        if json.loads(body)["contents"]:
            check_request(body, Known(signed=not older))
