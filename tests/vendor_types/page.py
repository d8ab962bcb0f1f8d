"""docs/vendor_types.md: written from verdicts, and read again for what the installed packages cannot say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tests.vendor_types.asking import Asked, worst
from tests.vendor_types.asking_rows import ASKED
from tests.vendor_types.reading import ECHO, KEPT, LOST, REFUSED, SOME
from tests.vendor_types.rows import ROWS, Row
from tests.vendor_types.stream_events import WIRES, Wire

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vendor_types.md"

_HEAD = """# What the vendors' types name

`python -m tests.vendor_types` reads the type definitions of the vendors' SDKs and makes samples of every kind of reply: each leaf of each
variant of each union, with a value of its own. A server on loopback sends each sample in a conversation of two turns, the first of which
also makes a tool call, and the machine looks for every value in the messages. `--write` writes this page; a test compares it with the code.

- *Kept*: the value can be read in the AI message of its turn (content, fields, usage, metadata), in every sample, and of the last turn in
  the run message. Where a type allows few values, another value must make a difference that the reader sees.
- *An echo*: the number of an entry that says nothing but its place in its list.
- **Lost**: anything else. A null, and a leaf of which the type allows one literal only, say nothing.

In the other direction samples are made of every kind of request: each parameter, each tool, each part of a message. A parameter is given to
the constructor (by its name, else in `model_kwargs`) or to the call, a tool to the constructor or to `bind_tools`, a part to a message or
to the reply before. The machine looks for every value in the requests of a conversation of two turns.

- *Kept*: the value stands in each request that may hold it.
- *In some requests* (†): a choice of tools that demands calls, and what the vendor takes once, stand in the first alone; the `format` of
  Ollama in the last, since its server then offers no tools.
- *Refused*: an error names it.

The events of a stream are put into a stream one at a time, in their place, and it is read with the event and without it, by `stream`,
`astream` and `events`; also broken off before the event and behind it, for what comes at once. An event that brings an item, a part or a
block is tried with each type of these.

- *Shown*: readers find something that they do not find without it: another chunk, another message, an event of ours, an error.
- *An echo*: the end of the reply says each value of it too, and what its name says.
- **Lost**: anything else.

The samples of replies go through LangChain's partner packages, in one turn, where these are installed; their columns say how many leaves
a reader cannot find.

"""
_GROUP = re.compile(r"(?:choices\[\]\.|candidates\[\]\.(?:content\.)?)?[A-Za-z_]+(?:\[\])?(?:<[^>]+>)?")

LOSSES = (
    (
        "Chat completions, chunks",
        "obfuscation",
        "Random text that pads each event of a stream, so that its length tells nothing of its content (`stream_options` switches it off).",
    ),
    (
        "Responses: input",
        r"reply<(message|reasoning)>\.status|reply<message>\.content\[\]<output_text>\.logprobs.*",
        "Of its own items the model needs neither state nor log probabilities, and other servers refuse them. The message has them.",
    ),
    (
        "Messages: messages",
        r"reply<text>\.(cache_control\.ttl|citations\[\].*\.file_id)",
        "A citation in a request may not name a file, and no reply has marks of the cache.",
    ),
    (
        "Messages: messages",
        r"user<tool_result>\.(toolset_name|content\[\]<\w+>\.cache_control\.ttl)",
        "A result has the toolset of its call, and a mark of the cache stands on the whole of it: the vendor takes none inside.",
    ),
    (
        "generateContent: contents",
        r"reply\.(mediaResolution|videoMetadata|audioTranscription|mediaProcessing|(speech|document|spreadsheet|audio)Metadata|fileData\.displayName)\b.*|reply\.thought",
        "What describes media or a thought that the model made stays in the message: the request needs the part, with its signature.",
    ),
    ("/api/chat: messages", r"reply\.images\[\]", "A model that draws need not read pictures; the message has them."),
)
"""What is lost on purpose: the row, a pattern of paths, and why."""

UNSEEN = (
    (
        "Responses",
        r"response\.audio\..*",
        "Audio: the types name events of it, but no request of this API asks for any and no item holds any.",
    ),
    (
        "Responses",
        "response.compaction.compacting",
        "That a compaction is being made has no event of ours; the item that comes of it is kept.",
    ),
)
"""The stream events that are lost: the wire, a pattern of types, and why."""

Verdict = Mapping[str, Mapping[str, str]]
"""The verdict on each leaf in each way."""


@dataclass(frozen=True)
class Known:
    """What a page says of a row.

    Attributes:
        leaves: The leaves, each with its verdict; what is an echo counts as kept.
        partner: The partner packages' cells by group; the head of the column under "".
    """

    leaves: Mapping[str, str]
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


def page(verdicts: Mapping[str, Verdict], partners: Mapping[str, Mapping[str, str]], seen: Mapping[str, Mapping[str, str]]) -> str:
    """The page.

    Args:
        verdicts: Of each row, by its name.
        partners: The column of each row's partner package.
        seen: What becomes of each wire's stream events, by the wire's name.
    """
    lines = [_HEAD, "| reply | defined by | leaves | kept | an echo | lost | in LangChain's package |\n|---|---|---:|---:|---:|---:|---|\n"]
    for row in ROWS:
        counted = Counter(worst(ways) for ways in verdicts[row.name].values())
        counts = " | ".join(str(number) for number in (counted.total(), counted[KEPT], counted[ECHO], counted[LOST]))
        lines.append(f"| {row.name} | {origin(row)} | {counts} | {partners[row.name].get('', 'not tried')} |\n")
    lines.append("\n| request | defined by | leaves | kept | in some requests | refused | lost |\n|---|---|---:|---:|---:|---:|---:|\n")
    for asked in ASKED:
        counted = Counter(worst(ways) for ways in verdicts[asked.name].values())
        counts = " | ".join(str(number) for number in (counted.total(), counted[KEPT], counted[SOME], counted[REFUSED], counted[LOST]))
        lines.append(f"| {asked.name} | {origin(asked)} | {counts} |\n")
    lines.append("\n| stream events | defined by | types | shown | an echo | lost |\n|---|---|---:|---:|---:|---:|\n")
    for wire in WIRES:
        told, echoes, lost = seen[wire.name], *(list(seen[wire.name].values()).count(one) for one in (ECHO, LOST))
        source = f"{wire.row.distribution} {version(wire.row.distribution)}, `{wire.defined}`"
        lines.append(f"| {wire.name} | {source} | {len(told)} | {len(told) - echoes - lost} | {echoes} | {lost} |\n")
    for one in (*ROWS, *ASKED):
        lines += _section(one, verdicts[one.name], partners.get(one.name))
    return "".join([*lines, *(line for wire in WIRES for line in _events_section(wire, seen[wire.name]))])


def _events_section(wire: Wire, seen: Mapping[str, str]) -> Iterator[str]:
    yield f"\n## {wire.name}{_OF_EVENTS}\n\n"
    yield from (f"{why}\n\n" for name, pattern, why in UNSEEN if name == wire.name and any(re.fullmatch(pattern, kind) for kind in seen))
    yield "| event | here |\n|---|---|\n"
    yield from (f"| `{kind}` | {f'**{one}**' if one == LOST else one} |\n" for kind, one in seen.items())


def read_events(text: str, wire: Wire) -> dict[str, str]:
    """What a page says of a wire's stream events."""
    section = text.partition(f"\n## {wire.name}{_OF_EVENTS}\n")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {kind.strip("`"): one.strip("*") for kind, one in cells}


def origin(row: Row | Asked) -> str:
    """Where a row's type comes from: package, release and name."""
    return f"{row.distribution} {version(row.distribution)}, `{row.type.__name__}`"


def _section(row: Row | Asked, found: Verdict, partner: Mapping[str, str] | None) -> Iterator[str]:
    how = "Asked" if isinstance(row, Asked) else "Read"
    yield f"\n## {row.name}\n\n{how} by {', '.join(f'`{way}`' for way in row.ways)}.\n\n"
    for name, pattern, why in LOSSES:
        if name == row.name and any(re.fullmatch(pattern, path) for path in found):
            yield f"{why}\n\n"
    beside = " LangChain's package |" if partner is not None else ""
    yield f"| part | leaves | here |{beside}\n|---|---|---|{'---|' if beside else ''}\n"
    for group, paths in groups(list(found)):
        leaves = ", ".join(_MARKS[worst(found[path])].format(_tail(path, group)) for path in paths)
        column = f" {partner.get(group, '')} |" if partner is not None else ""
        yield f"| `{group}` | {leaves} | {_cell([worst(found[path]) for path in paths])} |{column}\n"


_OF_EVENTS = ": stream events"
_MARKS = {KEPT: "{}", ECHO: "{}", LOST: "**{}**", REFUSED: "*{}*", SOME: "{}†"}


def _cell(found: Sequence[str]) -> str:
    counted = Counter(KEPT if one == ECHO else one for one in found)
    words = [verdict if len(counted) == 1 else f"{counted[verdict]} {verdict}" for verdict in (KEPT, SOME, REFUSED) if counted[verdict]]
    return f"{counted[LOST]} of {len(found)} lost" if counted[LOST] else ", ".join(words)


def _tail(path: str, group: str) -> str:
    return f"`{path.removeprefix(group).removeprefix('.') or '='}`"


def read(text: str) -> dict[str, Known]:
    """What a page says, by row."""
    heads = {line.split(" | ")[0].removeprefix("| "): line.rstrip(" |").split(" | ")[-1] for line in text.split("\n## ")[0].splitlines()}
    found = {}
    for section in text.split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        leaves: dict[str, str] = {}
        partner = {"": heads.get(name, "")}
        for line in body.splitlines():
            cells = line.strip("| ").split(" | ")
            if line.startswith("| `") and len(cells) >= 3:
                group = cells[0].strip("`")
                leaves |= {_whole(leaf, group): _marked(leaf) for leaf in cells[1].split(", ")}
                partner[group] = cells[3] if len(cells) > 3 else ""
        found[name] = Known(leaves, partner)
    return found


def _marked(leaf: str) -> str:
    return LOST if leaf.startswith("**") else REFUSED if leaf.startswith("*") else SOME if leaf.endswith("†") else KEPT


def _whole(leaf: str, group: str) -> str:
    tail = leaf.strip("*`†")
    return group if tail == "=" else group + ("" if tail.startswith(("[", "<", "{")) else ".") + tail
