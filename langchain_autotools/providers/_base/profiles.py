"""Tables of the known properties of a vendor's models, for `model.profile`."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

T = TypeVar("T")


def by_name(table: Mapping[str, T]) -> dict[str, T]:
    """Return a table with one name per key, from a table whose keys hold several names separated by spaces."""
    return {name: row for names, row in table.items() for name in names.split()}


def described(profiles: Mapping[str, Mapping[str, Any]], cards: str) -> dict[str, dict[str, Any]]:
    """Return profiles with the vendor's descriptive data of its models added.

    Args:
        profiles: The profiles, as of `by_name`.
        cards: A line a model, its parts divided by `|`: its name, the name that people read, the day of its release and, after a
            space, that of its last update where it is another, then `open` where its weights are, and its status where it has one.
    """
    rows = {name: dict(row) for name, row in by_name(profiles).items()}
    for line in cards.strip().splitlines():
        name, title, days, *marks = (part.strip() for part in line.split("|"))
        released, _, updated = days.partition(" ")
        rows[name] |= {"name": title, "release_date": released, "last_updated": updated or released, "open_weights": "open" in marks}
        if marks and marks[-1] != "open":
            rows[name]["status"] = marks[-1]
    return rows


def profile_in(profiles: Mapping[str, Mapping[str, Any]], model: str, version: re.Pattern[str]) -> dict[str, Any]:
    """Return the entry of a table for a model; empty if there is none.

    Args:
        profiles: The profiles by lower-case name.
        model: The model's name.
        version: The end of a name that says a version: such a name is taken for that without it where it does not stand in the table.
    """
    name = model.lower()
    return deepcopy(dict(profiles.get(name) or profiles.get(version.sub("", name)) or {}))


def profile(
    input_tokens: int,
    output_tokens: int,
    *,
    images: bool = False,
    pdfs: bool = False,
    sound_and_video: bool = False,
    reasoning: bool = False,
    efforts: Sequence[str] | None = None,
    default_effort: str | None = None,
    structured: bool = True,
    temperature: bool = True,
    streams_calls: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """Return the profile of a model that calls tools and reads and writes text.

    Args:
        input_tokens: The most tokens of a request.
        output_tokens: The most tokens of a reply.
        images: Whether it reads images.
        pdfs: Whether it reads PDFs.
        sound_and_video: Whether it reads sound and video.
        reasoning: Whether it reasons before it answers.
        efforts: The reasoning efforts that it takes.
        default_effort: The effort where none is asked for.
        structured: Whether its replies can be held to a schema.
        temperature: Whether it takes a sampling temperature.
        streams_calls: Whether calls arrive piece by piece.
        **more: Whatever else the profile says; it goes before what is said here of every model.
    """
    return {
        "max_input_tokens": input_tokens,
        "max_output_tokens": output_tokens,
        "text_inputs": True,
        "image_inputs": images,
        "image_url_inputs": images,
        "attachment": images,
        "pdf_inputs": pdfs,
        "audio_inputs": sound_and_video,
        "video_inputs": sound_and_video,
        "image_tool_message": images,
        "pdf_tool_message": pdfs,
        "text_outputs": True,
        "image_outputs": False,
        "audio_outputs": False,
        "video_outputs": False,
        "reasoning_output": reasoning,
        "tool_calling": True,
        "tool_choice": True,
        **({"tool_call_streaming": True} if streams_calls else {}),
        "structured_output": structured,
        "temperature": temperature,
        **({"reasoning_effort_levels": list(efforts)} if efforts else {}),
        **({"reasoning_effort_default": default_effort} if default_effort else {}),
        **more,
    }
