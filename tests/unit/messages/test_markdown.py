"""`markdown_of`, and the repr of a run message: what a person sees of a run."""

import json
import pickle
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

from langchain_autotools import ToolsAndMessagesMixin, markdown_of, new_messages
from langchain_autotools.testing import ScriptedChatModel

MARKUP = "![x](http://evil/?q=1) <img src=x> <script>x</script> *a* _b_ `c` | d | [e](f) $g$ ~~h~~ \\ &amp; # - + = > 1. 2) \n\t"
texts = st.text(st.sampled_from(MARKUP) | st.characters(codec="utf-8"), max_size=60)


def forecast(city: str) -> str:
    """The forecast of a city."""
    if city == "Rome":
        raise ValueError("no station")
    return f"rain in {city}"


def calls(*cities: str) -> AIMessage:
    """An AI message that asks for forecasts."""
    made = [ToolCall(name="forecast", args={"city": city}, id=f"call_{number}", type="tool_call") for number, city in enumerate(cities)]
    usage = {"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020}
    return AIMessage("Let me look.", tool_calls=made, usage_metadata=usage)


def model_of(*replies: Any) -> ToolsAndMessagesMixin:
    """A model that gives these replies."""
    return ScriptedChatModel(replies=replies, tools=[forecast])


def test_a_run_is_texts_calls_results_and_tokens() -> None:
    """In order, each result behind its call; the same of its stream, and of what a checkpoint gives back."""
    model = model_of(calls("Paris", "Rome"), "It rains.")
    run = model.invoke("How is the weather?")
    said = markdown_of(run)
    assert said.startswith(
        'Let me look.\n\n`forecast(city="Paris")`\n\n```text\nrain in Paris\n```\n\n`forecast(city="Rome")` *failed*\n\n```text\n'
    )
    assert "no station" in said and said.endswith("\n```\n\nIt rains.\n\n*2 turns · 1,000 tokens in, 20 out*")
    assert markdown_of(pickle.loads(pickle.dumps(run))) == said
    assert markdown_of(reduce(add, model_of(calls("Paris", "Rome"), "It rains.").stream("How is the weather?"))) == said


def test_calls_without_a_result_are_named() -> None:
    """Those that are left to the caller."""
    said = markdown_of(ScriptedChatModel(replies=[calls("Paris")]).bind_tools([forecast]).invoke("Hi"))
    assert said == 'Let me look.\n\n`forecast(city="Paris")` *no result*'


def test_other_messages_are_shown_too() -> None:
    """A user's with its media, a result without its call."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert markdown_of(HumanMessage([{"type": "text", "text": "What is it?"}, image])) == "What is it?  \n\\[image\\]"
    assert markdown_of(ToolMessage("21", tool_call_id="1", name="forecast")) == "`forecast`\n\n```text\n21\n```"


def test_what_is_long_is_cut() -> None:
    """With a note that says how much is missing."""
    said = markdown_of(ToolMessage("x" * 3_500, tool_call_id="1"))
    assert len(said) < 2_100 and "… 1,500 characters more" in said
    assert len(markdown_of(calls("y" * 5_000))) < 400


@given(texts)
def test_text_is_shown_as_it_stands(text: str) -> None:
    """Nothing that a model wrote is markup: no image, no HTML, no heading; what is read is what was written."""
    markdown_it = pytest.importorskip("markdown_it")
    tokens = markdown_it.MarkdownIt("js-default", {"html": True, "linkify": False}).parse(markdown_of(AIMessage(text)))
    inner = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    assert {child.type for child in inner} <= {"text", "text_special", "softbreak", "hardbreak"}
    read = "".join(child.content for child in inner)
    assert visible(read) == visible(text)


def visible(text: str) -> list[str]:
    """The characters that can be seen."""
    return [character for character in text if character.isprintable() and not character.isspace()]


@settings(max_examples=30)
@given(texts, texts)
def test_results_stay_in_their_block(name: str, result: str) -> None:
    """Whatever a tool returned, and whatever the model called it with."""
    markdown_it = pytest.importorskip("markdown_it")
    call = ToolCall(name="forecast", args={name: result}, id="1", type="tool_call")
    said = markdown_of(model_of(AIMessage("", tool_calls=[call]), "Done.").invoke("Hi"))
    blocks = [token.type for token in markdown_it.MarkdownIt("js-default", {"html": True}).parse(said) if token.type != "inline"]
    paragraph = ["paragraph_open", "paragraph_close"]
    assert blocks == [*paragraph, "fence", *paragraph, *paragraph]
    shown = markdown_of(ToolMessage(result, tool_call_id="1"))
    assert [token.type for token in markdown_it.MarkdownIt("js-default", {"html": True}).parse(shown)][3:] == ["fence"]


def test_the_repr_of_a_run_names_its_messages() -> None:
    """Their data, which is long, stays where it was."""
    run = model_of(calls("Paris"), "It rains.").invoke("Hi")
    assert "'messages': <3 messages>" in repr(run) and len(repr(run)) < 700
    assert (
        len(run.response_metadata["autotools"]["messages"])
        == 3
        == len(json.loads(run.model_dump_json())["response_metadata"]["autotools"]["messages"])
    )
    assert [type(one) for one in new_messages(run)] == [AIMessage, ToolMessage, AIMessage]
