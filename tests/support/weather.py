"""The tool and the schema that most tests of providers talk about."""

from __future__ import annotations

from langchain_core.tools import tool
from pydantic import BaseModel


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int
