"""langchain-tests' standard suites for every preset and for Azure over real HTTP.

Without tools of its own, with one never called, with one called first.

Each vendor's server (vendor_server.py) is as strict as the vendor and decides from tools, tool choice, schemas and messages. The classes
are made from the table of vendors: one factory in place of a file for each.
"""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_autotools import AzureChatOpenAI
from tests.support.http_server import Exchange
from tests.support.own_tools import RAN, Listening, archive_record, read_clock
from tests.support.vendor_server import SemanticVendor, VendorServer
from tests.support.vendors import VENDORS, Vendor


class Unit(ChatModelUnitTests):
    vendor: ClassVar[Vendor]
    own_tools: ClassVar[list[Any]] = []
    more: ClassVar[dict[str, Any]] = {}

    @property
    def chat_model_class(self) -> type[Any]:
        """The class under test."""
        return self.vendor.chat_model

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "some-model", "tools": self.own_tools, "api_key": "key", **self.more}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment variables, constructor arguments, and the attributes they give."""
        return {self.vendor.key: "secret"}, {"model": "some-model", **self.more}, {"openai_api_key": "secret"}


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    RAN.clear()
    mind = Listening(SemanticVendor(request.cls.vendor))
    with request.cls.serve(request.cls.vendor, mind) as serving:
        request.cls.url = serving.url
        yield
        assert [rejection.message for rejection in serving.rejections] == []
    for own in request.cls.own_tools:
        assert RAN[own.name] == mind.called[own.name]


@pytest.mark.usefixtures("server")
class Suite(ChatModelIntegrationTests):
    vendor: ClassVar[Vendor]
    own_tools: ClassVar[list[Any]] = []
    more: ClassVar[dict[str, Any]] = {}
    serve: ClassVar[type[VendorServer]] = VendorServer
    url = ""

    @property
    def chat_model_class(self) -> type[Any]:
        """The class under test."""
        return self.vendor.chat_model

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "some-model", "api_key": "key", "base_url": self.url, "tools": self.own_tools, **self.more}

    @property
    def supports_json_mode(self) -> bool:
        """Whether JSON output works, beside tools of its own where there are some."""
        return self.vendor.json or not self.own_tools

    @property
    def structured_output_kwargs(self) -> dict[str, Any]:
        """The suite counts one turn. As a tool, the schema's call comes after a tool that is called first; as a format it does not."""
        return {"method": "json_schema"} if self._two_turns else {}

    @property
    def has_structured_output(self) -> bool:
        """Whether there is a method that the suite can count."""
        return not self._two_turns or self.vendor.has_schemas

    @property
    def _two_turns(self) -> bool:
        return read_clock in self.own_tools

    supports_image_inputs = True
    supports_image_urls = True
    supports_anthropic_inputs = True
    supports_image_tool_message = True
    model_override_value = "other-model"
    supported_usage_metadata_details: ClassVar[dict[str, list[str]]] = {"invoke": ["cache_read_input"], "stream": ["cache_read_input"]}

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        """A request that was made before."""
        model = self.chat_model_class(**self.chat_model_params)
        model.invoke("The same again.")
        return reduce(add, model.stream("The same again.")) if stream else model.invoke("The same again.")


class AzureServer(VendorServer):
    """Azure's place and key for the same wire."""

    path = "/openai/deployments/mine/chat/completions"

    @property
    def url(self) -> str:
        """The deployment's address."""
        return f"{self.address}/openai/deployments/mine"

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, if key and version are Azure's."""
        exchange.headers["authorization"] = f"Bearer {exchange.headers['api-key']}"
        assert exchange.path.endswith("?api-version=2025-04-01-preview")
        return super().check(exchange)


AZURE = Vendor("azure", AzureChatOpenAI, "AZURE_OPENAI_API_KEY")
VERSION = {"api_version": "2025-04-01-preview"}
OWN_TOOLS: dict[str, list[Any]] = {"Plain": [], "ToolNeverCalled": [archive_record], "ToolCalledFirst": [read_clock]}

for one in (*VENDORS, AZURE):
    made, azure = one.chat_model.__name__, one is AZURE
    for words, own in OWN_TOOLS.items():
        said = {"__module__": __name__, "__doc__": f"{made}: {words}.", "vendor": one, "own_tools": own}
        place = {"serve": AzureServer, "more": VERSION} if azure else {}
        globals()[f"Test{made}{words}"] = type(f"Test{made}{words}", (Suite,), {**said, **place})
    for words, own in (("Unit", []), ("UnitWithATool", [read_clock])):
        said = {"__module__": __name__, "__doc__": f"{made}: {words}.", "vendor": one, "own_tools": own}
        place = {"more": {**VERSION, "azure_endpoint": "http://127.0.0.1:9"}} if azure else {}
        globals()[f"Test{made}{words}"] = type(f"Test{made}{words}", (Unit,), {**said, **place})
