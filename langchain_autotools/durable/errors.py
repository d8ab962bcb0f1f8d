"""The error of failed durable runs."""

from ..errors import AutoToolsError


class RunFailedError(AutoToolsError):
    """Raised for a durable run that failed, here or in another process; the text names its error and message."""
