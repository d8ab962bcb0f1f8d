"""Pieces of text that make one JSON object together, and could also be several objects, one begun inside another."""

from collections.abc import Sequence

from ..strict_json import read_json
from .json_text import is_prefix

__all__ = ["has_other_split"]

_MOST_PIECES = 12


def has_other_split(pieces: Sequence[str]) -> bool:
    """Whether the pieces, in order, can be dealt out to two or more objects of which each is valid as far as it goes.

    A new object starts with a piece that begins with a bracket. `{"a":` `{"b":1}` `}` cannot be dealt out: `{"a":}` is nothing.
    `{"a":[` `{"b":1}` `]}` can. More pieces than can be tried out are taken for such a case.
    """
    if len(pieces) > _MOST_PIECES:
        return True
    return _deal((pieces[0],), pieces[1:])


def _deal(objects: tuple[str, ...], pieces: Sequence[str]) -> bool:
    if not pieces:
        return len(objects) > 1
    piece, rest = pieces[0], pieces[1:]
    if piece.lstrip().startswith("{") and _is_valid_so_far(piece) and _deal((*objects, piece), rest):
        return True
    for number, text in enumerate(objects):
        longer = text + piece
        if _is_valid_so_far(longer) and _deal((*objects[:number], longer, *objects[number + 1 :]), rest):
            return True
    return False


def _is_valid_so_far(text: str) -> bool:
    text = text.strip()
    try:
        read_json(text)
    except ValueError as error:
        return is_prefix(text, error)
    return True
