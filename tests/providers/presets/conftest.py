"""Fixtures of the presets' tests: each vendor, and its strict server with a model that talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.scripted_server import Script
from tests.support.vendor_server import VendorServer
from tests.support.vendors import VENDORS, Vendor

Start = Callable[..., tuple[Any, VendorServer]]


@pytest.fixture(params=VENDORS, ids=[vendor.name for vendor in VENDORS])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    """Each vendor."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function from a vendor, a script and constructor arguments to a model and its server."""
    with ExitStack() as stack:

        def begin(vendor: Vendor | str, script: Script, **more: Any) -> tuple[Any, VendorServer]:
            found = vendor if isinstance(vendor, Vendor) else next(one for one in VENDORS if one.name == vendor)
            server = stack.enter_context(VendorServer(found, script))
            arguments = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more}
            return found.chat_model(**arguments), server

        yield begin
