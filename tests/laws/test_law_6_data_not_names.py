"""Law 6, data, not names: which dialect a stream speaks is seen from its data, whatever the model, the server or the tools are called.

That no vendor's name occurs outside `providers/` is tested in tests/test_house.py.
"""

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from tests.laws.checks import check_told, data_of, differences
from tests.laws.stories import Script, executed, stories
from tests.laws.ways import QUESTION, WAYS, chat, law, run, serving
from tests.laws.workshop import Workshop

NAMES = [
    "any",
    "gpt-5",
    "o3",
    "claude-opus",
    "gemini-3-pro",
    "grok-4",
    "qwen3-coder",
    "kimi-k2",
    "glm-5",
    "deepseek-r1",
    "meta/llama:free",
    "模型",
]


def said(message: BaseMessage) -> Any:
    """A message as data, without the name of the model and the digest that stands for it."""
    return data_of(message, aside=frozenset({"id", "generation_id", "model_name", "origin"}))


@law(5)
def test_law_6_the_name_of_the_model_changes_nothing(data: st.DataObject) -> None:
    """The same stream means the same calls and texts under any model name."""
    story = data.draw(stories(least=1))
    way = data.draw(st.sampled_from(WAYS))
    with serving(Script(story)) as server:
        outcomes = []
        for name in (data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(NAMES))):
            server.exchanges.clear()
            shop = Workshop()
            ran = run(way, chat(server, model=name, tools=shop.tools(), streaming=True), [QUESTION])
            assert ran.error is None, ran.error
            check_told(ran.new, story)
            assert shop.sorted == executed(story)
            outcomes.append(list(map(said, ran.new)))
    assert differences(*outcomes) == []


@law(4)
def test_law_6_dialects_may_change_from_turn_to_turn(data: st.DataObject) -> None:
    """A gateway may put any server behind one name: nothing learnt from one turn is held against the next."""
    story = data.draw(stories(turns=4, least=3))
    shop = Workshop()
    with serving(Script(story)) as server:
        ran = run(data.draw(st.sampled_from(WAYS)), chat(server, tools=shop.tools(), streaming=True), [QUESTION])
    assert ran.error is None, ran.error
    check_told(ran.new, story)
    assert shop.sorted == executed(story)
