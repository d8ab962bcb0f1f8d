"""What the constructors of the vendors' models share."""

import os

__all__ = ["OWN_CLIENTS", "check_output_version", "first_of"]

OWN_CLIENTS = "clients are made from the other settings when they are needed; http_client and http_async_client take your own HTTP clients"
"""Why a constructor refuses a vendor SDK's client."""


def first_of(*names: str) -> str | None:
    """The value of the first environment variable that is set; an empty one is not."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def check_output_version(version: str | None, plain: str) -> None:
    """Refuse an `output_version` that there is not.

    Args:
        version: What the user asks for.
        plain: What content is under "v0".

    Raises:
        ValueError: It is neither None nor "v0" nor "v1".
    """
    if version not in (None, "v0", "v1"):
        raise ValueError(f"output_version={version!r}: there are 'v0' ({plain}) and 'v1' (standard blocks)")
