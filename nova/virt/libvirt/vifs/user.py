"""QEMU's user-mode network, for guests of ``qemu:///session``, whose user cannot create network devices. Outgoing
connections are that user's; incoming ones are impossible. The guest's address is QEMU's (10.0.2.15), not nova's."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.vifs.common import VifRequirements, plain
from nova.virt.libvirt.xml.specs import VifSpec


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """Return libvirt's ``interface type='user'``."""
    return replace(plain(interface, asked), type="user", mtu=None, queues=1, backend=None, bandwidth=None)
