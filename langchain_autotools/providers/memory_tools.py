"""The memory tool of the vendor that has one, for handlers that know no vendor."""

from .anthropic.tools import run_command

__all__ = ["run_command"]
