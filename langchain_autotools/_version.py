"""The name and version of this distribution."""

DISTRIBUTION = "langchain-autotools-chat"
__version__ = "0.1.0"
