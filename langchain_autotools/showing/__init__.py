"""Live display of runs: in a notebook, at a terminal, in a Gradio page."""

from .gradio_chat import GradioChat, gradio_chat
from .gradio_page import CHAT_HEAD
from .gradio_text import MATH_DELIMITERS
from .view import show

__all__ = ["CHAT_HEAD", "MATH_DELIMITERS", "GradioChat", "gradio_chat", "show"]
