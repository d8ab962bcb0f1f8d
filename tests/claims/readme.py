"""The claims of the README."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import re
import time
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from benchmarks.charts import KEPT, PEERS
from langchain_autotools import ChatOpenAI, DecisionsError, ToolPolicy, __version__, final_message, new_messages, pending_calls, stop_reason
from tests.claims.registry import README
from tests.claims.sentences import value
from tests.claims.tables import page_of, rows_of
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY, fences
from tests.support.script import Call, Failure, Reply, Turn
from tests.test_readme import decide
from tests.test_shell_lines import INSTALLS

QUESTION = HumanMessage("How warm is it in Paris and in Rome?")
PRICE = {"input_mtok": "0.20", "output_mtok": "0.80"}
MAIL = {"to": "Anna", "text": "Dinner is at eight."}


def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def is_lowest(version: str, specifiers: SpecifierSet) -> bool:
    """Whether a version is the first of its line that is taken: it is, and the one before it is not."""
    major, minor = (int(part) for part in version.split("."))
    return specifiers.contains(version) and not specifiers.contains(f"{major}.{minor - 1}")


class Mailbox:
    """A tool that sends mail, and what it has sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def send_mail(self, to: str, text: str) -> str:
        """Send a mail."""
        self.sent.append({"to": to, "text": text})
        return f"Sent to {to}."


def play(script: Sequence[Reply], tools: list[Any], use: Callable[[ChatOpenAI], Any], **fields: Any) -> Any:
    """Use a model with tools at a strict server that plays a script.

    Args:
        script: The server's replies.
        tools: The model's tools.
        use: What is done with the model.
        **fields: Other fields of the model.

    Returns:
        What `use` returns.
    """
    with OpenAIServer(script) as server:
        result = use(ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=tools, max_retries=0, **fields))
        assert server.rejections == []
        return result


# ---------------------------------------------------------------------------------------------- the first screen


@functools.cache
def shown_run() -> tuple[AIMessageChunk, ...]:
    """The chunks of the run that the first block of the README makes."""
    names: dict[str, Any] = {"__name__": "readme"}
    before, _, _ = next(text for language, text in fences(REPOSITORY / "README.md") if language == "python").partition("for chunk in")
    with OpenAIServer(lambda exchange: decide(exchange.json)) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "key")
        environment.setenv("OPENAI_BASE_URL", server.url)
        exec(compile(before, "README.md", "exec"), names)
        return tuple(names["model"].stream(names["history"]))


@README.says("A run of {turns} turns, chunk by chunk.")
def turns_of_the_picture(turns: str) -> None:
    """The run under it has as many AI messages."""
    assert value(turns) == sum(isinstance(message, AIMessage) for chunk in shown_run() for message in new_messages(chunk))


@README.says(
    "The one that ends turn {first} brings the AI message with its {calls} tool calls, the next {results} the tools' results, the one that"
    " ends turn {last} the AI message with the answer; the last says why the run ended."
)
def chunks_of_the_picture(first: str, calls: str, results: str, last: str) -> None:
    """The chunks of the run bring these messages, in this order."""
    brought = [message for chunk in shown_run() for message in new_messages(chunk)]
    generations = list(dict.fromkeys(message.response_metadata["generation_id"] for message in brought))
    asking, *told, answer = brought
    assert isinstance(asking, AIMessage) and isinstance(answer, AIMessage)
    assert (len(asking.tool_calls), len(told)) == (value(calls), value(results))
    assert all(isinstance(message, ToolMessage) for message in told)
    assert [generations.index(message.response_metadata["generation_id"]) + 1 for message in (asking, answer)] == [
        value(first),
        value(last),
    ]
    assert [stop_reason(chunk) for chunk in shown_run() if stop_reason(chunk)] == [stop_reason(shown_run()[-1])] == ["complete"]


@README.says("This is version {version}, the first: what it has, what later versions keep, what it guards.")
def the_version(version: str, links: tuple[str, ...]) -> None:
    """The package has it, and the changelog has no other one that was released."""
    assert version == __version__
    assert re.findall(r"^## \[(\d[\d.]*)\]", page_of(links[0]), re.MULTILINE) == [version]


@README.says("It needs Python {python} or newer and langchain-core {core} or newer, and is tested on Python {first}, {second} and {third}.")
def the_versions_of_others(python: str, core: str, first: str, second: str, third: str) -> None:
    """What the package declares takes them and nothing older; the classifiers are the versions that are tested."""
    (needed,) = (one for one in map(Requirement, project()["project"]["dependencies"]) if one.name == "langchain-core")
    assert is_lowest(python, SpecifierSet(project()["project"]["requires-python"]))
    assert is_lowest(core, needed.specifier)
    assert [first, second, third] == re.findall(r"Python :: (3\.\d+)", " ".join(project()["project"]["classifiers"]))


@README.says("The tests run on {tested}; {one} and {other} are not tested.")
def the_systems(tested: str, one: str, other: str) -> None:
    """This is the one, and what runs all tests names none of the others."""
    words = {"Linux": "linux", "macOS": "macos|darwin", "Windows": "windows|win32"}
    assert tested == platform.system()
    scripts = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / ".ci").iterdir())
    assert not re.search(rf"\b({words[one]}|{words[other]})\b", scripts, re.IGNORECASE)
    assert not [name for name in project()["project"]["classifiers"] if name.startswith("Operating System")]


# ---------------------------------------------------------------------------------------------- why


@README.says("Of {entries} quirks of servers {handled} are handled and {partly} in part, each with a test.")
def the_quirks(entries: str, handled: str, partly: str, links: tuple[str, ...]) -> None:
    """The verdicts of the page; that each has a test tests/test_wire_quirks.py sees."""
    verdicts = re.findall(r"^- (Handled|Partly handled|Not handled)\b", page_of(links[0]), re.MULTILINE)
    assert (value(entries), value(handled), value(partly)) == (len(verdicts), verdicts.count("Handled"), verdicts.count("Partly handled"))


@README.says("{loops} recorded tool loops with {requests} requests, replayed byte for byte, end as they were recorded.")
def the_recorded_loops(loops: str, requests: str, links: tuple[str, ...]) -> None:
    """The sums of the table that the replay writes."""
    rows = rows_of(page_of(links[0]), "loops")
    assert value(loops) == sum(value(row["loops"]) for row in rows)
    assert value(requests) == sum(value(row["requests"]) for row in rows)


@README.says("Of {chunks} chunks of text each takes {ours} µs of CPU; the {others} (benchmarks).")
def the_cost_of_a_chunk(chunks: str, ours: str, others: str, links: tuple[str, ...]) -> None:
    """The row of each name in the table that the benchmark writes, and its figure."""
    column = f"{int(value(chunks)):,}"
    figures = json.loads(KEPT.read_text(encoding="utf-8"))["text"]
    measured = {row["CPU in µs, models with `tools=`"]: row[column] for row in rows_of(page_of(links[0]), column)}
    named = re.findall(r"`?([\w -]+?)`?(?: takes)? ([\d.]+) µs(?:, |$)", others)
    assert len(named) == others.count("µs")
    for name, figure in [("autotools", ours), *named]:
        (peer,) = (peer for peer, title in PEERS.items() if title == name)
        assert value(figure) == value(measured[name]) == figures[peer]


@README.says(
    "Workers of durable runs were killed {kills} times at random moments: all {runs} runs ended, and no call ran {times} unless its tool is"
    " named in `rerun` (durable runs)."
)
def the_kills(kills: str, runs: str, times: str, links: tuple[str, ...]) -> None:
    """The sums of the table of what was measured, in which no call ran twice or was lost."""
    rows = rows_of(page_of(links[0]), "kills")
    assert value(kills) == sum(value(row["kills"]) for row in rows)
    assert value(runs) == sum(value(row["runs"]) for row in rows)
    assert {row[f"ran {times}"] for row in rows} == {row["swapped, lost or doubled"] for row in rows} == {"0"}


@README.says(
    "With the loop put into each chat model, {passed} of the {tests} unit tests on chat models and agents of {names} pass; {without} of the"
    " others fail without it too (list)."
)
def the_tests_of_others(passed: str, tests: str, names: str, without: str, links: tuple[str, ...]) -> None:
    """The sums of the page that running them writes, of the packages that the sentence names."""
    parts = dict(re.findall(r"^## (\S+) [\d.]+\n+(Of .*)$", page_of(links[0]), re.MULTILINE))
    assert sorted(parts) == sorted(re.split(r", | and ", names))
    counted = [[value(number) for number in re.findall(r"\d+", line)] for line in parts.values()]
    assert [value(tests), value(passed), value(without)] == [sum(column) for column in [*zip(*counted, strict=True)][:3]]


@README.says("A {hash_name} digest binds it to the {parts} of its call: if one character of these changes, nothing runs (approvals).")
def an_approval(hash_name: str, parts: str) -> None:
    """Each part of a waiting call is changed in the history by a character: the approval is refused, and the tool does not run."""
    box = Mailbox()

    def use(model: ChatOpenAI) -> tuple[list[BaseMessage], list[Any]]:
        history: list[BaseMessage] = [HumanMessage("Tell Anna.")]
        history += new_messages(model.invoke(history))
        (waiting,) = pending_calls(history)
        assert len(waiting.digest) == 2 * hashlib.new(hash_name.replace("-", "").lower()).digest_size
        before = {"id": waiting.id, "name": waiting.name, "arguments": waiting.args["text"]}
        for part in re.split(r", | and ", parts):
            with pytest.raises(DecisionsError):
                model.resume(_edited(history, before[part]), [waiting.approve()])
        return history, [waiting.approve()]

    script = [Turn(calls=[Call("send_mail", MAIL, id="call_of_a_mail")])]
    play(script, [box.send_mail], use, requires_approval=True)
    assert box.sent == []


def _edited(history: list[BaseMessage], text: str) -> list[BaseMessage]:
    """The history as a client sends it that has changed the last character of a text of the waiting call."""
    stored = json.dumps(messages_to_dict(history))
    assert json.dumps(text) in stored
    return messages_from_dict(json.loads(stored.replace(json.dumps(text), json.dumps(text[:-1] + "_"))))


@README.says("This and {others} other features are tried at {entrances} entrances.")
def the_entrances(others: str, entrances: str, links: tuple[str, ...]) -> None:
    """The rows of the table, and the doors that the test plays."""
    from tests.laws.test_entrances import ENTRANCES

    features = [row["feature"] for row in rows_of(page_of(links[0]), "feature")]
    assert "approvals" in features
    assert (value(others) + 1, value(entrances)) == (len(features), len(ENTRANCES))


# ---------------------------------------------------------------------------------------------- try it


@README.says("The tests need no {key} and no {model}:")
def the_tests(key: str, model: str) -> None:
    """This run has no key, reaches nothing beyond this machine, and leaves out what is marked as in need of a model."""
    import os

    options = project()["tool"]["pytest"]["ini_options"]
    assert not [name for name in os.environ if name.endswith(f"_API_{key}".upper())]
    assert "--disable-socket" in options["addopts"]
    in_need = [marker.partition(":")[0] for marker in options["markers"] if re.search(rf"(real|local) {model}\b", marker)]
    assert len(in_need) > 1
    assert all(f"not {marker}" in options["addopts"][-1].split(" and ") for marker in in_need)


@README.says("It is not on a package index yet.")
def the_index() -> None:
    """No page installs it by its name. That an index refuses the name the tests of installs try (tests/test_shell_lines.py)."""
    name = project()["project"]["name"]
    assert not [word for words in INSTALLS for word in words if word.startswith(name)]
    assert "urls" not in project()["project"]


# ---------------------------------------------------------------------------------------------- the conversation


@README.says("`run.text` has the texts of all turns; `final_message(run).text` is what your loop returned.")
def the_texts() -> None:
    """Of a run of two turns with texts."""
    script = [Turn("One mail.", [Call("send_mail", MAIL)]), Turn("It is sent.")]
    run = play(script, [Mailbox().send_mail], lambda model: model.invoke([QUESTION]))
    assert (run.text, final_message(run).text) == ("One mail.\nIt is sent.", "It is sent.")


@README.says("If a tool {cases}, the model receives an error result that it can act on, and the run goes on.")
def errors_of_tools(cases: str) -> None:
    """Each of these: the server is sent an error as the result, and answers."""

    def fails() -> str:
        """Raise."""
        raise ValueError("no mail today")

    def waits() -> str:
        """Wait for longer than it may."""
        time.sleep(0.05)
        return "late"

    calls = {
        "raises": (Call("fails"), "no mail today"),
        "times out": (Call("waits"), "timed out"),
        "does not exist": (Call("send_fax"), "send_mail"),
        "gets invalid arguments": (Call("send_mail", {"to": "Anna"}), "text"),
    }
    for case in re.split(r", | or ", cases):
        call, words = calls.pop(case)
        policies = {"waits": ToolPolicy(timeout=0.01)}
        tools = [fails, waits, Mailbox().send_mail]
        run = play([Turn(calls=[call]), Turn("Then not.")], tools, lambda model: model.invoke([QUESTION]), policies=policies)
        (result,) = (message for message in new_messages(run) if isinstance(message, ToolMessage))
        assert (result.status, stop_reason(run), final_message(run).text) == ("error", "complete", "Then not.")
        assert words in result.text
    assert calls == {}


@README.says("If the run itself fails, `{function}(error)` returns the messages that had completed and were not delivered yet:")
def what_a_failed_run_had(function: str) -> None:
    """Of `invoke` all of them; of `stream` those that no chunk brought."""
    import langchain_autotools

    brought = getattr(langchain_autotools, function)
    script = [Turn(calls=[Call("send_mail", MAIL)]), Failure(500)]

    def invoked(model: ChatOpenAI) -> list[BaseMessage]:
        with pytest.raises(ModelError) as failure:
            model.invoke([QUESTION])
        return list(brought(failure.value))

    def streamed(model: ChatOpenAI) -> list[BaseMessage]:
        history: list[BaseMessage] = []
        with pytest.raises(ModelError) as failure:
            for chunk in model.stream([QUESTION]):
                history += brought(chunk)
        return history + brought(failure.value)

    for use in (invoked, streamed):
        assert [message.type for message in play(script, [Mailbox().send_mail], use)] == ["ai", "tool"]


@README.says("`max_turns={turns}`, {others} are fields of the model and keywords of a call.")
def the_limits(turns: str, others: str) -> None:
    """Each is both, and the first has this value where nobody gives one."""
    names = ["max_turns", *re.findall(r"`(\w+)`", others)]
    assert len(names) > 4
    for name in names:
        given = {name: 100, **({"prices": {"any": PRICE}} if name == "max_cost" else {})}
        assert play([Turn("Hello.")], [Mailbox().send_mail], lambda model: model.invoke([QUESTION], **given)).text == "Hello."  # noqa: B023
        play([], [], lambda model: getattr(model, name), **given)  # noqa: B023
    assert play([], [], lambda model: model.max_turns) == value(turns)


@README.says("A call runs only if its arguments are one complete {form} object and its turn ended normally.")
def what_may_run(form: str) -> None:
    """Half an object, two of them, a list, no JSON, and a turn that was cut off: none runs; a whole object does."""
    whole = {"JSON": json.dumps}[form](MAIL)
    for arguments, finish, runs in [
        (whole, None, 1),
        (whole[:-2], None, 0),
        (whole + json.dumps(MAIL | {"to": "Ben"}), None, 0),
        (f"[{whole}]", None, 0),
        ("to Anna", None, 0),
        (whole, "length", 0),
    ]:
        box = Mailbox()
        script = [Turn(calls=[Call("send_mail", arguments)], finish=finish), Turn("Well.")]
        run = play(script, [box.send_mail], lambda model: [*model.stream([QUESTION])][-1])
        assert stop_reason(run)
        assert len(box.sent) == runs, arguments


@README.says("Open calls of a history do not run: `{method}` executes them.")
def open_calls(method: str) -> None:
    """A history that ends in a call is answered without it; the method runs the call."""
    open_call = AIMessage("", tool_calls=[{"name": "send_mail", "args": MAIL, "id": "call_of_a_mail"}])
    box = Mailbox()
    run = play([Turn("Not sent.")], [box.send_mail], lambda model: model.invoke([QUESTION, open_call]))
    assert (box.sent, final_message(run).text) == ([], "Not sent.")
    play([Turn("Sent.")], [box.send_mail], lambda model: getattr(model, method)([QUESTION, open_call], True))
    assert box.sent == [MAIL]


@README.says("A `{keyword}` that forbids tools holds on every turn, whatever the server does.")
def forbidden_tools(keyword: str) -> None:
    """The server calls the tool on each of three turns; it never runs."""
    box = Mailbox()
    script = [*(Turn(calls=[Call("send_mail", MAIL | {"to": to})]) for to in ("Anna", "Ben", "Cem")), Turn("No mail.")]
    run = play(script, [box.send_mail], lambda model: model.invoke([QUESTION], **{keyword: "none"}))
    assert (box.sent, final_message(run).text) == ([], "No mail.")


@README.says("If you want X, read these {pages}, the tutorial, and each page by purpose; as a site: {command}.")
def the_ways(pages: str, command: str, links: tuple[str, ...]) -> None:
    """Each row of that page has as many links; the command names what is there."""
    rows = rows_of(page_of(links[0]), "You want to")
    assert {"".join(row.values()).count("](") for row in rows} == {value(pages)}
    (extra,) = re.findall(r"\.\[(\w+)\]", command)
    assert extra in project()["project"]["optional-dependencies"]
    assert (REPOSITORY / "mkdocs.yml").exists() == ("mkdocs serve" in command)
