"""The handler of apply_patch: what diffs make of files, and which of them fail without a trace."""

import difflib
import pickle
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from langchain_autotools.file_handlers import Folder, apply_patch


def patched(folder: Path, kind: str, path: str, diff: str | None = None) -> tuple[str, str]:
    """The status and the output of one operation."""
    operation = {"type": kind, "path": path} | ({} if diff is None else {"diff": diff})
    result = apply_patch(Folder(folder))({"operation": operation})
    return result["status"], result["output"]


def updated(folder: Path, text: str, diff: str) -> str:
    """The bytes of a file after a diff that fits, as text."""
    (folder / "file").write_bytes(text.encode())
    assert patched(folder, "update_file", "file", diff) == ("completed", "Updated file")
    return (folder / "file").read_bytes().decode()


CLASSES = "class A\n    def run():\n        pass\n\nclass B\n    def run():\n        pass\n"
FITTING = {
    "a change between lines that stay": ("a\nb\nc\n", "@@\n a\n-b\n+B\n c", "a\nB\nc\n"),
    "the first hunk needs no @@": ("a\nb\n", "-b\n+B\n", "a\nB\n"),
    "two hunks": ("a\nb\nc\nd\n", "@@\n-a\n@@\n c\n-d\n+D\n+e\n", "b\nc\nD\ne\n"),
    "an anchor alone": ("a\nb\nc\n", "@@ b\n+new", "a\nb\nnew\nc\n"),
    "an anchor with other indentation": (CLASSES, "@@ class B\n@@ def run():\n-        pass\n+        go", CLASSES[:-9] + "    go\n"),
    "nested anchors": (CLASSES, "@@ class A\n@@     def run():\n-        pass\n+        go\n", CLASSES.replace("pass", "go", 1)),
    "an anchor that is also shown as a line": ("a\nb\na\nc\n", "@@ b\n b\n a\n-c\n+C", "a\nb\na\nC\n"),
    "an anchor that is nowhere, around a place that is clear": ("a\nb\n", "@@ -1,2 +1,2 @@\n-b\n+B", "a\nB\n"),
    "an empty line without its space": ("a\n\nb\n", " a\n\n-b\n+B", "a\n\nB\n"),
    "white space at the ends of lines": ("a  \nb\n", " a\n-b\n+B\n", "a  \nB\n"),
    "the end of the file": ("a\nb\na\nb\n", "@@\n a\n-b\n+B\n*** End of File", "a\nb\na\nB\n"),
    "the end of a file without a line feed": ("a\nb", "@@\n-b\n+B\n*** End of File\n", "a\nB"),
    "lines at the end": ("a\n", "@@\n+b\n*** End of File", "a\nb\n"),
    "lines in an empty file": ("", "@@\n+a\n+b", "a\nb\n"),
    "a line feed at the end comes": ("a", " a\n+", "a\n"),
    "a line feed at the end goes": ("a\n", " a\n-\n", "a"),
    "a whole file goes": ("a\nb\n", "-a\n-b\n-", ""),
    "CRLF is kept": ("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+BB", "a\r\nB\r\nBB\r\nc\r\n"),
    "a diff in CRLF": ("a\nb\n", "@@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"),
    "other lines keep their ends": ("a\r\nb\nc\r\nd\r\n", " c\r\n-d\n+D", "a\r\nb\nc\r\nD\r\n"),
    "a last line in CRLF gets its end": ("a\r\nb", " b\n+c", "a\r\nb\r\nc"),
}


def test_a_diff_that_fits_is_applied(tmp_path: Path) -> None:
    """Each part of the format, once."""
    assert {case: updated(tmp_path, text, diff) for case, (text, diff, _) in FITTING.items()} == {
        case: text for case, (*_, text) in FITTING.items()
    }


FAILING = {
    "lines that are not there": ("a\nb\n", " x\n-b\n+B", "hunk 1 has lines that are not in the file"),
    "other indentation": ("  a\nb\n", " a\n-b\n+B", "those at line 1 differ from them in white space"),
    "two places": ("a\nb\na\n", "-a\n+A", "fits in several places, at lines 1, 3"),
    "two places behind an anchor that is there twice": (CLASSES, "@@ def run():\n-        pass", "lines 3, 7"),
    "an anchor that is nowhere": ("a\na\n", "@@ x\n-a", "several places"),
    "hunks in another order": ("a\nb\n", "@@\n-b\n@@\n-a", "hunk 2 has lines that are not in the file; those at line 1"),
    "not the end of the file": ("a\nb\n", "-a\n*** End of File", "not the last ones of the file"),
    "no place": ("a\n", "@@\n+b", "its place is unknown"),
    "no place behind an anchor that is nowhere": ("a\n", "@@ x\n+b", "its place is unknown"),
    "a second hunk that does not fit": ("a\nb\n", "@@\n-a\n+A\n@@\n-x", "hunk 2 has lines that are not in the file after line 1"),
    "another sign": ("a\n", "@@\n-a\nb", "line 3 of the diff must begin with"),
    "headers of files": ("a\n", "*** Update File: a\n-a", "line 1 of the diff must begin with .* without headers"),
    "lines after the end": ("a\n", "-a\n*** End of File\n+b", "line 3 of the diff: after"),
    "nothing": ("a\n", "", "no line that begins with"),
    "no change": ("a\n", "@@\n a\n", "changes nothing"),
    "only an anchor": ("a\n", "@@ a\n", "changes nothing"),
}


def test_a_diff_that_does_not_fit_changes_nothing_and_says_why(tmp_path: Path) -> None:
    """The place is never guessed, and no hunk is applied without the others."""
    for case, (text, diff, message) in FAILING.items():
        (tmp_path / "file").write_text(text, "utf-8")
        before = (tmp_path / "file").stat()
        status, output = patched(tmp_path, "update_file", "file", diff)
        assert (status, re.search(message, output) is not None) == ("failed", True), (case, output)
        assert (tmp_path / "file").read_text("utf-8") == text
        assert ((tmp_path / "file").stat().st_ino, [path.name for path in tmp_path.iterdir()]) == (before.st_ino, ["file"])


def test_files_are_created_and_deleted(tmp_path: Path) -> None:
    """A new file is made of `+` lines, a last empty one being its line feed; it replaces nothing."""
    assert patched(tmp_path, "create_file", "src/a.py", "+a\n+\n+b\n+\n") == ("completed", "Created src/a.py")
    assert patched(tmp_path, "create_file", "b", "+a\r\n+b\r\n+") == ("completed", "Created b")
    assert ((tmp_path / "src/a.py").read_bytes(), (tmp_path / "b").read_bytes()) == (b"a\n\nb\n", b"a\r\nb\r\n")
    assert patched(tmp_path, "create_file", "b", "+x") == ("failed", "File b already exists")
    assert patched(tmp_path, "create_file", "c/d", "+a\nb")[1].startswith("line 2 of the diff must begin with `+`")
    assert patched(tmp_path, "delete_file", "b") == ("completed", "Deleted b")
    assert patched(tmp_path, "delete_file", "src")[0] == "failed"
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["src", "src/a.py"]


NOTHING: list[Any] = [
    None,
    {},
    {"type": "move_file", "path": "a"},
    {"type": "create_file", "path": ["a"], "diff": "+"},
    {"type": "create_file", "path": "a", "diff": None},
    {"type": "create_file", "path": "/a", "diff": "+"},
    {"type": "create_file", "path": "../a", "diff": "+"},
    {"type": "create_file", "path": ".git/config", "diff": "+"},
    {"type": "update_file", "path": "none", "diff": "+a"},
    {"type": "delete_file", "path": "none"},
]


def test_an_operation_that_is_none_or_is_refused_fails(tmp_path: Path) -> None:
    """With a result for the model, not with an exception."""
    for operation in NOTHING:
        result = apply_patch(Folder(tmp_path))({"operation": operation})
        assert (result["status"], list(tmp_path.iterdir())) == ("failed", [])


def test_the_handler_travels_to_another_process(tmp_path: Path) -> None:
    """It is no more than its folder."""
    handler = pickle.loads(pickle.dumps(apply_patch(Folder(tmp_path))))
    assert handler({"operation": {"type": "create_file", "path": "a", "diff": "+b"}})["status"] == "completed"


def test_long_files_of_equal_lines_take_linear_time(tmp_path: Path) -> None:
    """A diff that almost fits everywhere ends within the time of a test."""
    (tmp_path / "file").write_text("a\n" * 200_000, "utf-8")
    assert patched(tmp_path, "update_file", "file", "@@ a\n" * 3 + " a\n" * 20_000 + "-b\n")[0] == "failed"


TEXTS = st.lists(st.sampled_from(["", "a", "b", " b", "c", "@@", "-", "+x", "***"]), max_size=8).map("\n".join)


def diff_of(old: list[str], new: list[str], context: int) -> str:
    """A diff with so many lines around each change."""
    lines: list[str] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines.append("@@")
        for kind, first, last, first_new, last_new in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[first:last]]
            else:
                lines += [f"-{line}" for line in old[first:last]] + [f"+{line}" for line in new[first_new:last_new]]
    return "\n".join(lines) + "\n"


@given(old=TEXTS, new=TEXTS, newline=st.sampled_from(["\n", "\r\n"]), context=st.integers(1, 9))
def test_the_diff_of_two_texts_makes_the_one_of_the_other(old: str, new: str, newline: str, context: int) -> None:
    """With all lines shown always; with fewer either so, or nothing is changed: never a third text."""
    if old == new:
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.write_bytes(old.replace("\n", newline).encode())
        status, output = patched(Path(folder), "update_file", "file", diff_of(old.split("\n"), new.split("\n"), context))
        if status == "completed":
            assert file.read_bytes().decode() == new.replace("\n", newline if "\n" in old else "\n")
        else:
            assert context < 9, output
            assert file.read_bytes().decode() == old.replace("\n", newline)
