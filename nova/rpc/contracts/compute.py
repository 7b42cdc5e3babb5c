"""Orders for one compute host."""

from __future__ import annotations

from nova.model.aggregates import CachedImage
from nova.model.base import HostName
from nova.model.diagnostics import Diagnostics
from nova.model.images import Image
from nova.model.orders import BuildOrder, ConsoleOutput, GuestOrder, Outcome
from nova.rpc.interface import Interface, Timeout, call


class ComputeRPC(Interface):
    """Each order carries its fence: a host refuses what is older than what it has seen, or too late to start."""

    topic, version, addressed_by = "compute", "1.1", "host"

    @call(timeout=Timeout.LONG, sensitive=True)
    def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]:
        """Create and start the guests. Legal in SPAWNING only; repeating it is harmless."""

    @call(timeout=Timeout.LONG)
    def destroy_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Leave nothing of the guests: domain, disks, taps. Safe when they never were; repeating it is harmless."""

    @call(timeout=Timeout.LONG)
    def start_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Power on. Legal in POWERING_ON only."""

    @call(timeout=Timeout.LONG)
    def stop_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Ask the guest to shut down; after the order's timeout, power off."""

    @call(timeout=Timeout.LONG)
    def reboot_guests(self, host: HostName, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Soft: ask the guest, and fall back to hard. Hard: define anew from the order and start."""

    @call()
    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        """The last lines of the console log. NotFound when there is no guest; Conflict when it has no log."""

    @call(since="1.1")
    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        """What the hypervisor counts of a guest. NotFound when there is none; NotSupported by the driver."""

    @call(timeout=Timeout.SHORT)
    def get_host_uptime(self, host: HostName) -> str:
        """The text of the host's ``uptime`` line."""

    @call(since="1.1")
    def change_host_power(self, host: HostName, action: str) -> str:
        """startup, shutdown, reboot, maintenance_on or maintenance_off; the driver's word for what became of the host.
        NotSupported by most drivers."""

    @call(timeout=Timeout.LONG, since="1.1")
    def cache_images(self, host: HostName, images: tuple[Image, ...]) -> tuple[CachedImage, ...]:
        """Fetch the images that are not here yet, so that a guest need not wait. Repeating it is harmless."""

    @call(timeout=Timeout.SHORT)
    def ping(self, host: HostName) -> str:
        """A round trip over the bus; the answer is the host's own name."""
