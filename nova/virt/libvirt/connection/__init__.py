"""libvirt: the only package that imports it. One module a noun; :class:`LibvirtConnection` is all of them."""

from __future__ import annotations

from nova.virt.libvirt.connection.block_jobs import BlockJobs
from nova.virt.libvirt.connection.copies import Copies
from nova.virt.libvirt.connection.host import HostConnection
from nova.virt.libvirt.connection.memory import MemoryConnection
from nova.virt.libvirt.connection.migration import MigrationConnection


class LibvirtConnection(HostConnection, MemoryConnection, Copies, BlockJobs, MigrationConnection):
    """The hypervisor at ``uri`` (:class:`~nova.virt.libvirt.hypervisor.LibvirtHypervisor`)."""
