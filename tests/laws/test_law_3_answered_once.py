"""Law 3, every call is answered exactly once, in call order, whatever happens; and what is handed out is valid input.

That `repair` makes any history acceptable, purely and idempotently, is in test_history_laws.py.
"""

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import LimitReachedError, new_messages
from langchain_autotools.history import order_results, repair
from tests.laws.checks import check_answered, check_goes_on, check_goes_on_at_once, check_plain, check_told
from tests.laws.outcomes import cuts, failures, stopped
from tests.laws.stories import Said, Script, executed, replies, stories
from tests.laws.ways import LISTENERS, QUESTION, WAYS, After, chat, law, run, serving
from tests.laws.workshop import Workshop

listeners = st.sampled_from(sorted(LISTENERS))
ways = st.sampled_from(WAYS)


@law(5)
def test_law_3_every_call_is_answered_once(data: st.DataObject) -> None:
    """Whatever the calls are, each is answered once, in order; the server takes every request, and every prefix later on."""
    story = data.draw(stories(least=1))
    shop = Workshop()
    with serving(Script(story)) as server:
        model = chat(server, tools=shop.tools(), output_version=data.draw(st.sampled_from([None, "v1"])))
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None, ran.error
        check_plain(ran)
        check_answered(ran.new)
        check_told(ran.new, story)
        assert shop.sorted == executed(story)
        assert repair([QUESTION, *ran.new]) == [QUESTION, *ran.new]
        check_goes_on(server, ran.new)


@law(5)
def test_law_3_after_any_failure_the_next_request_is_accepted(data: st.DataObject) -> None:
    """A run that fails, breaks or is stopped by the vendor leaves messages that are answered and go on, prefix by prefix."""
    begun = data.draw(stories(turns=2))[:-1]
    end = data.draw(st.one_of(failures, cuts(), stopped()))
    shop, own = Workshop(), data.draw(st.booleans())
    with serving(Script([*begun, end])) as server:
        tools = shop.tools()
        ran = run(data.draw(ways), chat(server, tools=tools), [QUESTION], listeners=data.draw(listeners))
        check_plain(ran)
        check_answered(ran.new)
        goes_on = check_goes_on if own else check_goes_on_at_once
        goes_on(server, ran.new, tools=tools)


@law(5)
def test_law_3_limits_answer_what_they_forbid(data: st.DataObject) -> None:
    """A limit in the middle of a run leaves no call open, whatever the limit leads to."""
    story = data.draw(stories(turns=3, least=2))
    limit: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"max_turns": 1},
                {"max_tool_calls": 0},
                {"max_tool_calls": 2},
                {"token_budget": 20},
                {"context_window": 10},
                {"deadline": 1e-9},
            ]
        )
    )
    shop = Workshop()
    with serving(Script(story)) as server:
        model = chat(server, tools=shop.tools(), on_limit=data.draw(st.sampled_from(["answer", "return", "raise"])), **limit)
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None or isinstance(ran.error, LimitReachedError)
        check_plain(ran)
        check_answered(ran.new)
        assert len(shop.ran) <= limit.get("max_tool_calls", len(shop.ran))
        check_goes_on(server, ran.new)


@law(5)
def test_law_3_a_cancelled_run_leaves_no_call_open(data: st.DataObject) -> None:
    """Wherever a run is cancelled, nothing is raised, each call has its result, and the history goes on."""
    story = data.draw(stories(turns=3, least=2))
    flag, shop = After(data.draw(st.integers(0, 40))), Workshop()
    with serving(Script(story)) as server:
        limits = data.draw(st.sampled_from([{}, {"max_turns": 1, "on_limit": "raise"}, {"deadline": 60}]))
        model = chat(server, tools=shop.tools(), parallel=data.draw(st.booleans()), **limits)
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners), cancel=flag)
        assert ran.error is None or (isinstance(ran.error, LimitReachedError) and not flag.said)
        check_plain(ran)
        check_answered(ran.new)
        check_goes_on(server, ran.new)


@law(4)
def test_law_3_calls_left_to_the_caller_are_the_only_open_ones(data: st.DataObject) -> None:
    """Bound tools are left to the caller; all other calls of the turn are answered, and resuming answers the rest."""
    said: Said = data.draw(replies())
    shop = Workshop()
    tools = shop.tools()
    bound, own = tools[:4], tools[4:]
    with serving(Script([said])) as server:
        model = chat(server, tools=own).bind_tools(bound)
        ran = run(data.draw(ways), model, [QUESTION], listeners=data.draw(listeners))
        assert ran.error is None, ran.error
        left = [call["id"] for call in ran.message.tool_calls]
        answered = [message.tool_call_id for message in ran.new if isinstance(message, ToolMessage)]
        asked = next(message for message in ran.new if isinstance(message, AIMessage))
        ids = [call["id"] for call in (*asked.tool_calls, *asked.invalid_tool_calls)]
        assert sorted([*left, *answered]) == sorted(ids)
        check_goes_on(server, ran.new, tools=tools)


@law(4)
def test_law_3_calls_found_in_the_input_are_answered_not_run(data: st.DataObject) -> None:
    """A history that ends in open calls runs none of them; `resume` runs those that were approved, once."""
    said: Said = data.draw(replies())
    shop = Workshop()
    with serving(Script([said])) as server:
        first = chat(server).bind_tools(shop.tools()).invoke([QUESTION])
        assert shop.ran == []
        model, history = chat(server, tools=shop.tools()), [QUESTION, *new_messages(first)]
        ran = run(data.draw(ways), model, history, listeners=data.draw(listeners))
        assert (ran.error, shop.ran) == (None, [])
        check_answered([*new_messages(first), *ran.new])
        if not first.tool_calls:
            return
        approved = {call["id"]: True for call in first.tool_calls[::2]}
        ran = run(data.draw(ways), model, history, listeners=data.draw(listeners), resume=approved)
        assert len(shop.ran) <= len(approved)
        new = [*new_messages(first), *ran.new]
        left = [call["id"] for call in first.tool_calls[1::2]]
        assert [call["id"] for call in ran.message.tool_calls] == left
        if left:
            ran = run(data.draw(ways), model, [QUESTION, *new], listeners=data.draw(listeners), resume=dict.fromkeys(left, False))
            new += ran.new
        assert len(shop.ran) <= len(approved)
        assert repair(new) == new  # although the second resume has answered the calls between those of the first
        check_answered(order_results(new))
        check_goes_on(server, new)
