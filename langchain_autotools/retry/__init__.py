"""Retries of failed requests and calls."""

from .attempts import is_transient, retry_after, should_retry
from .policy import RetryPolicy

__all__ = ["RetryPolicy", "is_transient", "retry_after", "should_retry"]
