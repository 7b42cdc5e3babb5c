"""The libvirt connection: the only package that imports libvirt, with one module for each kind of call."""

from __future__ import annotations

from nova.virt.libvirt.connection.block_jobs import BlockJobs
from nova.virt.libvirt.connection.copies import Copies
from nova.virt.libvirt.connection.host import HostConnection
from nova.virt.libvirt.connection.memory import MemoryConnection
from nova.virt.libvirt.connection.migration import MigrationConnection


class LibvirtConnection(HostConnection, MemoryConnection, Copies, BlockJobs, MigrationConnection):
    """The hypervisor at ``uri`` (:class:`~nova.virt.libvirt.hypervisor.LibvirtHypervisor`), combined from all
    modules."""
