"""Names of hypervisor drivers, of this release and of others."""

from __future__ import annotations

import pytest

from nova.conf._drivers import driver_kind, is_libvirt


@pytest.mark.parametrize(("name", "kind"), [
    ("libvirt.LibvirtDriver", "libvirt"), ("nova.virt.libvirt.LibvirtDriver", "libvirt"), ("libvirt", "libvirt"),
    ("nova.virt.libvirt.driver.LibvirtDriver", "libvirt"), (" libvirt.LibvirtDriver ", "libvirt"),
    ("fake.FakeDriverWithoutFakeNodes", "fake"), ("nova.virt.fake.SmallFakeDriver", "fake"),
    ("ironic.IronicDriver", "bare metal"), ("nova.virt.ironic.IronicDriver", "bare metal"),
    ("vmwareapi.VMwareVCDriver", ""), ("my.libvirt.LibvirtDriver", ""), ("", ""), (None, "")])
def test_driver_kind_when_a_release_called_it_so_then_it_is_known(name: str | None, kind: str) -> None:
    assert driver_kind(name) == kind and is_libvirt(name) is (kind == "libvirt")
