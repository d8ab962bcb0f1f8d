"""langchain-tests' standard suites for every preset, made from the table of vendors, over real HTTP.

Each vendor's server (vendor_server.py) is as strict as the vendor.
"""

from typing import Any, ClassVar

from tests.standard import suites
from tests.standard.suites import Listening, Subject, read_clock, usage_details
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


for one in VENDORS:
    globals().update(suites.classes_to_test(__name__, Unit, Integration, one.chat_model.__name__, vendor=one))
