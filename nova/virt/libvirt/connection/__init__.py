"""libvirt: the only package that imports it. One module a noun; :class:`Connection` is all of them."""

from __future__ import annotations

from nova.virt.libvirt.connection.agents import Agents
from nova.virt.libvirt.connection.copies import Copies
from nova.virt.libvirt.connection.domains import Domains
from nova.virt.libvirt.connection.host import HostCalls
from nova.virt.libvirt.connection.memory import Memory
from nova.virt.libvirt.connection.migration import Migration
from nova.virt.libvirt.connection.secrets import Secrets


class Connection(HostCalls, Domains, Memory, Agents, Copies, Secrets, Migration):
    """The hypervisor at ``uri`` (:class:`~nova.virt.libvirt.hypervisor.Hypervisor`)."""
