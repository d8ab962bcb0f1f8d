"""Where a request goes, as a digest: opaque state (reasoning, signatures, the server's own ids) goes back only where it came from."""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage

from ..messages import KEY

__all__ = ["origin_of", "origin_said", "public_url"]


def origin_of(base_url: str | None, model: str) -> str:
    """A digest of the endpoint and model that a request goes to."""
    return hashlib.sha256(f"{public_url(base_url)}\n{model}".encode()).hexdigest()[:16]


def origin_said(message: AIMessage) -> Any:
    """The origin that a message says it comes from; None if it does not."""
    own = message.response_metadata.get(KEY)
    return own.get("origin") if isinstance(own, Mapping) else None


def public_url(url: str | None) -> str:
    """A URL without what may be secret in it: user, password, query."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}" if url else ""
