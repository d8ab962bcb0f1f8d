"""The shipped file handlers in runs of a model: two turns over the wire of the vendor that has the tool, under the rules of handlers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatAnthropic, ChatOpenAI, Handler, pending_calls
from langchain_autotools.file_handlers import Folder, apply_patch, memory, text_editor
from tests.contract.talk import WAYS, run_in
from tests.providers.openai.test_client_calls import message, reply
from tests.support.anthropic_server import AnthropicServer
from tests.support.pages import REPOSITORY, run_page
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Events, Turn

QUESTION = [HumanMessage("Rename it.")]
EDITOR = {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}
MEMORY = {"type": "memory_20250818", "name": "memory"}


def patch(call_id: str, kind: str, path: str, diff: str | None = None) -> dict[str, Any]:
    """An item that asks for a change of a file."""
    operation = {"type": kind, "path": path} | ({} if diff is None else {"diff": diff})
    return {"id": f"apc_{call_id}", "type": "apply_patch_call", "call_id": call_id, "status": "completed", "operation": operation}


PATCHES = [
    patch("call_1", "update_file", "app.py", "@@\n-name = 'world'\n+name = 'moon'\n print(name)\n"),
    patch("call_2", "update_file", "app.py", "@@\n-nothing\n"),
    patch("call_3", "create_file", "../new.py", "+x"),
]


def start_folder(path: Path) -> Folder:
    """A folder with a program."""
    path.mkdir()
    (path / "app.py").write_text("name = 'world'\nprint(name)\n", "utf-8")
    return Folder(path)


def patches() -> list[Events | Turn]:
    """A reply that asks for changes of files, and the last one."""
    return [reply(message("Look."), *PATCHES), Turn("Done.")]


@pytest.mark.parametrize("way", WAYS)
async def test_patches_of_a_model_change_the_folder_and_it_reads_what_failed(way: str, tmp_path: Path) -> None:
    """Each call gets one answer with its status; the second request is one that the vendor takes."""
    folder = start_folder(tmp_path / "project")
    with ResponsesServer(patches()) as server:
        handlers = {"apply_patch": Handler(apply_patch(folder), requires_approval=False)}
        model = ChatOpenAI(
            model="any", base_url=server.url, api_key="key", max_retries=0, tools=[{"type": "apply_patch"}], handlers=handlers
        )
        ran = await run_in(way, model, QUESTION)
        assert (ran.message.text, server.rejections) == ("Look.\nDone.", [])
        answers = [item for item in server.exchanges[1].json["input"] if item.get("type") == "apply_patch_call_output"]
    assert [(item["call_id"], item["status"]) for item in answers] == [("call_1", "completed"), ("call_2", "failed"), ("call_3", "failed")]
    for item, text in zip(answers, ["Updated app.py", "lines that are not in the file", "a path must not contain `..`"], strict=True):
        assert text in item["output"]
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "project").iterdir()} == {"app.py": "name = 'moon'\nprint(name)\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_a_patch_is_shown_before_it_changes_anything(way: str, tmp_path: Path) -> None:
    """Without another rule it waits for approval, and runs as it was shown."""
    folder = start_folder(tmp_path / "project")
    with ResponsesServer([reply(PATCHES[0]), Turn("Done.")]) as server:
        handlers = {"apply_patch": apply_patch(folder)}
        model = ChatOpenAI(
            model="any", base_url=server.url, api_key="key", max_retries=0, tools=[{"type": "apply_patch"}], handlers=handlers
        )
        ran = await run_in(way, model, QUESTION)
        (pending,) = pending_calls(ran.message)
        assert pending.args == {"operation": PATCHES[0]["operation"]}
        assert folder.read("app.py") == "name = 'world'\nprint(name)\n"
        done = await run_in(way, model, [*QUESTION, *ran.new], resume=[pending.approve()])
        assert (done.message.text, server.rejections) == ("Done.", [])
    assert folder.read("app.py") == "name = 'moon'\nprint(name)\n"


@pytest.mark.parametrize("way", WAYS)
async def test_the_editor_and_the_memory_answer_in_one_turn(way: str, tmp_path: Path) -> None:
    """What a command returns is the result, what it raises an error result; the second request is one that the vendor takes."""
    (tmp_path / "memories").mkdir()
    handlers = {
        "text_editor": Handler(text_editor(start_folder(tmp_path / "project"), root="/repo"), requires_approval=False),
        "memory": memory(Folder(tmp_path / "memories")),
    }
    asked = [
        Call(EDITOR["name"], {"command": "str_replace", "path": "/repo/app.py", "old_str": "world", "new_str": "moon"}, id="toolu_1"),
        Call(EDITOR["name"], {"command": "view", "path": "/etc/passwd"}, id="toolu_2"),
        Call("memory", {"command": "create", "path": "/memories/notes.md", "file_text": "Likes the moon.\n"}, id="toolu_3"),
    ]
    with AnthropicServer([Turn("Look.", asked), Turn("Done.")]) as server:
        model = ChatAnthropic(
            model="claude-test", base_url=server.url, api_key="key", max_retries=0, tools=[EDITOR, MEMORY], handlers=handlers
        )
        ran = await run_in(way, model, QUESTION)
        assert (ran.message.text, server.rejections) == ("Look.\nDone.", [])
        results = server.messages[1][-1]["content"]
    assert [(block["tool_use_id"], block.get("is_error", False)) for block in results] == [
        ("toolu_1", False),
        ("toolu_2", True),
        ("toolu_3", False),
    ]
    texts = [block["content"] if isinstance(block["content"], str) else block["content"][0]["text"] for block in results]
    assert texts[0] == "Successfully replaced text at exactly one location."
    assert "an absolute path must begin with /repo" in texts[1]
    assert texts[2] == "File created successfully at: /memories/notes.md"
    assert (tmp_path / "project" / "app.py").read_text("utf-8").startswith("name = 'moon'")
    assert (tmp_path / "memories" / "notes.md").read_text("utf-8") == "Likes the moon.\n"


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """docs/howto/files.md, against a strict server."""
    item = patch("call_1", "create_file", "hello.py", "+print('hello')\n+\n")
    with ResponsesServer([reply(item), Turn("I have written hello.py.")]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.chdir(tmp_path)
        run_page(REPOSITORY / "docs" / "howto" / "files.md", capsys)
        assert (server.rejections, server.left) == ([], 0)
