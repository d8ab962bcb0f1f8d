"""Addresses of the web: what of them may be shown, as text or as a link."""

from typing import Final, TypeGuard
from urllib.parse import parse_qs, urlsplit

_PAGES: Final = ("http://", "https://")


def public_url(url: str | None) -> str:
    """Return a URL without its secret parts: user, password, query."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}" if url else ""


def without_query(url: str) -> str:
    """Return an address without its query and fragment."""
    return url.partition("#")[0].partition("?")[0]


def query_of(url: str) -> dict[str, str | list[str]]:
    """Return the query parameters of an address; a list for one that occurs several times."""
    found = parse_qs(url.partition("#")[0].partition("?")[2], keep_blank_values=True)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def is_page(url: str | None) -> TypeGuard[str]:
    """Whether an address may be shown as a link: others could run what a source says."""
    return url is not None and url.lower().startswith(_PAGES)
