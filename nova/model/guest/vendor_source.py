"""Interface of the source of vendor data, for the code that builds metadata (``nova.clients.vendordata`` implements
it)."""

from __future__ import annotations

from typing import Protocol

from nova.model.guest.guests import GuestFacts


class VendorSource(Protocol):
    """The operator's vendor data for one guest."""

    def static(self) -> dict[str, object] | None:
        """Return the data that all guests share; None if there is no such provider."""

    def dynamic(self, facts: GuestFacts) -> dict[str, object]:
        """Return the answer of each queried service, by its name. Raises Unavailable if a service failed and failures
        must stop a build."""


class NoVendorData:
    def static(self) -> dict[str, object] | None:
        return {}

    def dynamic(self, facts: GuestFacts) -> dict[str, object]:
        return {}
