"""docs/vendor_types.md: written from verdicts, and read again for what the installed packages cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tests.vendor_types.reading import ECHO, LOST
from tests.vendor_types.rows import ROWS, Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vendor_types.md"

_HEAD = """# What the vendors' types name

`python -m tests.vendor_types` reads the type definitions of the vendors' SDKs and makes samples of every kind of reply: each leaf of each
variant of each union, with a value of its own. A server on loopback sends each sample in a conversation of two turns, the first of which
also makes a tool call, and the machine looks for every value in the messages. `--write` writes this page; a test compares it with the code.

- *Kept*: the value can be read in the AI message of its turn (content, fields, usage, metadata), in every sample, and of the last turn in
  the run message. Where a type allows few values, another value must make a difference that the reader sees.
- *An echo*: the number of an entry that says nothing but its place in its list.
- **Lost**: anything else. A null, and a leaf of which the type allows one literal only, say nothing.

The same samples go through LangChain's partner packages, in one turn, where these are installed; their columns say how many leaves a reader
cannot find.

"""
_GROUP = re.compile(r"(?:choices\[\]\.|candidates\[\]\.(?:content\.)?)?[A-Za-z_]+(?:\[\])?(?:<[^>]+>)?")

Verdict = Mapping[str, Mapping[str, str]]
"""The verdict on each leaf in each way."""


@dataclass(frozen=True)
class Known:
    """What a page says of a row.

    Attributes:
        leaves: The leaves, and whether each is lost.
        partner: The partner packages' cells by group; the head of the column under "".
    """

    leaves: Mapping[str, bool]
    partner: Mapping[str, str]


def group_of(path: str) -> str:
    """The part of a reply that a leaf belongs to."""
    found = _GROUP.match(path)
    return found[0] if found else path


def groups(paths: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Leaves by the part of the reply that they belong to."""
    for group, members in groupby(sorted(paths, key=lambda path: (group_of(path), path)), key=group_of):
        yield group, list(members)


def is_lost(ways: Mapping[str, str]) -> bool:
    """Whether a leaf is lost in any of its ways."""
    return LOST in ways.values()


def partner_cells(row: Row, verdicts: Verdict) -> dict[str, str]:
    """The column of a partner package, of its verdicts."""
    package = row.partner[0].replace("_", "-")
    cells = {group: _losses([verdicts[path] for path in paths]) for group, paths in groups(list(verdicts))}
    return {"": f"{package} {version(package)}: {_losses(list(verdicts.values()))}", **cells}


def _losses(found: Sequence[Mapping[str, str]]) -> str:
    lost = sum(map(is_lost, found))
    return f"{lost} of {len(found)} lost" if lost else "kept"


def page(verdicts: Mapping[str, Verdict], partners: Mapping[str, Mapping[str, str]]) -> str:
    """The page.

    Args:
        verdicts: Of each row, by its name.
        partners: The column of each row's partner package.
    """
    lines = [_HEAD, "| reply | defined by | leaves | kept | an echo | lost | in LangChain's package |\n|---|---|---:|---:|---:|---:|---|\n"]
    for row in ROWS:
        found = verdicts[row.name]
        lost, echo = sum(map(is_lost, found.values())), sum(ECHO in ways.values() for ways in found.values())
        origin = f"{row.distribution} {version(row.distribution)}, `{row.type.__name__}`"
        counts = f"{len(found)} | {len(found) - lost - echo} | {echo} | {lost}"
        lines.append(f"| {row.name} | {origin} | {counts} | {partners[row.name].get('', 'not tried')} |\n")
    for row in ROWS:
        lines += _section(row, verdicts[row.name], partners[row.name])
    return "".join(lines)


def _section(row: Row, found: Verdict, partner: Mapping[str, str]) -> Iterator[str]:
    yield f"\n## {row.name}\n\nRead by {', '.join(f'`{way}`' for way in row.ways)}.\n\n"
    yield "| part | leaves | here | LangChain's package |\n|---|---|---|---|\n"
    for group, paths in groups(list(found)):
        leaves = ", ".join(f"**{_tail(path, group)}**" if is_lost(found[path]) else _tail(path, group) for path in paths)
        yield f"| `{group}` | {leaves} | {_losses([found[path] for path in paths])} | {partner.get(group, '')} |\n"


def _tail(path: str, group: str) -> str:
    return f"`{path.removeprefix(group).removeprefix('.') or '='}`"


def read(text: str) -> dict[str, Known]:
    """What a page says, by row."""
    heads = {line.split(" | ")[0].removeprefix("| "): line.rstrip(" |").split(" | ")[-1] for line in text.split("\n## ")[0].splitlines()}
    found = {}
    for section in text.split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        leaves: dict[str, bool] = {}
        partner = {"": heads.get(name, "")}
        for line in body.splitlines():
            cells = line.strip("| ").split(" | ")
            if line.startswith("| `") and len(cells) >= 3:
                group = cells[0].strip("`")
                leaves |= {_whole(leaf, group): leaf.startswith("**") for leaf in cells[1].split(", ")}
                partner[group] = cells[3] if len(cells) > 3 else ""
        found[name] = Known(leaves, partner)
    return found


def _whole(leaf: str, group: str) -> str:
    tail = leaf.strip("*`")
    return group if tail == "=" else group + ("" if tail.startswith(("[", "<", "{")) else ".") + tail
