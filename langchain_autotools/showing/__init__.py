"""Live display of runs: in a notebook, at a terminal, in a Gradio page."""

from .gradio_chat import CHAT_HEAD, MATH_DELIMITERS, GradioChat, gradio_chat, gradio_words_of_tool
from .notebook import show

__all__ = ["CHAT_HEAD", "MATH_DELIMITERS", "GradioChat", "gradio_chat", "gradio_words_of_tool", "show"]
