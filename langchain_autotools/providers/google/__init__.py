"""Google's Gemini API, on Vertex AI too. Importing this package loads no SDK."""

from typing import TYPE_CHECKING

from .._base import lazy

if TYPE_CHECKING:
    from .chat_model import ChatGoogleGenerativeAI
    from .mapper import GenerateContentMapper

__all__ = ["ChatGoogleGenerativeAI", "GenerateContentMapper"]

__getattr__ = lazy(__name__, {"ChatGoogleGenerativeAI": f"{__name__}.chat_model", "GenerateContentMapper": f"{__name__}.mapper"}.get)
