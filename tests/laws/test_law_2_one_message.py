"""Law 2, one run, one message: the chunks of `stream` sum to what `invoke` returns, field for field."""

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import final_message, new_messages, run_usage
from langchain_autotools.messages.metadata import KEY
from tests.laws.checks import check_told, data_of, differences
from tests.laws.stories import Said, Script, executed, replies, run_text, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, Ran, chat, law, run, serving, summed
from tests.laws.workshop import Workshop
from tests.support.openai_server import OpenAIServer

FIELDS = st.fixed_dictionaries(
    {
        "output_version": st.sampled_from([None, "v1"]),
        "message_separator": st.sampled_from(["\n", "", " | "]),
        "carry_messages": st.booleans(),
        "stream_usage": st.booleans(),
    }
)


def ran_in(server: OpenAIServer, way: str, listeners: str, **fields: Any) -> tuple[Ran, Workshop]:
    """A run from the server's first reply on."""
    server.exchanges.clear()
    shop = Workshop()
    ran = run(way, chat(server, tools=shop.tools(), **fields), [QUESTION], listeners=listeners)
    assert ran.error is None, ran.error
    return ran, shop


@law(5)
def test_law_2_stream_sums_to_invoke(data: st.DataObject) -> None:
    """Over one wire every way gives the same run message, new messages and requests, whoever listens."""
    story = data.draw(stories())
    fields = {**data.draw(FIELDS), "streaming": True}
    with serving(Script(story)) as server:
        ran, _ = ran_in(server, "invoke", "nobody", **fields)
        bodies = [exchange.body for exchange in server.exchanges]
        for _ in range(2):
            other, _ = ran_in(server, data.draw(st.sampled_from(WAYS[1:])), data.draw(st.sampled_from(sorted(LISTENERS))), **fields)
            assert differences(data_of(other.message), data_of(ran.message)) == []
            assert differences(list(map(data_of, other.new)), list(map(data_of, ran.new))) == []
            assert [exchange.body for exchange in server.exchanges] == bodies


@law(5)
def test_law_2_both_wires_say_the_same(data: st.DataObject) -> None:
    """A streamed reply and a whole one that says the same make the same run, whatever the style of the stream."""
    story = data.draw(stories())
    fields = {**data.draw(FIELDS), "stream_usage": True}
    with serving(Script(story)) as server:
        pairs = [ran_in(server, way, data.draw(st.sampled_from(sorted(LISTENERS))), **fields) for way in ("invoke", "astream")]
    for ran, shop in pairs:
        check_told(ran.new, story)
        assert ran.message.text == run_text(story, fields["message_separator"])
        assert shop.sorted == executed(story)
        assert run_usage(ran.message)["total_tokens"] == 18 * len(story)
        if fields["carry_messages"]:
            assert differences(data_of(final_message(ran.message)), data_of(ran.new[-1])) == []
    (whole, _), (streamed, _) = pairs
    assert differences(loose(whole.message), loose(streamed.message)) == []
    assert differences(list(map(loose, whole.new)), list(map(loose, streamed.new))) == []


def loose(message: BaseMessage) -> Any:
    """A message without the ids of its calls and the raw text of arguments: a style may change both."""
    data = data_of(message, aside=frozenset({"id", "index", "output_version", "tool_call_id", "generation_id", KEY, "args"}))
    meant = [(call["name"], call["args"]) for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return data, meant


@law(4)
def test_law_2_new_messages_agree_over_chunks_sum_and_invoke(data: st.DataObject) -> None:
    """`new_messages` over the chunks, one after another, is `new_messages` of their sum."""
    story = data.draw(stories(least=1))
    fields = data.draw(FIELDS)
    with serving(Script(story)) as server:
        ran, _ = ran_in(server, data.draw(st.sampled_from(["stream", "astream"])), data.draw(st.sampled_from(sorted(LISTENERS))), **fields)
    if fields["carry_messages"]:
        assert differences(list(map(data_of, new_messages(summed(ran.chunks)))), list(map(data_of, ran.new))) == []
    brought = [len(new_messages(chunk)) for chunk in ran.chunks]
    assert max(brought) == 1 and sum(brought) == len(ran.new)


@law(4)
def test_law_2_calls_left_to_the_caller(data: st.DataObject) -> None:
    """A run that ends in calls of the caller says the same in every way, and keeps them executable."""
    said: Said = data.draw(replies())
    fields = {**data.draw(FIELDS), "streaming": True}
    shop = Workshop()
    bound, own = shop.tools()[:3], shop.tools()[3:]
    with serving(Script([said])) as server:
        outcomes = []
        for way in WAYS:
            server.exchanges.clear()
            model = chat(server, tools=own, **fields).bind_tools(bound)
            ran = run(way, model, [QUESTION], listeners=data.draw(st.sampled_from(sorted(LISTENERS))))
            assert ran.error is None, ran.error
            outcomes.append((data_of(ran.message), list(map(data_of, ran.new))))
        assert [differences(outcome, outcomes[0]) for outcome in outcomes[1:]] == [[], [], []]
    names = {tool.__name__ for tool in bound}
    left = [(one.call.name, one.args) for one in said.calls if one.call.name in names and one.args is not None]
    assert [(call["name"], call["args"]) for call in ran.message.tool_calls] == left
