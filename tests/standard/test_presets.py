"""langchain-tests' standard suites for every preset, made from the table of vendors, and for Azure, over real HTTP.

Each vendor's server (vendor_server.py) is as strict as the vendor.
"""

from typing import Any, ClassVar

from langchain_autotools import AzureChatOpenAI
from tests.standard import suites
from tests.standard.suites import Listening, Subject, read_clock, usage_details
from tests.support.http_server import Exchange
from tests.support.vendor_server import SemanticVendor, VendorServer
from tests.support.vendors import VENDORS, Vendor


class Preset(Subject):
    vendor: ClassVar[Vendor]
    arguments: ClassVar[dict[str, Any]] = {"model": "some-model", "api_key": "key"}

    @property
    def chat_model_class(self) -> type[Any]:
        """The class under test."""
        return self.vendor.chat_model


class Unit(Preset, suites.Unit):
    attributes: ClassVar[dict[str, Any]] = {"openai_api_key": "secret"}

    @property
    def environment(self) -> dict[str, str]:
        """The vendor's variable."""
        return {self.vendor.key: "secret"}


class Integration(Preset, suites.Integration):
    supports_image_urls = True
    model_override_value = "other-model"
    supported_usage_metadata_details = usage_details("cache_read_input")

    @classmethod
    def mind(cls) -> SemanticVendor:
        """A model behind the vendor's endpoint."""
        return SemanticVendor(cls.vendor)

    @classmethod
    def serve(cls, replies: Listening) -> VendorServer:
        """The vendor's server."""
        return VendorServer(cls.vendor, replies)

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


class AzureIntegration(Integration):
    arguments: ClassVar[dict[str, Any]] = {**Preset.arguments, "api_version": "2025-04-01-preview"}

    @classmethod
    def serve(cls, replies: Listening) -> AzureServer:
        """Azure's server."""
        return AzureServer(cls.vendor, replies)


class AzureUnit(Unit):
    arguments: ClassVar[dict[str, Any]] = {**AzureIntegration.arguments, "azure_endpoint": "http://127.0.0.1:9"}


for one, unit, integration in (*((vendor, Unit, Integration) for vendor in VENDORS), (AZURE, AzureUnit, AzureIntegration)):
    globals().update(suites.classes_to_test(__name__, unit, integration, one.chat_model.__name__, vendor=one))
