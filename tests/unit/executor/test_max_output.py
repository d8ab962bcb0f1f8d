"""Results that are too long for a model: cut the same way every time, whole for the program."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool

from langchain_autotools import ToolExecutor, ToolPolicy
from langchain_autotools.executor.results import ToolCallResult, shortened
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import Way, both_ways, call

LIMIT = 300
IMAGE = {"type": "image", "base64": "iVBORw0KGgo=" * 200, "mime_type": "image/png"}


def result_of(content: Any, artifact: Any = None) -> ToolCallResult:
    """A result with this content."""
    record = ToolCallRecord("1", "look", "{}", {})
    return ToolCallResult(record, ToolMessage(content=content, tool_call_id="1", name="look", artifact=artifact))


def text_of(content: Any) -> str:
    """The text of all its blocks."""
    blocks = content if isinstance(content, list) else [content]
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in blocks)


texts = st.text(st.characters(codec="utf-8"), max_size=2000)
blocks = st.one_of(texts, st.builds(lambda text: {"type": "text", "text": text, "id": "b"}, texts), st.just(IMAGE))


@given(content=st.one_of(texts, st.lists(blocks, max_size=5)), limit=st.integers(200, 1500))
def test_what_is_cut_fits_and_keeps_its_head_and_tail(content: Any, limit: int) -> None:
    """It has no more characters than allowed, says how many there were, is cut once only, and loses nothing but text."""
    result = shortened(result_of(content), limit)
    short, whole = text_of(result.message.content), text_of(content)
    if len(whole) <= limit:
        assert (result.message.content, result.full_content) == (content, None)
        return
    assert len(short) == limit
    before, words, after = short.partition(f"\n\n[... {len(whole)} characters in all: the middle is left out here ...]\n\n")
    assert words and whole.startswith(before) and whole.endswith(after)
    assert 0 <= len(before) - len(after) <= 1
    assert (result.full_content, result.message.artifact) == (content, content)
    assert shortened(result_of(result.message.content), limit).message.content == result.message.content
    assert shortened(result_of(content), limit) == result
    if isinstance(content, list):
        assert [block for block in result.message.content if block == IMAGE] == [block for block in content if block == IMAGE]


@both_ways
def test_a_long_result_is_cut_for_the_model_and_whole_for_the_program(run: Way) -> None:
    """In its artifact, and on the result."""

    def read() -> str:
        """Read."""
        return "x" * 500 + "end"

    (result,) = run(ToolExecutor([read], policies={"read": ToolPolicy(max_output=LIMIT)}), call("read"))
    content = str(result.message.content)
    assert len(content) == LIMIT and content.endswith("xend") and "503 characters in all" in content
    assert result.message.artifact == result.full_content == "x" * 500 + "end"


@both_ways
def test_the_artifact_of_the_tool_itself_stays(run: Way) -> None:
    """The whole text is on the result then."""
    tool = StructuredTool.from_function(
        lambda: ("x" * 500, {"rows": 7}), name="read", description="Read.", response_format="content_and_artifact"
    )
    (result,) = run(ToolExecutor([tool], default_policy=ToolPolicy(max_output=LIMIT)), call("read"))
    assert (len(str(result.message.content)), result.message.artifact, result.full_content) == (LIMIT, {"rows": 7}, "x" * 500)


@both_ways
def test_what_is_short_enough_stays_as_it_is(run: Way) -> None:
    """To the last character."""

    def read() -> str:
        """Read."""
        return "x" * LIMIT

    (result,) = run(ToolExecutor([read], default_policy=ToolPolicy(max_output=LIMIT)), call("read"))
    assert (result.message.content, result.message.artifact, result.full_content) == ("x" * LIMIT, None, None)


@both_ways
def test_the_text_of_an_error_is_cut_as_well(run: Way) -> None:
    """A model reads it as it does any other result."""

    def read() -> str:
        """Read."""
        raise ValueError("x" * 5000)

    (result,) = run(ToolExecutor([read], default_policy=ToolPolicy(max_output=LIMIT)), call("read"))
    assert (result.message.status, len(str(result.message.content))) == ("error", LIMIT)


@both_ways
@pytest.mark.parametrize("limit", [None, LIMIT])
def test_each_result_in_a_bundle_is_cut_by_itself(run: Way, limit: int | None) -> None:
    """The bundle's own result is made of them."""

    def read() -> str:
        """Read."""
        return "x" * 500

    uses = [{"recipient_name": "read", "parameters": {}}] * 2
    executor = ToolExecutor([read], policies={"read": ToolPolicy(max_output=limit)})
    (result,) = run(executor, call("multi_tool_use.parallel", tool_uses=uses))
    assert [len(str(inner.message.content)) for inner in result.inner] == [limit or 500] * 2
