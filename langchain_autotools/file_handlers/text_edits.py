"""Views and edits of texts, in the sentences that models with an editor are trained on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import ToolException

from .text_lines import Line, joined, lines_of, newline_of, with_newlines


def argument(arguments: Mapping[str, Any], name: str, kind: type[Any] = str) -> Any:
    """Return an argument of a call.

    Raises:
        ToolException: It is missing, or of another type.
    """
    value = arguments.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ToolException(f"`{name}` must be {'a string' if kind is str else 'a whole number'}")
    return value


def numbered(text: str, view_range: Any, line_of: Callable[[int, str], str]) -> str:
    """Return the lines of a text with their numbers.

    Args:
        text: The text.
        view_range: The numbers of the first and the last line, -1 for the end; None for all lines.
        line_of: Returns a line with its number.
    """
    lines = _shown_lines(text)
    first, last = (1, len(lines)) if view_range is None else _range_of(view_range, len(lines))
    return "\n".join(line_of(number, lines[number - 1].text) for number in range(first, last + 1))


def _shown_lines(text: str) -> list[Line]:
    lines = lines_of(text)
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


def replaced(text: str, old: str, new: str, path: str) -> tuple[str, int]:
    """Return a text in which what occurs once is replaced, and the number of the line in which it begins.

    Raises:
        ToolException: It occurs never, or several times.
    """
    newline = newline_of(text, newline_of(new))
    wanted = old if old in text else with_newlines(old, newline)
    if not wanted or wanted not in text:
        raise ToolException(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if (start := text.find(wanted)) != text.rfind(wanted):
        places = _lines_with(text, wanted)
        message = f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {places}. Please ensure it is unique"
        raise ToolException(message)
    return text[:start] + with_newlines(new, newline) + text[start + len(wanted) :], text.count("\n", 0, start) + 1


def _lines_with(text: str, wanted: str) -> str:
    numbers: list[int] = []
    start, line, last = text.find(wanted), 1, 0
    while start >= 0 and len(numbers) < 20:
        line += text.count("\n", last, start)
        numbers.append(line)
        last, start = start, text.find(wanted, start + 1)
    return ", ".join(map(str, dict.fromkeys(numbers)))


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
    newline = newline_of(text, newline_of(addition))
    lines, added = lines_of(text), lines_of(addition)
    added = added if len(added) == 1 or added[-1].text else added[:-1]
    return joined([*lines[:after], *(Line(line.text, newline) for line in added), *lines[after:]], newline)
