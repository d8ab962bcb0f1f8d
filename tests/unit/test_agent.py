"""`Agent`: questions, the conversation it keeps, attachments, and runs that fail, are left or are resumed."""

import asyncio
import base64
import copy
import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools import Agent, ConfigurationError
from langchain_autotools.agent import AgentResult
from langchain_autotools.messages import text_of
from langchain_autotools.testing import ScriptedChatModel

CALLING = AIMessage("Let me look.", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}])
PNG = b"\x89PNG\r\n\x1a\n"


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def repeat(messages: Sequence[BaseMessage], **_: Any) -> str:
    """Say what was asked."""
    return messages[-1].text


def agent(*replies: Any, **kwargs: Any) -> Agent:
    """An agent whose model says these replies."""
    return Agent(ScriptedChatModel(replies=list(replies), tools=[look]), **kwargs)


def sent(one: Agent) -> list[BaseMessage]:
    """The messages of the last request."""
    return list(one.model.requests[-1].messages)  # type: ignore[attr-defined]


async def asked_in(way: str, one: Agent, *args: Any, **kwargs: Any) -> AgentResult:
    """Ask in one of the four ways."""
    match way:
        case "run":
            return one.run(*args, **kwargs)
        case "arun":
            return await one.arun(*args, **kwargs)
        case "run_stream":
            stream = one.run_stream(*args, **kwargs)
            assert "".join(text_of(chunk) for chunk in stream) == stream.result.text
            return stream.result
    chunks = one.arun_stream(*args, **kwargs)
    assert "".join([text_of(chunk) async for chunk in chunks]) == chunks.result.text
    return chunks.result


WAYS = pytest.mark.parametrize("way", ["run", "arun", "run_stream", "arun_stream"])


@WAYS
def test_a_question_is_a_run_and_joins_the_conversation(way: str) -> None:
    """The new messages begin with the question; the next question goes on; the system prompt comes before all and is in no history."""
    one = agent(CALLING, "All quiet.", "You are welcome.", system_prompt="Be brief.")
    result = asyncio.run(asked_in(way, one, "What is up?"))
    assert [message.type for message in result.messages] == ["human", "ai", "tool", "ai"]
    assert (result.text, result.stop_reason) == ("Let me look.\nAll quiet.", "complete")
    assert one.history == list(result.messages)
    again = asyncio.run(asked_in(way, one, "Thanks."))
    assert [message.type for message in sent(one)] == ["system", "human", "ai", "tool", "ai", "human"]
    assert one.history == [*result.messages, *again.messages]


@WAYS
def test_with_a_history_of_the_callers_nothing_is_kept(way: str) -> None:
    """A conversation that is given is asked about, not changed, and the agent's own stays as it is."""
    one = agent("Anna.", history=[HumanMessage("Kept.")])
    given: list[BaseMessage] = [HumanMessage("I am Anna."), AIMessage("Hello.")]
    result = asyncio.run(asked_in(way, one, "Who am I?", history=given))
    assert [text_of(message) for message in sent(one)] == ["I am Anna.", "Hello.", "Who am I?"]
    assert [message.type for message in result.messages] == ["human", "ai"]
    assert (len(given), len(one.history)) == (2, 1)


@WAYS
def test_what_a_failed_run_had_completed_is_kept(way: str) -> None:
    """What tools did stays in the conversation; a question of which nothing came leaves no trace."""
    one = agent(CALLING, OSError("down"))
    with pytest.raises(OSError, match="down"):
        asyncio.run(asked_in(way, one, "What is up?"))
    assert [message.type for message in one.history] == ["human", "ai", "tool"]
    other = agent(OSError("down"), "Fine.")
    with pytest.raises(OSError, match="down"):
        asyncio.run(asked_in(way, other, "What is up?"))
    assert other.history == []
    assert asyncio.run(asked_in(way, other, "What is up?")).text == "Fine."


def test_a_stream_that_is_left_keeps_what_it_delivered() -> None:
    """Closing the stream ends the run; the messages that came are kept, and there is no result."""
    one = agent(CALLING, "All quiet.")
    stream = one.run_stream("What is up?")
    for chunk in stream:
        if "tool" in [message.type for message in one.history] or (not text_of(chunk) and chunk.response_metadata):
            break
    stream.close()
    assert [message.type for message in one.history][:2] == ["human", "ai"]
    with pytest.raises(ConfigurationError, match="read to its end"):
        _ = stream.result


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_asks_with_the_conversation_as_it_is_when_it_is_read(asynchronous: bool) -> None:
    """Two questions that were put before either was read follow each other, in the requests as in the history."""
    one = agent("One.", "Two.")

    async def read() -> None:
        for stream in [one.arun_stream(text) for text in ("First?", "Second?")]:
            assert [chunk async for chunk in stream]

    if asynchronous:
        asyncio.run(read())
    else:
        for stream in [one.run_stream(text) for text in ("First?", "Second?")]:
            assert list(stream)
    assert [message.text for message in sent(one)] == ["First?", "One.", "Second?"]
    assert [message.text for message in one.history] == ["First?", "One.", "Second?", "Two."]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "deepcopy", "pickle"]
)
def test_a_copy_goes_on_by_itself(copied: Any) -> None:
    """It has the conversation so far; what it is asked is not in the agent's own, and both may be asked at once."""
    one = Agent(ScriptedChatModel(replies=repeat, tools=[look]))
    one.run("First?")
    other = copied(one)
    other.run("Second?")
    assert [message.text for message in other.history] == ["First?", "First?", "Second?", "Second?"]
    assert [message.text for message in one.history] == ["First?", "First?"]


def test_two_questions_at_once_need_histories_of_their_own() -> None:
    """One conversation has one question at a time; with a history given there may be many."""
    go, begun = threading.Event(), threading.Event()

    def wait(at: str) -> str:
        """Wait for the test."""
        begun.set()
        assert go.wait(60)
        return at

    model = ScriptedChatModel(replies=[CALLING, "One.", "Two."], tools={"look": wait})
    one = Agent(model)
    first = threading.Thread(target=lambda: one.run("First?"))
    first.start()
    assert begun.wait(60)
    with pytest.raises(ConfigurationError, match="answering already"):
        one.run("Second?")
    assert one.run("Second?", history=[]).text == "One."
    go.set()
    first.join(60)
    assert [message.type for message in one.history] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize(
    ("attachment", "block"),
    [
        (PNG, {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/png"}),
        ((b"abc", "audio/wav"), {"type": "audio", "base64": "YWJj", "mime_type": "audio/wav"}),
        (b"RIFF    WEBP", {"type": "image", "base64": base64.b64encode(b"RIFF    WEBP").decode(), "mime_type": "image/webp"}),
        ("https://example.org/a.jpg?size=2", {"type": "image", "url": "https://example.org/a.jpg?size=2", "mime_type": "image/jpeg"}),
        (("https://example.org/a", "application/pdf"), {"type": "file", "url": "https://example.org/a", "mime_type": "application/pdf"}),
    ],
)
def test_attachments_follow_the_text(attachment: Any, block: dict[str, Any]) -> None:
    """Bytes and addresses become standard content blocks after the question's text."""
    one = agent("A cat.")
    one.run("What is it?", attachments=[attachment])
    assert sent(one)[-1].content == [{"type": "text", "text": "What is it?"}, block]


def test_a_local_file_is_read_where_the_caller_names_it(tmp_path: Path) -> None:
    """A path is read, its type told by its name; text stays text."""
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    (tmp_path / "b.md").write_text("# Ö", encoding="utf-8")
    one = agent("I see.")
    result = one.run(HumanMessage("Read.", id="q"), attachments=[tmp_path / "a.pdf", str(tmp_path / "b.md")])
    question = result.messages[0]
    assert question.id == "q"
    assert question.content[1:] == [
        {"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf", "filename": "a.pdf"},
        {"type": "text-plain", "text": "# Ö", "mime_type": "text/plain", "title": "b.md"},
    ]
    with pytest.raises(FileNotFoundError):
        one.run("Read.", attachments=["missing.txt"])


@pytest.mark.parametrize("attachment", [b"who knows", "https://example.org/a"])
def test_an_attachment_of_unknown_type_is_refused(attachment: Any) -> None:
    """What neither name nor bytes tell is asked for."""
    with pytest.raises(ConfigurationError, match="type of the attachment"):
        agent("Fine.").run("What is it?", attachments=[attachment])


def test_what_cannot_work_is_refused() -> None:
    """No question, a model of another package, and arguments for a model that is made already."""
    with pytest.raises(ConfigurationError, match="no question"):
        agent("Fine.").run()
    with pytest.raises(ConfigurationError, match="not int"):
        Agent(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="temperature"):
        agent("Fine.", temperature=1)


def test_tools_given_to_the_agent_are_the_models() -> None:
    """A given model stays as it is; the agent's has the tools. A prompt may be a message."""
    bare = ScriptedChatModel(replies=[CALLING, "All quiet."])
    one = Agent(bare, tools=[look], system_prompt=SystemMessage("Be brief."))
    assert one.run("What is up?").text.endswith("All quiet.")
    assert not bare.tools
    assert "AgentResult('Let me" in repr(agent(CALLING, "Fine.").run("What is up?"))
