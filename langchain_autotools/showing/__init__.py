"""Runs shown to people while they happen: in a notebook, at a terminal, in a page of Gradio."""

from .gradio_chat import GradioChat, gradio_chat
from .view import show

__all__ = ["GradioChat", "gradio_chat", "show"]
