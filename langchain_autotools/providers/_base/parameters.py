"""Model parameters and trace metadata that are the same for all vendors."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_logger = logging.getLogger("langchain_autotools")

OWN_CLIENTS = "clients are made from the other settings when they are needed; http_client and http_async_client take your own HTTP clients"
"""Error message for constructors that reject a vendor SDK's client."""


def first_of(*names: str) -> str | None:
    """Return the value of the first environment variable that is set and not empty; None if there is none."""
    return next((value for name in names if (value := os.environ.get(name))), None)


@dataclass(frozen=True)
class Environment:
    """The environment variables of a vendor, by setting, each in order of precedence."""

    key: tuple[str, ...] = ()
    base_url: tuple[str, ...] = ()
    organization: tuple[str, ...] = ()
    proxy: tuple[str, ...] = ()

    def read(self, what: str) -> str | None:
        """Return the value of the first variable that is set and not empty; None if there is none."""
        return first_of(*getattr(self, what))


def log_parallel(keywords: Mapping[str, Any], wire: str) -> None:
    """Log that a request cannot rule out parallel tool calls although asked to, because the wire has no such parameter.

    Args:
        keywords: The call's keywords.
        wire: The wire's name in the log.
    """
    if keywords.get("parallel_tool_calls") is False and keywords.get("tools"):
        _logger.warning("%s has no parallel_tool_calls: a turn may hold several calls although that is ruled out", wire)
