"""Types of the Responses API, as far as the package uses them.

They are wider than the SDK's types (`openai.types.responses`): an item is kept and sent back as it came, whatever else it holds.
"""

from typing import Any, Required, TypedDict

from ..wire import InputAudio


class ItemPart(TypedDict, total=False):
    """A part of a message, of a tool's output or of reasoning. In an outline, `length` replaces the text."""

    type: str
    text: str | None
    length: int
    refusal: str | None
    annotations: list[Any] | None
    logprobs: list[Any] | None
    detail: str
    image_url: str
    file_id: str
    file_url: str
    file_data: str
    filename: str
    input_audio: InputAudio


class Item(TypedDict, total=False):
    """An input or output item. Items of the vendor's own tools have further keys."""

    type: str
    id: str | None
    status: str | None
    role: str
    content: str | list[ItemPart] | None
    summary: list[ItemPart] | None
    encrypted_content: str | None
    call_id: str | None
    name: str | None
    arguments: str | None
    input: str | None
    output: str | list[ItemPart]
    caller: dict[str, Any] | None
    execution: str | None
    result: str | None


class Response(TypedDict, total=False):
    """A whole reply, or a partial one."""

    id: str | None
    model: str | None
    status: str | None
    output: list[Item] | None
    usage: Any
    error: Any
    incomplete_details: Any
    service_tier: str | None
    store: bool | None


class ResponseEvent(TypedDict, total=False):
    """An event of a streamed reply; from some gateways a whole reply."""

    type: Required[str]
    response: Response
    item: Item
    item_id: str | None
    output_index: int | None
    content_index: int | None
    summary_index: int | None
    delta: str | None
    arguments: str | None
    name: str | None
    error: Any
    output: list[Item] | None
    partial_image_b64: str | None
    partial_image_index: int | None
