"""The handler of the text editor: what its commands do, and what they tell the model where they cannot."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException

from langchain_autotools.file_handlers import Folder, inserted, replaced, text_editor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of both line ends."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_bytes(b"one\ntwo\nthree\n")
    (tmp_path / "dos.txt").write_bytes(b"a\r\nb\r\nc")
    (tmp_path / "empty").touch()
    return tmp_path


SHOWN = [
    ({"command": "view", "path": "src/a.py"}, "1: one\n2: two\n3: three"),
    ({"command": "view", "path": "src/a.py", "view_range": [2, -1]}, "2: two\n3: three"),
    ({"command": "view", "path": "src/a.py", "view_range": [2, 2]}, "2: two"),
    ({"command": "view", "path": "src/a.py", "view_range": [2, 99]}, "2: two\n3: three"),
    ({"command": "view", "path": "dos.txt"}, "1: a\n2: b\n3: c"),
    ({"command": "view", "path": "empty"}, ""),
    ({"command": "view", "path": "empty", "view_range": [1, -1]}, ""),
    ({"command": "view", "path": "/repo"}, "/repo\n/repo/dos.txt\n/repo/empty\n/repo/src/\n/repo/src/a.py"),
    ({"command": "view", "path": "/repo/src/"}, "/repo/src/\n/repo/src/a.py"),
    ({"command": "view", "path": "/repo/src/a.py", "view_range": None}, "1: one\n2: two\n3: three"),
]
EDITS = [
    ({"command": "str_replace", "path": "/repo/src/a.py", "old_str": "two\nth", "new_str": "2\n3"}, "src/a.py", b"one\n2\n3ree\n"),
    ({"command": "str_replace", "path": "src/a.py", "old_str": "two\n"}, "src/a.py", b"one\nthree\n"),
    ({"command": "str_replace", "path": "dos.txt", "old_str": "a\nb", "new_str": "x\ny\nz"}, "dos.txt", b"x\r\ny\r\nz\r\nc"),
    ({"command": "insert", "path": "src/a.py", "insert_line": 0, "insert_text": "zero"}, "src/a.py", b"zero\none\ntwo\nthree\n"),
    ({"command": "insert", "path": "src/a.py", "insert_line": 3, "new_str": "four\n"}, "src/a.py", b"one\ntwo\nthree\nfour\n"),
    ({"command": "insert", "path": "dos.txt", "insert_line": 1, "insert_text": "x\ny\n"}, "dos.txt", b"a\r\nx\r\ny\r\nb\r\nc"),
    ({"command": "insert", "path": "dos.txt", "insert_line": 3, "insert_text": "x\n"}, "dos.txt", b"a\r\nb\r\nc\r\nx"),
    ({"command": "insert", "path": "empty", "insert_line": 0, "insert_text": "x\n\n"}, "empty", b"x\n\n"),
    ({"command": "create", "path": "/repo/new/b.py", "file_text": "x = 1\n"}, "new/b.py", b"x = 1\n"),
]
FAILING = [
    ({}, "Unrecognized command None"),
    ({"command": ["view"], "path": "a"}, "Unrecognized command"),
    ({"command": "remove", "path": "src/a.py"}, "Unrecognized command 'remove'. The allowed commands are: view, create"),
    ({"command": "view"}, "`path` must be a string"),
    ({"command": "view", "path": "none"}, "The path none does not exist"),
    ({"command": "view", "path": "/etc/passwd"}, "must begin with /repo"),
    ({"command": "view", "path": "/repo/../x"}, r"must not contain `\.\.`"),
    ({"command": "view", "path": ".git/config"}, "refused"),
    ({"command": "view", "path": "src", "view_range": [1, 2]}, "not allowed when `path` points to a directory"),
    *(
        ({"command": "view", "path": "src/a.py", "view_range": given}, "Invalid `view_range` parameter")
        for given in ([4, 4], [0, 1], [2, 1], [1], [1, "2"], [True, 2], "12", 1, [1, -2])
    ),
    ({"command": "create", "path": "src/a.py", "file_text": ""}, "File src/a.py already exists"),
    ({"command": "create", "path": "b"}, "`file_text` must be a string"),
    ({"command": "str_replace", "path": "src/a.py", "old_str": "four", "new_str": ""}, "did not appear verbatim in src/a.py"),
    ({"command": "str_replace", "path": "src/a.py", "old_str": "", "new_str": "x"}, "did not appear verbatim"),
    ({"command": "str_replace", "path": "src/a.py", "old_str": "e", "new_str": "x"}, "Multiple occurrences of old_str `e` in lines: 1, 3."),
    ({"command": "str_replace", "path": "src/a.py", "old_str": "one", "new_str": 1}, "`new_str` must be a string"),
    ({"command": "insert", "path": "src/a.py", "insert_line": 4, "insert_text": "x"}, r"within the range of lines of the file: \[0, 3\]"),
    ({"command": "insert", "path": "src/a.py", "insert_line": -1, "insert_text": "x"}, "Invalid `insert_line` parameter: -1"),
    ({"command": "insert", "path": "src/a.py", "insert_line": True, "insert_text": "x"}, "`insert_line` must be a whole number"),
    ({"command": "undo_edit", "path": "src/a.py"}, "No edit history found for src/a.py"),
]


def test_a_view_has_numbered_lines_or_the_files_of_a_directory(folder: Path) -> None:
    """Whole or in part, by a relative path or an absolute one below the root."""
    editor = text_editor(Folder(folder), root="/repo")
    assert [editor(arguments) for arguments, _ in SHOWN] == [shown for _, shown in SHOWN]


@pytest.mark.parametrize(("arguments", "path", "wanted"), EDITS)
def test_an_edit_changes_the_file_and_keeps_its_line_ends(arguments: dict[str, Any], path: str, wanted: bytes, folder: Path) -> None:
    """And can be undone once, as a version of the tool asks for."""
    editor, before = text_editor(Folder(folder), root="/repo"), (folder / path).read_bytes() if (folder / path).exists() else None
    editor(arguments)
    assert (folder / path).read_bytes() == wanted
    assert editor({"command": "undo_edit", "path": f"./{path}"}).endswith("undone successfully.")
    assert ((folder / path).read_bytes() if (folder / path).exists() else None) == before
    with pytest.raises(ToolException, match="No edit history"):
        editor({"command": "undo_edit", "path": path})


def test_what_cannot_be_done_raises_for_the_model_and_changes_nothing(folder: Path) -> None:
    """The message says what would work."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for arguments, message in FAILING:
        with pytest.raises(ToolException, match=message):
            text_editor(Folder(folder), root="/repo")(arguments)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_edits_are_undone_one_after_the_other_unless_somebody_else_wrote(folder: Path) -> None:
    """The last one first; what is not of the editor's own writing stays."""
    editor = text_editor(Folder(folder))
    for old, new in (("one", "1"), ("two", "2")):
        editor({"command": "str_replace", "path": f"{folder}/src/a.py", "old_str": old, "new_str": new})
    editor = pickle.loads(pickle.dumps(editor))
    for wanted in (b"1\ntwo\nthree\n", b"one\ntwo\nthree\n"):
        editor({"command": "undo_edit", "path": "src/a.py"})
        assert (folder / "src" / "a.py").read_bytes() == wanted
    editor({"command": "create", "path": "b", "file_text": "ours"})
    (folder / "b").write_text("theirs", "utf-8")
    with pytest.raises(ToolException, match="has changed since its last edit"):
        editor({"command": "undo_edit", "path": "b"})
    assert (folder / "b").read_text("utf-8") == "theirs"


def test_a_view_is_cut_off_at_its_limit(folder: Path) -> None:
    """And says how to see the rest."""
    shown = text_editor(Folder(folder), max_characters=8)({"command": "view", "path": "src/a.py"})
    assert shown == "1: one\n2\n[cut off after 8 characters: use view_range to see other lines]"


@given(text=st.text("ab\n", max_size=12), after=st.integers(0, 12), lines=st.lists(st.text("ab", max_size=3), min_size=1, max_size=3))
def test_inserted_lines_stand_behind_the_line_and_move_no_other(text: str, after: int, lines: list[str]) -> None:
    """For every text and place."""
    old = text.split("\n")
    count = len(old) - (not old[-1])
    if after > count:
        with pytest.raises(ToolException):
            inserted(text, after, "\n".join(lines))
    else:
        assert inserted(text, after, "\n".join(lines) + "\n") == "\n".join([*old[:after], *lines, *old[after:]])


@given(text=st.text("ab\n", max_size=12), old=st.text("ab\n", min_size=1, max_size=3), new=st.text("ab\n", max_size=3))
def test_a_replacement_is_made_where_there_is_one_place(text: str, old: str, new: str) -> None:
    """Overlapping places count as several."""
    if sum(text.startswith(old, place) for place in range(len(text))) == 1:
        assert replaced(text, old, new, "a") == (text.replace(old, new), text[: text.index(old)].count("\n") + 1)
    else:
        with pytest.raises(ToolException, match="No replacement was performed"):
            replaced(text, old, new, "a")
