"""Names of hypervisor drivers: current ones, and values that ``compute_driver`` had in other releases."""

from __future__ import annotations

LIBVIRT, FAKE, BARE_METAL = "libvirt", "fake", "bare metal"
_PACKAGE = "nova.virt."

#: Name below nova.virt -> the driver. The fake ones differed in their hosts' sizes, which are options of [fake] here.
_KINDS = {
    "libvirt": LIBVIRT, "libvirt.LibvirtDriver": LIBVIRT, "libvirt.driver.LibvirtDriver": LIBVIRT,
    **dict.fromkeys(("fake", "fake.FakeDriver", "fake.FakeDriverWithoutFakeNodes", "fake.SmallFakeDriver",
                     "fake.MediumFakeDriver", "fake.PredictableNodeUUIDDriver"), FAKE),
    **dict.fromkeys(("ironic", "ironic.IronicDriver", "ironic.driver.IronicDriver"), BARE_METAL)}


def driver_kind(compute_driver: str | None) -> str:
    """Return the driver that ``compute_driver`` names: one of the above; empty if it is unset or unknown."""
    return _KINDS.get((compute_driver or "").strip().removeprefix(_PACKAGE), "")


def is_libvirt(compute_driver: str | None) -> bool:
    """Return whether ``compute_driver`` names the libvirt driver."""
    return driver_kind(compute_driver) == LIBVIRT


__all__ = ["FAKE", "BARE_METAL", "LIBVIRT", "driver_kind", "is_libvirt"]
