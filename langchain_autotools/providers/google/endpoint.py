"""Endpoints of requests: the Gemini API or Vertex AI, its address, and the model's name there.

Addresses, API versions and precedence of keys, projects and locations are those of google-genai's client.
"""

import re
from dataclasses import dataclass, field

from ...errors import ConfigurationError

_GEMINI = "https://generativelanguage.googleapis.com"
_VERTEX = "https://aiplatform.googleapis.com"
_MULTI_REGIONS = ("us", "eu")
_VERSION = re.compile(r"/v\d+\w*\Z")
_RESOURCES = ("projects/", "publishers/")


@dataclass(frozen=True)
class Endpoint:
    """One of Google's two APIs, at one address.

    Attributes:
        vertexai: Whether it is Vertex AI.
        base_url: The user's own address; None for Google's.
        api_version: The user's version; None for the default.
        project: The Google Cloud project, on Vertex AI.
        location: The region, on Vertex AI.
    """

    vertexai: bool = False
    base_url: str | None = field(default=None, repr=False)
    api_version: str | None = None
    project: str | None = None
    location: str | None = None

    @property
    def root(self) -> str:
        """The address with its version, the prefix of model paths."""
        base = (self.base_url or self._default_url()).rstrip("/")
        if _VERSION.search(base):
            return base
        return f"{base}/{self.api_version or ('v1beta1' if self.vertexai else 'v1beta')}"

    def _default_url(self) -> str:
        if not self.vertexai:
            return _GEMINI
        if self.location in (None, "global"):
            return _VERTEX
        if self.location in _MULTI_REGIONS:
            return f"https://aiplatform.{self.location}.rep.googleapis.com"
        return f"https://{self.location}-aiplatform.googleapis.com"

    def model_path(self, model: str) -> str:
        """Return the model's resource path.

        Raises:
            ConfigurationError: The name is none.
        """
        if not model or any(part in model for part in ("..", "?", "&", "#")):
            raise ConfigurationError(f"model={model!r} is no model's name")
        if not self.vertexai:
            return model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
        model = model.removeprefix("models/")
        if model.startswith("projects/"):
            return model
        publisher, _, name = model.rpartition("/")
        path = model if model.startswith(_RESOURCES) else f"publishers/{publisher or 'google'}/models/{name}"
        return f"projects/{self.project}/locations/{self.location or 'global'}/{path}" if self.project else path

    def url(self, path: str) -> str:
        """Return the full address of a request to `model:method`. (The query `alt=sse` requests a stream of events.)"""
        model, _, method = path.rpartition(":")
        return f"{self.root}/{self.model_path(model)}:{method}"


def file_uri(identifier: str) -> str:
    """Return the address of an uploaded file, by its name (`files/...`) or address. It points to Google even behind a gateway."""
    return f"{_GEMINI}/v1beta/{identifier}" if identifier.startswith("files/") else identifier
