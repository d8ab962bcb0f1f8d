"""Addresses of the web: what of them may be shown to anybody, and which may be shown as links."""

from typing import Final, TypeGuard
from urllib.parse import urlsplit

_PAGES: Final = ("http://", "https://")


def public_url(url: str | None) -> str:
    """Return a URL without its secret parts: user, password, query."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}" if url else ""


def is_page(url: str | None) -> TypeGuard[str]:
    """Whether an address may be shown as a link: others could run what a source says."""
    return url is not None and url.lower().startswith(_PAGES)
