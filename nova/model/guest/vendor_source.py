"""Where the operator's own data for guests comes from, to those who tell it (``nova.clients.vendordata`` is one)."""

from __future__ import annotations

from typing import Protocol

from nova.model.guest.guests import GuestFacts


class VendorSource(Protocol):
    """The operator's own data for one guest."""

    def static(self) -> dict[str, object] | None:
        """The same for all; None where there is no such provider."""

    def dynamic(self, facts: GuestFacts) -> dict[str, object]:
        """By the name of each service that was asked. Unavailable: one failed, where that is to stop a build."""


class NoVendorData:
    def static(self) -> dict[str, object] | None:
        return {}

    def dynamic(self, facts: GuestFacts) -> dict[str, object]:
        return {}
