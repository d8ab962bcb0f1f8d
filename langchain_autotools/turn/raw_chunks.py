"""The values of a model's `raw_stream`, as messages."""

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from ..chunks import new_chunk
from ..errors import ConfigurationError


def as_message(piece: object) -> AIMessage:
    """Return a value of `raw_stream` or `raw_invoke` as a message; also accepts texts and values of LangChain's own methods.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(piece, AIMessage):
        return piece
    if isinstance(piece, str):
        return new_chunk(piece, {}, None)
    if isinstance(piece, ChatResult) and piece.generations:
        piece = piece.generations[0]
    if isinstance(piece, ChatGeneration) and isinstance(piece.message, AIMessage):
        about = {**(piece.generation_info or {}), **piece.message.response_metadata}
        return piece.message.model_copy(update={"response_metadata": about})
    hint = ": `yield` a message, do not `return` it" if isinstance(piece, tuple) else ""  # a message iterates as its fields
    raise ConfigurationError(f"raw_stream yields AIMessageChunks (or texts, or ChatGenerationChunks), not {type(piece).__name__}{hint}")
