"""Types of chat completions, as far as the package uses them.

They are wider than the SDK's types (`openai.types.chat`): compatible servers take more parts, and of their replies any key may be
absent, null or beside others.
"""

from typing import TYPE_CHECKING, Any, Required, TypedDict

if TYPE_CHECKING:
    from openai.types.chat.chat_completion_content_part_image_param import ImageURL
    from openai.types.chat.chat_completion_content_part_param import FileFile
    from openai.types.shared_params.response_format_json_schema import JSONSchema


class InputAudio(TypedDict):
    """Audio as base64 data."""

    data: str
    format: str


class Part(TypedDict, total=False):
    """A part of a message's content: its type, and its value under the key of that name."""

    type: Required[str]
    text: str
    image_url: "ImageURL"
    input_audio: InputAudio
    file: "FileFile"
    thinking: "list[Part] | str"


class AllowedTools(TypedDict):
    """The tools that may be called, and whether a call is required."""

    mode: str
    tools: "list[str | ToolChoice]"


class ToolChoice(TypedDict, total=False):
    """A tool choice other than a keyword: its type, and its value under the key of that name."""

    type: Required[str]
    function: dict[str, str]
    custom: dict[str, str]
    allowed_tools: AllowedTools
    server_label: str | None
    name: str


class ResponseFormat(TypedDict, total=False):
    """The format of a reply's text."""

    type: Required[str]
    json_schema: "JSONSchema"


class CallText(TypedDict, total=False):
    """The text of a call: `arguments` of a function, `input` of a custom tool."""

    name: str | None
    arguments: str | None
    input: str | None


class Call(TypedDict, total=False):
    """A tool call, or a fragment of one."""

    id: str | None
    type: str | None
    index: int | None
    function: CallText | None
    custom: Any
    """The text of a custom tool's call (`CallText`); in the package's own fragments True marks one."""
    caller: dict[str, Any] | None
    """The vendor's program that made the call, if the model did not."""


class Message(TypedDict, total=False):
    """A message, or a fragment of one."""

    role: str
    name: str
    content: str | list[Part] | None
    refusal: str | None
    reasoning_content: str | None
    tool_calls: list[Call] | None
    tool_call_id: str
    function_call: CallText | None
    audio: dict[str, Any] | None


class Usage(TypedDict, total=False):
    """Token counts of a reply."""

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    prompt_tokens_details: dict[str, int | None] | None
    completion_tokens_details: dict[str, int | None] | None


class Choice(TypedDict, total=False):
    """One of a reply's alternatives: a fragment (`delta`) or the whole (`message`)."""

    index: int | None
    delta: Message | None
    message: Message | None
    finish_reason: str | None
    native_finish_reason: str | None
    logprobs: dict[str, list[Any]] | None
    content_filter_results: Any
    usage: Usage | None
    error: Any


class Event(TypedDict, total=False):
    """An event of a streamed reply, or a whole reply."""

    id: str | None
    object: str | None
    type: str | None
    model: str | None
    choices: list[Choice] | None
    usage: Usage | None
    x_groq: Any
    error: Any
    message: str | None
