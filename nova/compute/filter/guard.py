"""The packet filter as orders use it: a guest's rules are in the kernel before the guest can run."""

from __future__ import annotations

from typing import Protocol

from nova.model.guest.orders import BuildOrder


class Guard(Protocol):
    """The packet filter as seen by builds and removals."""

    def guard(self, build: BuildOrder) -> None:
        """Apply the guest's rules to the kernel. Raises Unavailable if that failed; HostRefused if they would not be
        enforced here."""

    def drop(self, server_uuid: str) -> None:
        """Remove the rules of a guest that is gone. Never fails; the next refresh removes leftovers."""


class NoGuard:
    """Packet filter that does nothing: the network backend filters, or filtering is off."""

    def guard(self, build: BuildOrder) -> None: ...

    def drop(self, server_uuid: str) -> None: ...

    def refresh(self) -> None:
        """Do nothing: this filter has no rules to fetch."""

    def repair(self) -> None:
        """Do nothing: this filter has no rules to restore."""

    def taps(self) -> tuple[str, ...]:
        """Return no devices: no guest is known here."""
        return ()
