"""Which tools of a server are offered to a model, under which names."""

import asyncio
import hashlib
import json
import logging
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_autotools import (
    Agent,
    ConfigurationError,
    ToolExecutor,
    ToolPolicy,
    mcp_server,
    new_messages,
    pending_calls,
    results_of,
)
from langchain_autotools.mcp_client.offered import Offer, offered_name
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.mcp.listing import NOTHING, TEXT, Lists, asks, echoes, got, lists, tool, warnings
from tests.support.script import Call, Turn
from tests.unit.mcp_client.test_mcp_server import WAYS

__all__ = ["lists"]

pytestmark = pytest.mark.further

# ---------------------------------------------------------------------------------------------- names

RAW: list[Any] = [
    *(None, "tool", 5, [], {}, {"name": ""}, {"name": None}, {"name": 5}, {"name": ["a"]}, {"inputSchema": NOTHING}),
    *({"name": "no_schema"}, {"name": "null", "inputSchema": None}, {"name": "true", "inputSchema": True}),
    *({"name": "list", "inputSchema": [1]}, {"name": "text", "inputSchema": "object"}, {"name": "false", "inputSchema": False}),
    *({"name": "string", "inputSchema": TEXT}, {"name": "nowhere", "inputSchema": {"$ref": "#/$defs/A"}}),
    *({"name": "never", "inputSchema": {"type": "object", "anyOf": [TEXT, False]}}, {"name": "half \ud800", "description": "Half \ud800."}),
    {"name": "numbers", "description": 5, "title": ["x"], "annotations": [1], "inputSchema": NOTHING},
    *({"name": "twice", "inputSchema": NOTHING}, {"name": "twice", "inputSchema": NOTHING}),
    *({"name": "other", "inputSchema": NOTHING}, {"name": "other", "inputSchema": {}}),
]


def test_whatever_a_server_lists_its_other_tools_are_offered(caplog: pytest.LogCaptureFixture) -> None:
    """What has no name or no schema that can be adapted is left out, and so are two tools of one name; each is named in a warning."""
    with caplog.at_level(logging.WARNING):
        made = Offer().tools(RAW, echoes, "the server")
        ScriptedChatModel(tools=made, replies=["Done."]).invoke("Go")
    names = ["no_schema", offered_name("", "null"), "true", offered_name("", "half \ud800"), "numbers", "twice"]
    assert [one.name for one in made] == names
    assert [one.description for one in made[-2:]] == ["", ""] and made[-2].metadata is None
    assert made[3].description == 'Half \ufffd.\n\nThe server calls this tool "half \ufffd".'
    text = warnings(caplog)
    assert text.count("it has no name") == 10
    assert all(f"'{name}'" in text for name in ("list", "text", "false", "string", "nowhere", "never", "other"))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80), st.text(min_size=1, max_size=300) | st.from_regex(r"[A-Za-z0-9_./-]{1,80}", fullmatch=True))
def test_an_alias_is_a_name_that_every_vendor_takes(prefix: str, name: str) -> None:
    """Whatever the prefix and the name; a name that they all take is its own, and the same name has the same alias."""
    made = offered_name(prefix, name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", made)
    assert made == offered_name(prefix, name)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", prefix + name) and prefix + name not in ("null", "None"):
        assert made == prefix + name
    else:
        assert re.search("_[0-9a-f]{8}$", made)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "a.b", "a_b", "a b", "list", "tools.list", "ö", "x" * 70]) | st.text(min_size=1), unique=True))
def test_an_alias_does_not_depend_on_the_list(names: list[str]) -> None:
    """In whatever company and order a tool is listed, it has the same name."""
    made = Offer("p_").tools([tool(name) for name in names], echoes, "the server")
    assert [one.name for one in made] == [offered_name("p_", name) for name in names]


def test_an_alias_depends_on_prefix_and_name_alone() -> None:
    """It is written down in histories and rules: it never changes."""
    assert offered_name("", "files.read") == "files_read_601e4eb6"
    for prefix, name, cleaned in (("a_", "files.read", "a_files_read"), ("", "1st", "_1st"), ("", "x" * 65, "x" * 55)):
        assert offered_name(prefix, name) == f"{cleaned}_{hashlib.sha256(f'{prefix}{name}'.encode()).hexdigest()[:8]}"


def test_the_servers_name_is_shown_beside_an_alias(lists: Lists) -> None:
    """In the description, which approvals and models have, and in the metadata, which traces have."""
    dotted, prefixed = lists(tool("files.read", description="Read.", annotations={"readOnlyHint": True}), "plain", prefix="a_").tools()
    assert dotted.description == 'Read.\n\nThe server calls this tool "files.read".'
    assert dotted.metadata == {"annotations": {"readOnlyHint": True}, "own_name": "files.read"}
    assert (prefixed.name, prefixed.description, prefixed.metadata) == ("a_plain", "", {"own_name": "plain"})


READ = offered_name("", "files.read")
SPELLINGS = ("files.read", READ, f"functions.{READ}", "functions.files.read", "tools.files.read", READ.upper())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", ["files.read", READ])
def test_a_rule_by_either_name_holds_under_every_spelling(way: str, rule: str, lists: Lists) -> None:
    """A call that needs approval waits, is shown under the alias where it was not written otherwise, and runs once it is approved."""
    server = lists("files.read", "plain")
    for written in SPELLINGS:
        made = ScriptedChatModel(tools=[server], replies=[asks((written, {}), ("plain", {})), "Done."], requires_approval=[rule])
        run = WAYS[way](made)
        assert [one["name"] for one in got(run)] == ["plain"]
        (call,) = pending_calls(run)
        assert call.name in (READ, written)
        history = [HumanMessage("Go"), *new_messages(run)]
        other = ScriptedChatModel(tools=[server], replies=["Done."], requires_approval=[rule])
        assert "files.read" in [one["name"] for one in got(other.resume(history, [call.approve()]))]


def test_an_executor_alone_knows_the_servers_names(lists: Lists) -> None:
    """In its rules, in `only` and in calls; a rule may name all that two servers have under one name, a call may not."""
    server = lists("files.read", "tools.list", "list")
    one, other = lists("files.read", prefix="a_"), lists("files.read", prefix="b_")
    executor = ToolExecutor([server, one, other], requires_approval=["files.read"])
    names = [name for name in executor.tools if "files" in name]
    assert executor.approvals is not None and executor.approvals.names == {*names} and len(names) == 3
    assert [executor.find(name).name for name in ("a_files.read", "b_files.read")] == names[1:]  # type: ignore[union-attr]
    assert executor.find("files.read") is None
    assert [executor.find(name).name for name in ("tools.list", "list")] == [*executor.tools][1:3]  # type: ignore[union-attr]
    results = ToolExecutor([server]).execute_all(
        asks(("tools.list", {}), ("list", {}), ("files.read", {})), only=["tools.list", "files.read"]
    )
    assert [json.loads(one.text).get("name") for one in results] == ["tools.list", None, "files.read"]
    assert "is not allowed here" in results[1].text


def test_policies_by_either_name_are_joined(lists: Lists) -> None:
    """The nearest place decides, whichever name it uses."""
    server = lists("files.read")
    executor = ToolExecutor([server], policies={READ: ToolPolicy(timeout=5, max_output=300)})
    made = ScriptedChatModel(tools=executor, policies={"files.read": ToolPolicy(exclusive=True, timeout=6)}, replies=[])
    assert made.replies == []
    joined = executor.between({}, ToolExecutor([server], policies={"files.read": ToolPolicy(timeout=6)}).settings)
    assert joined._timeouts == {READ: 5.0}
    near = ToolExecutor([server], policies={"files.read": ToolPolicy(timeout=7)}).settings
    assert executor.between(near, {})._timeouts == {READ: 7.0}
    with pytest.raises(ConfigurationError, match=r"policies names tools that do not exist: 'files.write'"):
        ToolExecutor([server], policies={"files.write": ToolPolicy(timeout=5)})


@pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES])
def test_a_tool_choice_may_use_the_servers_name(wire: Wire, lists: Lists) -> None:
    """Of the model's own tools and of bound ones, as a name and in the forms of the vendors."""
    server, nested = lists("files.read", "plain"), {"type": "function", "function": {"name": "files.read"}}
    forms = ["files.read", nested, {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "files.read"}]}]
    forms = forms[:2] if wire.name in ("anthropic", "ollama") else forms
    for choice in forms:
        with wire.serve([Turn(calls=[Call("files.read")]), Turn("Done."), Turn(calls=[Call(READ)])]) as vendor:
            assert [one["name"] for one in got(wire.model(vendor, tools=[server]).invoke("Go", tool_choice=choice))] == ["files.read"]
            bound = wire.model(vendor).bind_tools([server], tool_choice=choice).invoke("Go")
            assert [call["name"] for call in bound.tool_calls] == [READ]
            assert all(wire.name == "ollama" or "files.read" not in json.dumps(one.json.get("tool_choice")) for one in vendor.exchanges)


def test_a_bound_tool_may_be_called_by_the_servers_name(lists: Lists) -> None:
    """Beside tools of the model's own its call is the caller's, and no other tool's."""

    def list() -> str:
        """List."""
        return "mine"

    made = ScriptedChatModel(tools=[list], replies=[asks(("tools.list", {})), "Done."])
    run = made.bind_tools([lists("tools.list")]).invoke("Go")
    assert [call["name"] for call in run.tool_calls] == ["tools.list"] and not results_of(run)


def test_what_a_hook_has_left_out_is_not_called_by_another_name(lists: Lists) -> None:
    """`before_turn` takes the server's name, too."""

    def list() -> str:
        """List."""
        return "mine"

    def without(turn: Any) -> Any:
        from dataclasses import replace

        return replace(turn, tools=["list", "files.read"])

    server = lists("tools.list", "files.read")
    made = ScriptedChatModel(
        tools=[server, list], replies=[asks(("tools.list", {}), ("files.read", {}), ("list", {})), "Done."], before_turn=without
    )
    refused, read, own = results_of(made.invoke("Go"))
    assert "not allowed here" in refused.text
    assert (json.loads(read.text)["name"], own.text) == ("files.read", "mine")


def test_polling_tools_may_be_named_as_the_server_does(lists: Lists) -> None:
    """As by the alias; a name that nobody has is an error."""
    server = lists("jobs.poll")
    replies = [*[asks(("jobs.poll", {}))] * 5, "Done."]
    run = ScriptedChatModel(tools=[server], replies=replies, polling_tools=["jobs.poll"]).invoke("Go")
    assert (run.text, len(results_of(run))) == ("Done.", 5)
    with pytest.raises(ValueError, match="polling_tools names tools that do not exist: 'jobs.pull'"):
        ScriptedChatModel(tools=[server], polling_tools=["jobs.pull"], replies=[])


def test_durable_runs_may_name_what_may_run_again(lists: Lists, tmp_path: Path) -> None:
    """As the server does."""
    durable = pytest.importorskip("langchain_autotools.durable", reason="needs the extra `durable`")
    from langchain_autotools.durable.runs import check

    assert durable is not None
    made = ScriptedChatModel(tools=[lists("files.read")], replies=[])
    check(made, ["files.read"])
    with pytest.raises(ConfigurationError, match="files.write"):
        check(made, ["files.write"])


def test_agents_and_models_as_tools_have_them_too(lists: Lists) -> None:
    """A call inside waits under the rule of its model, by the server's name, and goes on from outside."""
    server = lists("files.read")
    inner = ScriptedChatModel(tools=[server], replies=[asks(("files.read", {})), "Read."], requires_approval=["files.read"])
    outer = ScriptedChatModel(tools={"reader": Agent(inner)}, replies=[asks(("reader", {"question": "Read."})), "Done."])
    run = outer.invoke("Go")
    (call,) = pending_calls(run)
    assert call.path and call.name in (READ, "files.read")
    assert outer.resume([("user", "Go"), *new_messages(run)], [call.approve()]).text == "Done."


def test_tools_of_one_alias_are_left_out(lists: Lists, caplog: pytest.LogCaptureFixture) -> None:
    """Both, of one server and of two, with a warning that helps; the caller's own tool stays."""

    def files_read() -> str:
        """Read."""
        return "mine"

    with caplog.at_level(logging.WARNING):
        same = lists("files.read", READ, "plain")
        assert [*ToolExecutor([same]).tools] == ["plain"]
        assert f"'files.read', '{READ}'" in warnings(caplog)
        executor = ToolExecutor([lists("files.read"), lists("files.read", "plain"), files_read])
        assert [*executor.tools] == ["plain", "files_read"]
        assert f"mcp_server(prefix=...) helps): '{READ}'" in warnings(caplog)
        made = ScriptedChatModel(tools=[files_read], replies=["Done."])
        made.bind_tools([lists("plain"), lists("plain", "files_read"), files_read]).invoke("Go")
    assert [one["function"]["name"] for one in made.requests[0].tools] == ["files_read"]
    assert "'files_read', 'plain'" in warnings(caplog)
    own = lists("plain")
    assert [*ToolExecutor([own, own]).tools] == ["plain"]


# ---------------------------------------------------------------------------------------------- which tools


CHOSEN: list[tuple[dict[str, Any], list[str]]] = [
    ({"only": ["files.read"]}, ["files.read"]),
    ({"only": [READ, "plain"]}, ["files.read", "plain"]),
    ({"without": ["files.read"]}, ["plain", "other"]),
    ({"only": ["plain", "other"], "without": ["other"]}, ["plain"]),
    ({"only": lambda definition: definition["annotations"]["readOnlyHint"]}, ["files.read", "other"]),
    ({"without": lambda definition: "." in definition["name"]}, ["plain", "other"]),
    ({"only": []}, []),
]


@pytest.mark.parametrize("number", range(len(CHOSEN)))
def test_only_some_tools_are_offered(number: int, lists: Lists) -> None:
    """By name, of the server's or by the alias, or by a function of the definition; first `only`, then `without`."""
    rules, names = CHOSEN[number]
    listed = [tool(name, annotations={"readOnlyHint": name != "plain"}) for name in ("files.read", "plain", "other")]
    assert [one.name for one in lists(*listed, **rules).tools()] == [offered_name("", name) for name in names]


def test_names_with_a_prefix_are_chosen_with_or_without_it(lists: Lists) -> None:
    """As they are offered, and as the server has them."""
    for name in ("plain", "a_plain", "files.read", "a_files.read", offered_name("a_", "files.read")):
        assert len(lists("plain", "files.read", prefix="a_", only=[name]).tools()) == 1


@pytest.mark.parametrize("argument", ["only", "without"])
def test_a_name_that_is_not_listed_is_an_error(argument: str, lists: Lists, caplog: pytest.LogCaptureFixture) -> None:
    """That lists what there is, where the server is opened; where its list changes later, a warning."""
    server = lists("files.read", "plain", **{argument: ["plane"]})
    with pytest.raises(ValueError, match=rf"{argument} names tools that .* does not list: 'plane'. It lists: 'files.read', 'plain'"):
        ScriptedChatModel(tools=[server], replies=[])
    server = lists("files.read", "plain", **{argument: ["plain"]})
    made = ScriptedChatModel(tools=[server], replies=[asks(("plain" if argument == "only" else READ, {})), "One.", "Two."])
    Path(server._address.command[-1]).write_text(json.dumps([tool("files.read")]))
    server.close()
    with caplog.at_level(logging.WARNING):
        made.invoke("Go")
        made.invoke("Go")
    assert [len(request.tools) for request in made.requests][-1] == (0 if argument == "only" else 1)
    assert f"{argument} names tools that" in warnings(caplog)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"only": "plain"}, "only must be a list of names of tools, or a function"),
        ({"without": {"plain": True}}, "without must be a list of names"),
        ({"only": [5]}, "only must be a list of names"),
        ({"without": 5}, "without must be a list of names"),
        ({"only": asyncio.sleep}, "only must say True or False at once"),
        ({"prefix": 5}, "prefix must be a text"),
    ],
)
def test_what_is_no_choice_is_refused(rules: Any, words: str) -> None:
    """By the argument's name."""
    with pytest.raises(ConfigurationError, match=words):
        mcp_server("program", **rules)


def test_a_function_must_say_true_or_false(lists: Lists) -> None:
    """Nothing is guessed from another value."""
    with pytest.raises(ValueError, match="only must say True or False of a tool, not None"):
        ScriptedChatModel(tools=[lists("plain", only=lambda _: None)], replies=[])


def is_plain(definition: Any) -> bool:
    """Choose one tool."""
    return bool(definition["name"] == "plain")


def test_the_choice_travels_in_a_pickle(lists: Lists) -> None:
    """A function that cannot travel is named."""
    with pickle.loads(pickle.dumps(lists("plain", "files.read", prefix="a_", only=is_plain, without=["files.read"]))) as server:
        assert [one.name for one in server.tools()] == ["a_plain"]
    with pytest.raises(pickle.PicklingError, match="without cannot be pickled"):
        pickle.dumps(lists("plain", without=lambda _: False))
