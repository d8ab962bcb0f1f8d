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
from tests.vendor_types.installed import ABSENT, ASKED, ROWS
from tests.vendor_types.reading import ECHO, IN_MESSAGE, KEPT, LOST, REFUSED, SOME
from tests.vendor_types.rows import Row
from tests.vendor_types.stream_events import BROKEN, WIRES, Wire

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

- *Kept*: the value is in each request that may hold it.
- *In some requests* (†): a choice of tools that demands calls, and what the vendor takes once, are in the first alone; the `format` of
  Ollama in the last, since its server then offers no tools.
- *In the message* (‡): no request holds it, and the AI message of the history does, by its value: what a reply brought stays there for
  whoever reads it. Below is why the vendor is not sent it.
- *Refused*: an error names it: ours or, where it is left out because the vendor takes none, the vendor's, by its documentation.
- **Lost**: anything else.

The events of a stream are put into a stream one at a time, in their place, and it is read with the event and without it, by `stream`,
`astream` and `events`. It is also broken off before the event and behind it, for what comes at once. An event that brings an item, a part
or a block is tried with each type of these.

- *Shown*: readers find something that they do not find without it: another chunk, another message, an event of ours, an error.
- *An echo*: the end of the reply says each value of it too, and what its name says.
- **Lost**: anything else.

The samples of replies and of requests go through LangChain's partner packages too, in one turn, by `invoke` and `stream`, where these are
installed. Their columns say how many leaves a reader cannot find in any sample, and how many are in no request and no message and named by
no error. They are given what we are: parameters by the vendor's names, tools and parts in the vendor's form; what is refused with others is
tried alone. Of the events of a stream, echoes apart, it says of how many a reader of `stream` and `astream` finds nothing, or an error that
does not say what is in them.

The rows of Groq and Mistral need their SDKs (extra `vendor-types`), whose types say more than OpenAI's; langchain-groq does not admit the
SDK that they are of. Cohere's SDK has types of its own API alone, and `ChatCohere` speaks chat completions.

"""
_REPLIES = "| reply | defined by | leaves | kept | an echo | lost | in LangChain's package |\n|---|---|---:|---:|---:|---:|---|\n"
_REQUESTS = (
    "\n| request | defined by | leaves | kept | in some requests | in the message | refused | lost | in LangChain's package |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---|\n"
)
_EVENTS = "\n| stream events | defined by | types | shown | an echo | lost | in LangChain's package |\n|---|---|---:|---:|---:|---:|---|\n"
_GROUP = re.compile(r"(?:choices\[\]\.|candidates\[\]\.(?:content\.)?)?[A-Za-z_]+(?:\[\])?(?:<[^>]+>)?")

REASONS = (
    (
        "Groq: messages",
        r"message<.*>\.name",
        "Groq's documentation says that it refuses the name of an author.",
    ),
    (
        "Groq: messages",
        r"message<ChatCompletionAssistantMessageParam>\.reasoning",
        "A thought goes back to the model that had it alone.",
    ),
    (
        "Mistral: messages",
        r"message<AssistantMessageTypedDict>\.content\[\]<thinking>.*",
        "A thought goes back to the model that had it alone.",
    ),
    (
        "Mistral: messages",
        r"reply\.(content\[\]<(image_url|reference|file|input_audio|document_url|resource|resource_link)>.*|tool_calls\[\]\.(type|index))",
        "References, files and media beside the model's text stay in the message; of its calls it needs neither kind nor place.",
    ),
    (
        "Chat completions, chunks",
        "obfuscation",
        "Random text that pads each event of a stream, so that its length tells nothing of its content (`stream_options` switches it off). "
        "To keep it every chunk of text would have to be read whole, and summed: this one leaf stays lost.",
    ),
    (
        "Responses: input",
        r"reply<(message|reasoning)>\.status|reply<message>\.content\[\]<output_text>\.logprobs.*",
        "Of its own items the model needs neither state nor log probabilities, and other servers refuse them. The message has them.",
    ),
    (
        "Messages: messages",
        r"reply<text>\.citations\[\].*\.file_id",
        "A citation in a request may not name a file: the API refuses one that does.",
    ),
    (
        "generateContent: contents",
        r"reply\.(mediaResolution|videoMetadata|audioTranscription|mediaProcessing|(speech|document|spreadsheet|audio)Metadata|fileData\.displayName)\b.*",
        "What describes media that the model made stays in the message: the request needs the part, with its signature.",
    ),
)
"""Why what is left out of requests on purpose, or lost, is so: the row, a pattern of paths, and the reason."""

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


def partner_cells(row: Row | Asked, verdicts: Verdict) -> dict[str, str]:
    """The column of a partner package, of its verdicts."""
    cells = {group: _losses([verdicts[path] for path in paths]) for group, paths in groups(list(verdicts))}
    return {"": f"{_partner_of(row)}: {_losses(list(verdicts.values()))}", **cells}


def partner_cell(wire: Wire, seen: Mapping[str, str]) -> dict[str, str]:
    """The same of a wire's stream events."""
    unseen = sum(one in (LOST, BROKEN) for one in seen.values())
    return {"": f"{_partner_of(wire.row)}: {unseen} of {len(seen)} not seen"}


def _partner_of(row: Row | Asked) -> str:
    package = wire_of(row).partner[0].replace("_", "-")
    return f"{package} {version(package)}"


def wire_of(row: Row | Asked) -> Row:
    """The wire of a row."""
    return row.wire if isinstance(row, Asked) else row


def _losses(found: Sequence[Mapping[str, str]]) -> str:
    lost = sum(map(is_lost, found))
    return f"{lost} of {len(found)} lost" if lost else "kept"


def page(
    before: str, verdicts: Mapping[str, Verdict], partners: Mapping[str, Mapping[str, str]], seen: Mapping[str, Mapping[str, str]]
) -> str:
    """The page; what was not tried is as it was.

    Args:
        before: The page as it was.
        verdicts: Of each row that was tried, by its name.
        partners: The column of each of these rows' partner package, and of each wire's stream events, by the names on the page.
        seen: What becomes of each wire's stream events, by their name on the page, of those that were tried.
    """
    old = _Before(before)
    parts = [_HEAD]
    sections = []
    for head, rows, counts in ((_REPLIES, ROWS, (KEPT, ECHO, LOST)), (_REQUESTS, ASKED, (KEPT, SOME, IN_MESSAGE, REFUSED, LOST))):
        tried = {row.name: row for row in rows if row.name in verdicts}
        names = [name for row in rows if (name := row.name) in tried or (head, name) in old.lines] + old.of_absent(head)
        parts.append(head)
        parts += [_line(tried[name], verdicts[name], partners, counts) if name in tried else old.lines[head, name] for name in names]
        sections += [
            "".join(_section(tried[name], verdicts[name], partners[name])) if name in tried else old.sections[name] for name in names
        ]
    parts.append(_EVENTS)
    for wire in WIRES:
        name = events_of(wire)
        tried_events = seen.get(name)
        parts.append(_events_line(wire, tried_events, partners) if tried_events else old.lines[_EVENTS, name])
        sections.append("".join(_events_section(wire, tried_events)) if tried_events else old.sections[name])
    return "".join([*parts, *sections])


class _Before:
    """A page as it was: lines of its tables by table and name, and sections by name."""

    def __init__(self, text: str) -> None:
        head, *sections = text.split("\n## ")
        self.sections = {one.partition("\n")[0]: f"\n## {one.rstrip()}\n" for one in sections}
        self.lines = {
            (table, line.split(" | ")[0].removeprefix("| ")): f"{line}\n"
            for table in (_REPLIES, _REQUESTS, _EVENTS)
            for line in head.partition(table)[2].partition("\n\n")[0].splitlines()
        }

    def of_absent(self, table: str) -> list[str]:
        """The names in a table whose SDK is not installed."""
        return [name for (one, name), line in self.lines.items() if one == table and line.split(" | ")[1].split()[0] in ABSENT]


def _line(row: Row | Asked, found: Verdict, partners: Mapping[str, Mapping[str, str]], counts: Sequence[str]) -> str:
    counted = Counter(_counted_as(worst(ways), counts) for ways in found.values())
    numbers = " | ".join(str(number) for number in (counted.total(), *(counted[verdict] for verdict in counts)))
    return f"| {row.name} | {origin(row)} | {numbers} | {partners[row.name].get('') or 'not tried'} |\n"


def _counted_as(verdict: str, counts: Sequence[str]) -> str:
    return KEPT if verdict == ECHO and ECHO not in counts else verdict


def _events_line(wire: Wire, seen: Mapping[str, str], partners: Mapping[str, Mapping[str, str]]) -> str:
    echoes, lost = (list(seen.values()).count(one) for one in (ECHO, LOST))
    source = f"{wire.row.distribution} {version(wire.row.distribution)}, `{wire.defined}`"
    numbers = f"{len(seen)} | {len(seen) - echoes - lost} | {echoes} | {lost}"
    return f"| {events_of(wire)} | {source} | {numbers} | {partners[events_of(wire)].get('') or 'not tried'} |\n"


def _events_section(wire: Wire, seen: Mapping[str, str]) -> Iterator[str]:
    yield f"\n## {events_of(wire)}\n\n"
    yield "| event | here |\n|---|---|\n"
    yield from (f"| `{kind}` | {f'**{one}**' if one == LOST else one} |\n" for kind, one in seen.items())


def read_events(text: str, wire: Wire) -> dict[str, str]:
    """What a page says of a wire's stream events."""
    section = text.partition(f"\n## {events_of(wire)}\n")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {kind.strip("`"): one.strip("*") for kind, one in cells}


def events_of(wire: Wire) -> str:
    """The name of a wire's stream events on the page."""
    return f"{wire.name}: stream events"


def origin(row: Row | Asked) -> str:
    """Where a row's type comes from: package, release and name."""
    return f"{row.distribution} {version(row.distribution)}, `{row.type.__name__}`"


def _section(row: Row | Asked, found: Verdict, partner: Mapping[str, str]) -> Iterator[str]:
    how = "Asked" if isinstance(row, Asked) else "Read"
    yield f"\n## {row.name}\n\n{how} by {', '.join(f'`{way}`' for way in row.ways)}.\n\n"
    for name, pattern, why in REASONS:
        if name == row.name and any(re.fullmatch(pattern, path) for path in found):
            yield f"{why}\n\n"
    yield "| part | leaves | here | LangChain's package |\n|---|---|---|---|\n"
    for group, paths in groups(list(found)):
        leaves = ", ".join(_MARKS[worst(found[path])].format(_tail(path, group)) for path in paths)
        yield f"| `{group}` | {leaves} | {_cell([worst(found[path]) for path in paths])} | {partner.get(group, '')} |\n"


_MARKS = {KEPT: "{}", ECHO: "{}", LOST: "**{}**", REFUSED: "*{}*", SOME: "{}†", IN_MESSAGE: "{}‡"}


def _cell(found: Sequence[str]) -> str:
    counted = Counter(KEPT if one == ECHO else one for one in found)
    found_so = [verdict for verdict in (KEPT, SOME, IN_MESSAGE, REFUSED) if counted[verdict]]
    words = [verdict if len(counted) == 1 else f"{counted[verdict]} {verdict}" for verdict in found_so]
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
    if leaf.startswith("*"):
        return LOST if leaf.startswith("**") else REFUSED
    return {"†": SOME, "‡": IN_MESSAGE}.get(leaf[-1], KEPT)


def _whole(leaf: str, group: str) -> str:
    tail = leaf.strip("*`†‡")
    return group if tail == "=" else group + ("" if tail.startswith(("[", "<", "{")) else ".") + tail
