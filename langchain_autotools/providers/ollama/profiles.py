"""The common profile of models behind /api/chat, for `model.profile`: the protocol's capabilities.

The rest depends on the model that the server runs; `profile={...}` says what the user knows of it.
"""

from typing import Any

_PROTOCOL: dict[str, Any] = {
    "text_inputs": True,
    "image_url_inputs": False,
    "pdf_inputs": False,
    "audio_inputs": False,
    "video_inputs": False,
    "pdf_tool_message": False,
    "text_outputs": True,
    "image_outputs": False,
    "audio_outputs": False,
    "video_outputs": False,
    "tool_choice": False,
}


def profile_of(num_ctx: int | None) -> dict[str, Any]:
    """Return the profile of a model with this context length in tokens; None: the server decides."""
    return dict(_PROTOCOL) if num_ctx is None else {**_PROTOCOL, "max_input_tokens": num_ctx}
