"""The error of runs that are remembered."""

from ..errors import AutoToolsError


class RunFailedError(AutoToolsError):
    """A durable run has failed, here or in another process; the text names the error and says what it said."""
