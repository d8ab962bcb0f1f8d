"""Detection of servers that reject streaming requests.

Seen of gateways and of single models: a status of 4xx or 501 and words such as "Streaming is not supported for this model" or
"Unsupported value: 'stream' does not support true with this model" (wire quirk E-12). A refusal of `stream_options` is none of these.
"""

import re
from typing import Any

_STATUSES = frozenset({400, 403, 404, 405, 415, 422, 501})
_STREAM = r"\bstream(?:s|ed|ing)?\b(?!_)"
_NO_SUPPORT = r"\bnot\b[^.]{0,30}\b(?:support|allow|implement|available|enabled|permit)"
_NOT = rf"{_NO_SUPPORT}|\b(?:unsupported|disabled|unavailable|unimplemented)\b"
_REFUSED = re.compile(rf"{_STREAM}[^.]{{0,80}}(?:{_NOT})|(?:{_NOT})[^.]{{0,60}}{_STREAM}|must be verified to stream", re.IGNORECASE)


def is_streaming_unsupported(error: Any) -> bool:
    """Whether an error means that the server does not stream, so that the request may succeed without streaming."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in _STATUSES and bool(_REFUSED.search(str(error)))
