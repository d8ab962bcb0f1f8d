"""The error of a model that declines. LangChain's core has it from 1.7.5 on; before that, the same class stands here."""

from typing import TYPE_CHECKING

from langchain_core import exceptions
from langchain_core.exceptions import ModelError
from langchain_core.messages import BaseMessage

if TYPE_CHECKING or not hasattr(exceptions, "ModelRefusalError"):

    class ModelRefusalError(ModelError):
        """The model declined to give the structured output that was asked for. Asking again is unlikely to help.

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
