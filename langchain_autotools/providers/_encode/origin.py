"""A request's origin as a digest: opaque state (reasoning, signatures, server ids) is sent back only to its origin."""

import hashlib
import re
from typing import Any

from langchain_core.messages import AIMessage

from ...addresses import public_url
from ...messages.metadata import own_metadata

_SNAPSHOT = re.compile(r"-\d{8}\Z|-\d{4}-\d{2}-\d{2}\Z|-\d{3}\Z|@\d+\Z|-latest\Z")
"""Version suffixes of model names: `-20260301`, `-2026-03-01`, `-001`, `@20260301`, and `-latest`."""


def origin_of(base_url: str | None, model: str) -> str:
    """Return a digest of the endpoint and model of a request."""
    return hashlib.sha256(f"{public_url(base_url)}\n{model}".encode()).hexdigest()[:16]


def message_origin(message: AIMessage) -> Any:
    """Return the origin in a message's metadata; None if there is none."""
    return own_metadata(message).get("origin")


def is_same_origin(message: AIMessage, origin: str, model: str, provider: str, *, assumed: str | None = None) -> bool:
    """Whether a message comes from the requested endpoint and model, as far as its metadata tells.

    Args:
        message: The message. Of this package it says its origin; of LangChain's partner packages the vendor and the model.
        origin: The digest of that endpoint and model.
        model: The model's name.
        provider: The vendor's name in replies (`response_metadata["model_provider"]`); "": a message that says no origin has another.
        assumed: The vendor that a message is from which names none.
    """
    own = message_origin(message)
    if own is not None or not provider:
        return bool(origin) and bool(own == origin)
    metadata = message.response_metadata
    name = metadata.get("model_name") or metadata.get("model")
    return metadata.get("model_provider", assumed) == provider and (not name or _is_same_model(str(name), model))


def _is_same_model(named: str, requested: str) -> bool:
    """Whether two names are of one model: equal but for a version suffix. (A longer name is another model.)"""
    named, requested = named.rpartition("models/")[2], requested.rpartition("models/")[2].removesuffix("-latest")
    return named == requested or _SNAPSHOT.sub("", named) == requested or named == _SNAPSHOT.sub("", requested)
