"""The handler of the memory tool, on the base class of the vendor's SDK: the commands and the sentences of its documentation."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import ToolException

from langchain_autotools.file_handlers import Folder, memory
from tests.support.pages import REPOSITORY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with notes."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "plan.md").write_text("one\ntwo\nthree\nfour\nfive\n", "utf-8")
    (tmp_path / "large.md").write_text("x" * 1536, "utf-8")
    (tmp_path / ".hidden").touch()
    return tmp_path


HEAD = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n"
DONE = [
    (
        {"command": "view", "path": "/memories/project/plan.md", "view_range": [2, 3]},
        "Here's the content of /memories/project/plan.md with line numbers:\n     2\ttwo\n     3\tthree",
    ),
    (
        {"command": "view", "path": "/memories/project"},
        HEAD.replace("/memories", "/memories/project") + "24B\t/memories/project\n24B\t/memories/project/plan.md",
    ),
    ({"command": "create", "path": "/memories/a/b.md", "file_text": "x"}, "File created successfully at: /memories/a/b.md"),
    (
        {"command": "str_replace", "path": "/memories/project/plan.md", "old_str": "four", "new_str": "4"},
        "The memory file has been edited.\n     2\ttwo\n     3\tthree\n     4\t4\n     5\tfive",
    ),
    (
        {"command": "str_replace", "path": "/memories/project/plan.md", "old_str": "one\ntwo\nthree\nfour\nfive\n", "new_str": ""},
        "The memory file has been edited.\n",
    ),
    (
        {"command": "insert", "path": "/memories/project/plan.md", "insert_line": 5, "insert_text": "six\n"},
        "The file /memories/project/plan.md has been edited.",
    ),
    ({"command": "rename", "old_path": "/memories/project", "new_path": "/memories/old/project"}, None),
    ({"command": "delete", "path": "/memories/project"}, "Successfully deleted /memories/project"),
]
FAILING = [
    ({}, "Unrecognized command None"),
    ({"command": "undo_edit", "path": "/memories/large.md"}, "Unrecognized command 'undo_edit'"),
    ({"command": "view"}, "`path` must be a string"),
    ({"command": "view", "path": "/memories/none"}, "The path /memories/none does not exist. Please provide a valid path."),
    ({"command": "view", "path": "/etc"}, "must begin with /memories"),
    ({"command": "view", "path": "/memories_of_others/a"}, "must begin with /memories"),
    ({"command": "view", "path": "large.md"}, "must begin with /memories"),
    ({"command": "view", "path": "/memories/../x"}, r"must not contain `\.\.`"),
    ({"command": "view", "path": "/memories/project/plan.md", "view_range": [9, 9]}, "Invalid `view_range`"),
    ({"command": "create", "path": "/memories/large.md", "file_text": ""}, "File /memories/large.md already exists"),
    (
        {"command": "str_replace", "path": "/memories/large.md", "old_str": "y", "new_str": ""},
        "did not appear verbatim in /memories/large.md",
    ),
    (
        {"command": "str_replace", "path": "/memories/large.md", "old_str": "x", "new_str": ""},
        "Multiple occurrences of old_str `x` in lines: 1.",
    ),
    ({"command": "insert", "path": "/memories/large.md", "insert_line": 2, "insert_text": ""}, r"lines of the file: \[0, 1\]"),
    ({"command": "insert", "path": "/memories/large.md", "insert_line": "1", "insert_text": ""}, "`insert_line` must be a whole number"),
    ({"command": "delete", "path": "/memories/none"}, "The path /memories/none does not exist"),
    ({"command": "delete", "path": "/memories"}, "the folder itself"),
    ({"command": "delete", "path": "/memories/key.pem"}, "refused"),
    ({"command": "rename", "old_path": "/memories", "new_path": "/memories/a"}, "the folder itself"),
    (
        {"command": "rename", "old_path": "/memories/large.md", "new_path": "/memories/project"},
        "destination /memories/project already exists",
    ),
    ({"command": "rename", "old_path": "/memories/large.md", "new_path": "elsewhere"}, "must begin with /memories"),
]


@pytest.mark.parametrize(("arguments", "wanted"), DONE)
def test_a_command_is_carried_out_and_answered_as_documented(arguments: dict[str, Any], wanted: str | None, folder: Path) -> None:
    """By a handler that has travelled to another process."""
    handler = pickle.loads(pickle.dumps(memory(Folder(folder))))
    assert handler(arguments) == (wanted or "Successfully renamed /memories/project to /memories/old/project")


def test_what_a_command_keeps_is_there_in_the_next_view(folder: Path) -> None:
    """Each that changes something, one after the other."""
    handler = memory(Folder(folder))
    for arguments, _ in (DONE[2], DONE[3], DONE[5], DONE[6]):
        handler(arguments)
    shown = handler({"command": "view", "path": "/memories/old/project/plan.md"})
    assert shown.splitlines()[1:] == [f"{number:6}\t{line}" for number, line in enumerate(["one", "two", "three", "4", "five", "six"], 1)]
    handler({"command": "delete", "path": "/memories/old"})
    assert handler({"command": "view", "path": "/memories"}) == (
        f"{HEAD}1.5K\t/memories\n{(folder / 'a').stat().st_size / 1024:.1f}K\t/memories/a/\n1B\t/memories/a/b.md\n1.5K\t/memories/large.md"
    )


def test_what_cannot_be_done_raises_for_the_model_and_changes_nothing(folder: Path) -> None:
    """The message is the documented one where there is one."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for arguments, message in FAILING:
        with pytest.raises(ToolException, match=message):
            memory(Folder(folder, refused=("*.pem",)))(arguments)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.further
def test_the_sdk_is_loaded_with_the_first_call(folder: Path) -> None:
    """Neither naming the handlers nor making one loads it."""
    program = (  # a module of None cannot be imported: that it is asked for is enough, and takes no seconds
        "import sys; sys.modules['anthropic'] = None; from langchain_autotools.file_handlers import Folder, memory; "
        "handler = memory(Folder(sys.argv[1])); print('made')\n"
        "try: handler({'command': 'view', 'path': '/memories'})\n"
        "except ImportError as error: print(error.name.partition('.')[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, cwd=REPOSITORY, timeout=120, check=False
    )
    assert done.stdout.split() == ["made", "anthropic"], done.stderr
