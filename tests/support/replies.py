"""Replies that are the same on every wire: bytes as they are, a vendor's error, and another reply that breaks off."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.http_server import Drop, HttpReply, Part
from tests.support.script import Cut, Early, Failure, Raw, Reply


def plain_reply(reply: Raw | Failure | Cut, failure: Callable[[Failure], HttpReply], encode: Callable[[Reply], HttpReply]) -> HttpReply:
    """The HTTP reply, given how the wire says an error and any other reply."""
    if isinstance(reply, Early):
        return early_reply(encode(reply.reply), reply.text.encode(), reply.before)
    if isinstance(reply, Cut):
        return cut_reply(encode(reply.reply), reply.after, reply.drop)
    if isinstance(reply, Failure):
        return failure(reply)
    return HttpReply(reply.pieces, reply.status, {"content-type": reply.content_type, **reply.headers}, reply.framing)


def early_reply(reply: HttpReply, text: bytes, before: bool) -> HttpReply:
    """The reply, whole events of it, up to the first that says this text."""
    parts = list(reply.parts)
    place = next(number for number, part in enumerate(parts) if isinstance(part, bytes) and text in part)
    return HttpReply(parts[: place if before else place + 1], reply.status, reply.headers, reply.framing)


def cut_reply(reply: HttpReply, after: int, drop: bool) -> HttpReply:
    """The reply, broken off after so many bytes of its body."""
    parts: list[Part] = []
    left = after
    for part in reply.parts:
        if not isinstance(part, bytes):
            parts.append(part)
            continue
        parts.append(part[:left])
        left -= len(part)
        if left <= 0:
            break
    framing = "chunked" if reply.framing == "length" else reply.framing
    return HttpReply([*parts, *([Drop()] if drop else [])], reply.status, reply.headers, framing)
