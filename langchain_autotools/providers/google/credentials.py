"""Access tokens for Vertex AI, from the user's credentials or those that google-auth finds on the machine.

google-auth's public interface only: `google.auth.default`, `Credentials.before_request`. A token is fetched when there is none or it
has run out, which blocks; asynchronous callers wait for it in a thread.
"""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class AccessTokens:
    """Provides the headers that authorise a request. Safe for threads.

    Args:
        credentials: A `google.auth.credentials.Credentials`; None for the machine's own.
    """

    def __init__(self, credentials: Any = None) -> None:
        self._credentials = credentials
        self._project: str | None = None
        self._transport: Any = None
        self._lock = threading.Lock()

    @property
    def project(self) -> str | None:
        """Return the project of the machine's credentials; looks them up."""
        with self._lock:
            self._find()
        return self._project

    def headers(self, url: str) -> Mapping[str, str]:
        """Return the headers for a request to this address.

        Raises:
            ConfigurationError: There are no credentials.
            google.auth.exceptions.GoogleAuthError: They are refused.
        """
        headers: dict[str, str] = {}
        with self._lock:
            self._find()
            self._credentials.before_request(self._transport, "POST", url, headers)
        return headers

    async def aheaders(self, url: str) -> Mapping[str, str]:
        """Like `headers`, asynchronously."""
        if self._credentials is not None and self._credentials.valid:
            return self.headers(url)
        return await asyncio.to_thread(self.headers, url)

    def _find(self) -> None:
        if self._transport is None:
            from google.auth.transport.requests import Request

            self._transport = Request()
        if self._credentials is not None:
            return
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError

        try:
            self._credentials, self._project = google.auth.default(scopes=_SCOPES)
        except DefaultCredentialsError as error:
            hint = "give credentials=... or api_key=..., or set GOOGLE_APPLICATION_CREDENTIALS"
            raise ConfigurationError(f"no credentials for Vertex AI ({error}): {hint}") from error
