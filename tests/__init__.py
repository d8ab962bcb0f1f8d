"""Tests of langchain_autotools."""
