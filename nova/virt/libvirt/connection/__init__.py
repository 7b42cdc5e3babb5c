"""libvirt: the only package that imports it. One module a noun; :class:`Connection` is all of them."""

from __future__ import annotations

from nova.virt.libvirt.connection.copies import Copies
from nova.virt.libvirt.connection.host import HostCalls
from nova.virt.libvirt.connection.memory import Memory
from nova.virt.libvirt.connection.migration import Migration


class Connection(HostCalls, Memory, Copies, Migration):
    """The hypervisor at ``uri`` (:class:`~nova.virt.libvirt.hypervisor.Hypervisor`)."""
