"""The version of this distribution, with its name."""

DISTRIBUTION = "langchain-autotools-chat"
__version__ = "0.1.0"
