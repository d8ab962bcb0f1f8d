"""The error for a model's refusal: LangChain core's class (from 1.7.5), or an identical one for older releases."""

from typing import TYPE_CHECKING

from langchain_core import exceptions
from langchain_core.exceptions import ModelError
from langchain_core.messages import BaseMessage

if TYPE_CHECKING or not hasattr(exceptions, "ModelRefusalError"):

    class ModelRefusalError(ModelError):
        """Raised when the model refuses to give the requested structured output. A retry is unlikely to help.

        Attributes:
            raw_message: The message in which it declined.
        """

        def __init__(
            self, message: str = "Model refused to produce the requested output", *, raw_message: BaseMessage | None = None
        ) -> None:
            self.raw_message = raw_message
            super().__init__(message)
else:
    ModelRefusalError = exceptions.ModelRefusalError
