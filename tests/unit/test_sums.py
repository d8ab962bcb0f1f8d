"""What a stream's chunks come to: the sum that LangChain's `+` makes of them, however the pieces are cut."""

from functools import reduce
from operator import add
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.utils import message_chunk_to_message

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import whole

TEXTS = st.sampled_from(["", "a", " b", "\n", "é"])
NUMBERS = st.integers(0, 2)
BLOCKS = st.one_of(
    st.builds(lambda text, index: {"type": "text", "text": text, "index": index}, TEXTS, NUMBERS),
    st.builds(lambda text, index: {"type": "thinking", "thinking": text, "index": index + 3}, TEXTS, NUMBERS),
    st.builds(lambda text, index: {"type": "thinking", "thinking": text, "signature": "s", "index": index + 3}, TEXTS, NUMBERS),
    st.builds(lambda text, index: {"type": "reasoning", "reasoning": text, "index": index + 6}, TEXTS, NUMBERS),
)
KEYWORDS = st.one_of(
    st.just({}),
    st.builds(lambda text: {"reasoning_content": text}, TEXTS),
    st.builds(lambda text: {"refusal": text}, TEXTS),
    st.builds(lambda text: {"reasoning_content": text, "refusal": text}, TEXTS),
)
METADATA = st.sampled_from([{}, {}, {"model_provider": "openai"}])


@st.composite
def pieces(draw: st.DrawFn) -> list[AIMessageChunk]:
    """The chunks of a reply, in texts or in blocks."""
    content: Any = draw(st.sampled_from([TEXTS, st.lists(BLOCKS, max_size=2)]))
    made = st.builds(AIMessageChunk, content=content, additional_kwargs=KEYWORDS, response_metadata=METADATA, id=st.just("reply"))
    return draw(st.lists(made, min_size=1, max_size=12))


@given(pieces())
def test_the_message_of_a_stream_is_the_sum_of_its_chunks(reply: list[AIMessageChunk]) -> None:
    """Runs of text, of thinking and of reasoning, mixed with whatever else a chunk says."""
    model = ScriptedChatModel(replies=[reply])
    chunks = list(model.stream("Go"))
    (message,) = new_messages(chunks[-1])
    assert message == whole(model, message_chunk_to_message(reduce(add, chunks)))  # type: ignore[arg-type]
