"""What a driver can do, as small protocols: "supports X" is "implements X".

A driver knows nothing of RPC, databases or workflows. Its calls may block; they are safe to repeat; every undo is safe
when what it undoes never happened. ``order`` values are whole: a driver asks nobody for more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from nova.model.diagnostics import Diagnostics
from nova.model.hosts import Node
from nova.model.orders import BuildOrder, GuestState
from nova.model.states import PowerState

PowerListener = Callable[[GuestState], None]


class LocalImages(Protocol):
    """Where the images of a build lie on this host (paths of checked files in the cache), by image id."""

    def path(self, image_id: str) -> str:
        """The cached file of an image that was fetched; KeyError when it was not."""


class Driver(Protocol):
    """What every driver can do."""

    #: Whether images must lie on this host before ``create_disks`` (False for the fake driver).
    needs_images: bool

    def connect(self) -> None:
        """Reach the hypervisor, once, at start. Unavailable says which one and what to do."""

    def nodes(self) -> tuple[Node, ...]:
        """The host's nodes with what they have, all of it (reservations and ratios are the compute's to add)."""

    def guests(self) -> tuple[GuestState, ...]:
        """Every guest of ours that the hypervisor or a disk directory knows, with its power state."""

    def on_power_change(self, listener: PowerListener) -> None:
        """Call ``listener`` whenever a guest's power state changes by itself or by us. At most one listener."""

    def close(self) -> None:
        """Let go of the hypervisor; guests run on."""


class Lifecycle(Protocol):
    """Guests made, started, stopped and unmade. Each build part has its undo below it."""

    def create_disks(self, order: BuildOrder, images: LocalImages | None) -> None:
        """Root, ephemeral and swap disks. HostRefused when there is no space."""

    def remove_disks(self, server_uuid: str) -> None: ...

    def plug(self, order: BuildOrder) -> None:
        """Bridges and taps, so that the guest's first packet gets through."""

    def unplug(self, server_uuid: str, order: BuildOrder | None) -> None:
        """By uuid alone when ``order`` is None: what it plugged is recorded beside the guest."""

    def write_config_drive(self, order: BuildOrder, files: Mapping[str, bytes]) -> None:
        """Keep ``files`` (path -> content) as the guest's drive, volume label config-2; goes with ``remove_disks``."""

    def start_new(self, order: BuildOrder) -> PowerState:
        """Define the guest from the order (again, if it is known) and start it."""

    def destroy(self, server_uuid: str) -> None:
        """Stop at once and undefine; the disks stay."""

    def start(self, server_uuid: str) -> PowerState:
        """Start a defined guest; nothing when it runs. NotFound when it is not defined."""

    def shut_down(self, server_uuid: str, timeout_s: int) -> PowerState:
        """Ask the guest to stop, wait, then power it off. ``timeout_s`` 0 powers off at once."""

    def reboot(self, server_uuid: str, timeout_s: int) -> bool:
        """Ask the guest to reboot; False when it did not within the time (the caller then does it the hard way)."""

    def power_state(self, server_uuid: str) -> PowerState | None:
        """None when the guest is not defined."""


@runtime_checkable
class Consoles(Protocol):
    """Console text."""

    def console_output(self, server_uuid: str, lines: int | None) -> str:
        """The last lines (all, for None) of the serial console's log, rotated part included."""


@runtime_checkable
class Diagnosis(Protocol):
    """What a guest uses, counted."""

    def diagnostics(self, server_uuid: str) -> Diagnostics:
        """Of a guest in any power state. NotFound when it is not defined."""


@runtime_checkable
class Uptime(Protocol):
    def uptime(self) -> str:
        """The host's own ``uptime`` line."""


@runtime_checkable
class HostPower(Protocol):
    def change_host_power(self, action: str) -> str:
        """Do ``action`` (startup, shutdown, reboot, maintenance_on, maintenance_off) to the host itself; a word for
        what became of it: the action, or on_maintenance, off_maintenance. NotSupported: one it can not do."""


@runtime_checkable
class ImageUsers(Protocol):
    def images_in_use(self) -> frozenset[str]:
        """Ids of the images whose cached files the guests of this host need."""
