"""Diffs in the V4A format, which names no line numbers: a hunk is found by the lines that it shows.

```
@@ class Parser                  where to look: behind this line; several `@@` lines narrow the place down
@@     def read(self):
         data = self.next()      a line that stays begins with a space
-        return data             a line that goes begins with `-`
+        return data.strip()     a line that comes begins with `+`
*** End of File                  the lines above are the last ones of the file
```

A new file is a diff of `+` lines alone. Source: the instructions for models in OpenAI's codex, the tests of `apply_diff` in its Agents SDK.
Stricter than these: lines that fit in two places, or that differ from the file in more than white space at their ends, are an error. The
place is never guessed.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.tools import ToolException

from .text_lines import Line, joined, lines_of, newline_of

_END_OF_FILE = "*** End of File"


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

    def applied(self, old: Sequence[Line], newline: str) -> Iterator[Line]:
        """Yield what stands in the place of the old lines."""
        remaining = iter(old)
        for sign, text in self.body:
            if sign == "+":
                yield Line(text, newline)
            elif sign == "-":
                next(remaining)
            else:
                yield next(remaining)


def created_text(diff: str) -> str:
    """Return the text of a new file.

    Raises:
        ToolException: A line does not begin with `+`.
    """
    lines = _diff_lines(diff)
    for number, line in enumerate(lines, 1):
        if not line.text.startswith("+"):
            raise ToolException(f"line {number} of the diff must begin with `+`, like every line of a new file: {line.text!r}")
    return joined([Line(line.text[1:], line.end) for line in lines], "\n")


def changed_text(text: str, diff: str) -> str:
    """Return a text with a diff applied.

    Raises:
        ToolException: The diff breaks the format, or its lines stand nowhere in the text, or in several places.
    """
    lines, newline = lines_of(text), newline_of(text, newline_of(diff))
    result: list[Line] = []
    done = 0
    for hunk in _hunks(diff):
        start = _place(hunk, [line.text for line in lines], done)
        result += lines[done:start]
        done = start + len(hunk.old)
        result += hunk.applied(lines[start:done], newline)
    return joined(result + lines[done:], newline)


def _diff_lines(diff: str) -> list[Line]:
    lines = lines_of(diff)
    return lines[:-1] if not lines[-1].text else lines


def _hunks(diff: str) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    for number, (line, _) in enumerate(_diff_lines(diff), 1):
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


def _place(hunk: _Hunk, lines: list[str], done: int) -> int:
    """Return the line at which a hunk begins, the first of the file being 0."""
    end = len(lines) - (not lines[-1])
    anchored = _behind_anchors(hunk.anchors, lines, done)
    if not hunk.old:
        places = {end} if hunk.at_end or not end else anchored
        return _only(hunk, sorted(places), "no lines that stay or go, so that its place is unknown", done)
    starts = [start for start in _found(lines, hunk.old) if start >= done]
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
    known: list[list[int]] = []
    for anchor in anchors:
        exact = [number for number, line in enumerate(lines) if line == anchor]
        known.append(exact or [number for number, line in enumerate(lines) if line.strip() == anchor.strip()])
    places = {number + 1 for number in known[0] if number >= done}
    for numbers in known[1:]:
        places = {numbers[index] + 1 for place in places if (index := bisect_left(numbers, place)) < len(numbers)}
    return places


def _found(lines: list[str], wanted: list[str]) -> list[int]:
    """Return where lines begin that are equal to the wanted ones, else equal but for white space at their ends."""
    return _starts(lines, wanted) or _starts([line.rstrip() for line in lines], [line.rstrip() for line in wanted])


def _starts(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return every index at which `wanted` stands in `lines`, in linear time: by Knuth, Morris and Pratt."""
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
