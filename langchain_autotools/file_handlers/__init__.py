"""Handlers of the file tools that vendors train their models on, each for the files of one folder."""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from langchain_core.tools import ToolException

from ..providers.memory_tools import run_command
from .folder import Entry, Folder

__all__ = ["Entry", "Folder", "apply_patch", "memory", "text_editor"]


# ---------------------------------------------------------------------------------------------- handlers
#
# Handlers of the vendors' file tools: `apply_patch`, the text editor, the memory tool.

_MAX_UNDONE = 20
_MEMORY_ROOT = "/memories"
_MEMORY_ARGUMENTS: Mapping[str, Mapping[str, type[Any]]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


def apply_patch(folder: Folder) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """Return a handler of `apply_patch` calls, which makes, changes and deletes files of one folder.

    A diff is applied as a whole or not at all. Where its lines are not in the file, or in several places, the result says so and the
    model tries again: its status is then `failed`.

    Args:
        folder: The folder. Paths are relative to it.
    """
    return partial(_patch_result, folder)


def _patch_result(folder: Folder, arguments: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {"status": "completed", "output": _apply_operation(folder, arguments.get("operation"))}
    except ToolException as error:
        return {"status": "failed", "output": str(error)}


def _apply_operation(folder: Folder, operation: Any) -> str:
    if not isinstance(operation, Mapping):
        raise ToolException("`operation` must be an object")
    kind, path, diff = operation.get("type"), operation.get("path"), operation.get("diff", "")
    if not isinstance(path, str) or not isinstance(diff, str):
        raise ToolException("`path` and `diff` of an operation must be strings")
    if kind == "create_file":
        lines = _shown_lines(diff)
        for number, line in enumerate(lines, 1):
            if not line.text.startswith("+"):
                raise ToolException(f"line {number} of the diff must begin with `+`, like every line of a new file: {line.text!r}")
        folder.create(path, _joined_lines([_Line(line.text[1:], line.end) for line in lines], "\n"))
        return f"Created {path}"
    if kind == "update_file":
        folder.edit(path, lambda text: _changed_text(text, diff))
        return f"Updated {path}"
    if kind == "delete_file":
        folder.delete(path)
        return f"Deleted {path}"
    raise ToolException(f"an operation must be create_file, update_file or delete_file, not {kind!r}")


# --------------------------------------------------------------------------- the text editor, a tool that shows and edits files by commands


def text_editor(folder: Folder, *, root: str | None = None, max_characters: int | None = None) -> Callable[[Mapping[str, Any]], str]:
    """Return a handler of text editor calls for the files of one folder: view, create, str_replace, insert, undo_edit.

    Args:
        folder: The folder.
        root: The absolute path under which the model knows the folder, since it often writes absolute ones; without it the folder's
            own path. Paths may also be relative to the folder.
        max_characters: Maximum length of what is shown of a file, for tools that are declared with the same.
    """
    return _TextEditor(folder.known_as(root or folder.path), max_characters)


class _TextEditor:
    def __init__(self, folder: Folder, max_characters: int | None) -> None:
        self._folder = folder
        self._max_characters = max_characters
        self._edits: deque[tuple[tuple[str, ...], str | None, str]] = deque(maxlen=_MAX_UNDONE)

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        commands = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "undo_edit": self._undo_edit,
        }
        command = arguments.get("command")
        if not isinstance(command, str) or command not in commands:
            raise ToolException(f"Unrecognized command {command!r}. The allowed commands are: {', '.join(commands)}")
        return commands[command](_argument(arguments, "path"), arguments)

    def _view(self, path: str, arguments: Mapping[str, Any]) -> str:
        view_range = arguments.get("view_range")
        if self._folder.is_directory(path):
            if view_range is not None:
                raise ToolException("The `view_range` parameter is not allowed when `path` points to a directory.")
            entries = [f"{path.rstrip('/')}/{entry.path}{'/' * entry.is_directory}" for entry in self._folder.entries(path)]
            return "\n".join([path, *entries])
        shown = _numbered(self._folder.read(path), view_range, lambda number, line: f"{number}: {line}")
        if self._max_characters is None or len(shown) <= self._max_characters:
            return shown
        return f"{shown[: self._max_characters]}\n[cut off after {self._max_characters} characters: use view_range to see other lines]"

    def _create(self, path: str, arguments: Mapping[str, Any]) -> str:
        text = _argument(arguments, "file_text")
        self._folder.create(path, text)
        self._edits.append((self._folder.names(path), None, text))
        return f"File created successfully at: {path}"

    def _str_replace(self, path: str, arguments: Mapping[str, Any]) -> str:
        old, new = _argument(arguments, "old_str"), _argument({"new_str": "", **arguments}, "new_str")
        self._edit(path, lambda text: replaced(text, old, new, path)[0])
        return "Successfully replaced text at exactly one location."

    def _insert(self, path: str, arguments: Mapping[str, Any]) -> str:
        # Versions of the tool before 2025-07 have the lines in `new_str`.
        line = _argument(arguments, "insert_line", int)
        added = _argument(arguments, "insert_text" if "insert_text" in arguments else "new_str")
        self._edit(path, lambda text: inserted(text, line, added))
        return f"The file {path} has been edited."

    def _edit(self, path: str, change: Callable[[str], str]) -> None:
        edit: list[tuple[tuple[str, ...], str | None, str]] = []

        def changed(text: str) -> str:
            edit.append((self._folder.names(path), text, change(text)))
            return edit[0][2]

        self._folder.edit(path, changed)
        self._edits.extend(edit)

    def _undo_edit(self, path: str, arguments: Mapping[str, Any]) -> str:
        names = self._folder.names(path)
        edit = next((edit for edit in reversed(self._edits) if edit[0] == names), None)
        if edit is None:
            raise ToolException(f"No edit history found for {path}.")
        _, before, after = edit

        def undone(text: str) -> str:
            if text != after:
                raise ToolException(f"{path} has changed since its last edit, which can no longer be undone")
            return before or ""

        self._folder.edit(path, undone)
        if before is None:
            self._folder.delete(path)
        self._edits = deque((one for one in self._edits if one is not edit), maxlen=_MAX_UNDONE)
        return f"Last edit to {path} undone successfully."


# ---------------------------------------------------------- the memory tool, by which a model keeps notes from one conversation to the next


def memory(folder: Folder) -> Callable[[Mapping[str, Any]], str]:
    """Return a handler of memory calls, whose `/memories` is one folder: view, create, str_replace, insert, delete, rename.

    Args:
        folder: The folder. What one user's model keeps there, the model reads for whoever gets the same folder: give each user one.
    """
    return partial(_memory_result, folder.known_as(_MEMORY_ROOT))


def _memory_result(folder: Folder, arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or command not in _MEMORY_ARGUMENTS:
        raise ToolException(f"Unrecognized command {command!r}. The allowed commands are: {', '.join(_MEMORY_ARGUMENTS)}")
    given = {name: _argument(arguments, name, kind) for name, kind in _MEMORY_ARGUMENTS[command].items()}
    for name in given:
        if name.endswith("path") and not given[name].startswith("/"):
            raise ToolException(f"{given[name]}: a path must begin with {_MEMORY_ROOT}")
    return run_command(_FolderMemory(folder), {**arguments, **given})


class _FolderMemory:
    """The commands of the memory tool, with the sentences that its documentation gives for their results."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def view(self, path: str, view_range: list[int] | None) -> str:
        """Return the lines of a file, or the files of a directory."""
        if not self._folder.is_directory(path):
            lines = _numbered(self._folder.read(path), view_range, _numbered_line)
            return f"Here's the content of {path} with line numbers:\n{lines}"
        entries = self._folder.entries(path)
        above = path.rstrip("/")
        total = sum(entry.size for entry in entries if not entry.is_directory)
        lines = "".join(f"\n{_size(entry.size)}\t{above}/{entry.path}{'/' * entry.is_directory}" for entry in entries)
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        return f"{head}\n{_size(total)}\t{path}{lines}"

    def create(self, path: str, text: str) -> str:
        """Make a new file."""
        self._folder.create(path, text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace what occurs once in a file, and return the lines around it."""
        snippet = ""

        def changed(text: str) -> str:
            nonlocal snippet
            after, line = replaced(text, old, new, path)
            snippet = _numbered(after, [max(1, line - 2), line + 2], _numbered_line)
            return after

        self._folder.edit(path, changed)
        return f"The memory file has been edited.\n{snippet}"

    def insert(self, path: str, line: int, text: str) -> str:
        """Add lines to a file."""
        self._folder.edit(path, lambda before: inserted(before, line, text))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Remove a file or a directory."""
        self._folder.delete(path, directories=True)
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Rename or move a file or a directory."""
        self._folder.rename(old, new)
        return f"Successfully renamed {old} to {new}"


def _numbered_line(number: int, line: str) -> str:
    return f"{number:6}\t{line}"


def _size(count: float) -> str:
    if count < 1024:
        return f"{count}B"
    return f"{count / 1024:.1f}K" if count < 1024**2 else f"{count / 1024**2:.1f}M"


# ---------------------------------------------------------------------------------------------- text edits
#
# Edits of a file's text, by lines that keep their own ends.


class _Line(NamedTuple):
    """A line and what ends it: a line feed, with or without a carriage return, or nothing at the end of the text."""

    text: str
    end: str


_END_OF_FILE = "*** End of File"


def _argument(arguments: Mapping[str, Any], name: str, kind: type[Any] = str) -> Any:
    """Return an argument of a call.

    Raises:
        ToolException: It is missing, or of another type.
    """
    value = arguments.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolException(f"`{name}` must be {'a string' if kind is str else 'a whole number'}")
    return value


def _numbered(text: str, view_range: Any, line_of: Callable[[int, str], str]) -> str:
    """Return the lines of a text with their numbers.

    Args:
        text: The text.
        view_range: The numbers of the first and the last line, -1 for the end; None for all lines.
        line_of: Returns a line with its number.
    """
    lines = _shown_lines(text)
    first, last = (1, len(lines)) if view_range is None else _range_of(view_range, len(lines))
    return "\n".join(line_of(number, lines[number - 1].text) for number in range(first, last + 1))


def replaced(text: str, old: str, new: str, path: str) -> tuple[str, int]:
    """Return a text in which what occurs once is replaced, and the number of the line in which it begins.

    Raises:
        ToolException: It occurs never, or several times.
    """
    newline = _newline_of(text, _newline_of(new))
    wanted = old if old in text else _with_newlines(old, newline)
    if not wanted or wanted not in text:
        raise ToolException(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if (start := text.find(wanted)) != text.rfind(wanted):
        places = _lines_with(text, wanted)
        message = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {places}. Please ensure it is unique"
        raise ToolException(message)
    return text[:start] + _with_newlines(new, newline) + text[start + len(wanted) :], text.count("\n", 0, start) + 1


def inserted(text: str, after: int, addition: str) -> str:
    """Return a text with lines added.

    Args:
        text: The text.
        after: The number of the line after which they come; 0 for the beginning.
        addition: The lines, with or without a line feed at the end.

    Raises:
        ToolException: There is no such line.
    """
    count = len(_shown_lines(text))
    if not 0 <= after <= count:
        raise ToolException(f"Invalid `insert_line` parameter: {after}. It should be within the range of lines of the file: [0, {count}]")
    newline = _newline_of(text, _newline_of(addition))
    lines, added = _lines_of(text), _lines_of(addition)
    added = added if len(added) == 1 or added[-1].text else added[:-1]
    return _joined_lines([*lines[:after], *(_Line(line.text, newline) for line in added), *lines[after:]], newline)


def _shown_lines(text: str) -> list[_Line]:
    lines = _lines_of(text)
    return lines if lines[-1].text else lines[:-1]


def _range_of(view_range: Any, count: int) -> tuple[int, int]:
    is_pair = isinstance(view_range, Sequence) and len(view_range) == 2 and all(type(number) is int for number in view_range)
    first, last = view_range if is_pair else (0, 0)
    if not 1 <= first <= max(count, 1) or not (last == -1 or last >= first):
        raise ToolException(
            f"Invalid `view_range` parameter: {view_range}. It must be two line numbers: the first within [1, {max(count, 1)}], "
            "the second not before it, or -1 for the end of the file"
        )
    return first, count if last == -1 else min(last, count)


def _lines_with(text: str, wanted: str) -> str:
    """Return the numbers of the first lines in which a text begins, in words."""
    numbers: list[int] = []
    start, line, last = text.find(wanted), 1, 0
    while start >= 0 and len(numbers) < 20:
        line += text.count("\n", last, start)
        numbers.append(line)
        last, start = start, text.find(wanted, start + 1)
    return ", ".join(map(str, dict.fromkeys(numbers)))


# ---------------------------------------------------------------------------------------------- diffs in the V4A format
#
# It names no line numbers: a hunk is found by the lines that it shows.
#
# ```
# @@ class Parser                  where to look: behind this line; several `@@` lines narrow the place down
# @@     def read(self):
#          data = self.next()      a line that stays begins with a space
# -        return data             a line that goes begins with `-`
# +        return data.strip()     a line that comes begins with `+`
# *** End of File                  the lines above are the last ones of the file
# ```
#
# A new file is a diff of `+` lines alone. Source: the instructions for models in OpenAI's codex, the tests of `apply_diff` in its Agents
# SDK. Stricter than these: lines that fit in two places, or that differ from the file in more than white space at their ends, are an
# error. The place is never guessed.


def _changed_text(text: str, diff: str) -> str:
    """Return a text with a diff applied.

    Raises:
        ToolException: The diff breaks the format, or its lines are nowhere in the text, or in several places.
    """
    lines, newline = _lines_of(text), _newline_of(text, _newline_of(diff))
    result: list[_Line] = []
    done = 0
    for hunk in _hunks(diff):
        start = _hunk_position(hunk, [line.text for line in lines], done)
        result += lines[done:start]
        done = start + len(hunk.old)
        result += hunk.applied(lines[start:done], newline)
    return _joined_lines(result + lines[done:], newline)


@dataclass
class _Hunk:
    """Lines that follow one another in the file, with what becomes of them."""

    number: int
    anchors: list[str] = field(default_factory=list)
    body: list[tuple[str, str]] = field(default_factory=list)
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.body if sign != "+"]

    def applied(self, old: Sequence[_Line], newline: str) -> Iterator[_Line]:
        """Yield what replaces the old lines."""
        remaining = iter(old)
        for sign, text in self.body:
            if sign == "+":
                yield _Line(text, newline)
            elif sign == "-":
                next(remaining)
            else:
                yield next(remaining)


def _hunks(diff: str) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    for number, (line, _) in enumerate(_shown_lines(diff), 1):
        if line.startswith("@@"):
            if not hunks or hunks[-1].body or hunks[-1].at_end:
                hunks.append(_Hunk(len(hunks) + 1))
            hunks[-1].anchors += [anchor for anchor in [line[2:].removeprefix(" ")] if anchor.strip()]
            continue
        hunks = hunks or [_Hunk(1)]
        if hunks[-1].at_end:
            raise ToolException(f"line {number} of the diff: after `{_END_OF_FILE}` a new hunk must begin with `@@`")
        if line.rstrip() == _END_OF_FILE:
            hunks[-1].at_end = True
        elif not line or line[0] in " +-":
            hunks[-1].body.append((line[:1] or " ", line[1:]))
        else:
            raise ToolException(f"line {number} of the diff must begin with a space, `+`, `-` or `@@`, without headers of files: {line!r}")
    if not hunks or not all(any(sign != " " for sign, _ in hunk.body) for hunk in hunks):
        raise ToolException(
            "the diff has no line that begins with `+` or `-`" if not hunks else "a hunk changes nothing: it has no `+` or `-`"
        )
    return hunks


def _hunk_position(hunk: _Hunk, lines: list[str], done: int) -> int:
    """Return the line at which a hunk begins, the first of the file being 0."""
    end = len(lines) - (not lines[-1])
    anchored = _behind_anchors(hunk.anchors, lines, done)
    if not hunk.old:
        places = {end} if hunk.at_end or not end else anchored
        return _only(hunk, sorted(places), "no lines that stay or go, so that its place is unknown", done)
    found = _starts(lines, hunk.old) or _starts([line.rstrip() for line in lines], [line.rstrip() for line in hunk.old])
    starts = [start for start in found if start >= done]
    if hunk.at_end:
        last = [start for start in starts if start + len(hunk.old) in (end, len(lines))]
        return _only(hunk, last[-1:], "lines that are not the last ones of the file", done)
    behind = {starts[index] for place in anchored if (index := bisect_left(starts, place)) < len(starts)}
    return _only(hunk, sorted(behind) or starts, _why_missing(hunk, lines), done)


def _only(hunk: _Hunk, places: list[int], missing: str, done: int) -> int:
    if len(places) == 1:
        return places[0]
    name = f"hunk {hunk.number}"
    if not places:
        shown = "\n".join(hunk.old)
        after = f" after line {done}, where the hunk before it ends" if done else ""
        raise ToolException(f"{name} has {missing}{after}. Nothing was changed. Look at the file again.\n{shown}".rstrip())
    lines = ", ".join(str(place + 1) for place in places[:10])
    raise ToolException(
        f"{name} fits in several places, at lines {lines}. Nothing was changed. Add lines around the change, or `@@` and the line of the "
        "class or function that it is in."
    )


def _why_missing(hunk: _Hunk, lines: list[str]) -> str:
    alike = _starts([line.strip() for line in lines], [line.strip() for line in hunk.old])
    if alike:
        return f"lines that are not in the file; those at line {alike[0] + 1} differ from them in white space, or lie elsewhere:"
    return "lines that are not in the file"


def _behind_anchors(anchors: list[str], lines: list[str], done: int) -> set[int]:
    """Return every line behind the anchors: behind each first one that is there, and the nearest following ones."""
    if not anchors:
        return set()
    known = [_starts(lines, [anchor]) or _starts([line.strip() for line in lines], [anchor.strip()]) for anchor in anchors]
    places = {number + 1 for number in known[0] if number >= done}
    for numbers in known[1:]:
        places = {numbers[index] + 1 for place in places if (index := bisect_left(numbers, place)) < len(numbers)}
    return places


def _starts(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return every index at which `wanted` is in `lines`, in linear time: by Knuth, Morris and Pratt."""
    back = [0]
    for line in wanted[1:]:
        back.append(_advanced(wanted, back, back[-1], line))
    starts, matched = [], 0
    for number, line in enumerate(lines):
        matched = _advanced(wanted, back, back[-1] if matched == len(wanted) else matched, line)
        if matched == len(wanted):
            starts.append(number + 1 - matched)
    return starts


def _advanced(wanted: Sequence[str], back: Sequence[int], matched: int, line: str) -> int:
    """Return how many of the wanted lines the text ends in after one more line."""
    while matched and wanted[matched] != line:
        matched = back[matched - 1]
    return matched + (wanted[matched] == line)


# ---------------------------------------------------------------------------------------------- lines that keep their own ends


def _lines_of(text: str) -> list[_Line]:
    """Return the lines of a text. The last one has no end; it is empty where the text ends in a line feed."""
    pieces = [*re.split(r"(\r?\n)", text), ""]
    return [_Line(*pair) for pair in zip(pieces[::2], pieces[1::2], strict=True)]


def _newline_of(text: str, default: str = "\n") -> str:
    """Return what ends most lines of a text; `default` for a text of one line."""
    total, wide = text.count("\n"), text.count("\r\n")
    if not total:
        return default
    return "\r\n" if 2 * wide > total else "\n"


def _with_newlines(text: str, newline: str) -> str:
    """Return a text whose lines all end in `newline`."""
    return re.sub(r"\r?\n", newline, text)


def _joined_lines(lines: list[_Line], newline: str) -> str:
    """Return the text of lines of which any may have become the last one, or be it no more.

    Args:
        lines: The lines.
        newline: What ends those that are no longer the last one.
    """
    return "".join(line.text + (line.end or newline) for line in lines[:-1]) + "".join(line.text for line in lines[-1:])
