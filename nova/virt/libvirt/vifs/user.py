"""A network of QEMU's own, in the user's process: what a guest of ``qemu:///session`` has, whose user may make no
device. It reaches the world as that user does; nobody reaches it. Its address is QEMU's (10.0.2.15), not nova's."""

from __future__ import annotations

from dataclasses import replace

from nova.model.network.networks import Interface
from nova.virt.libvirt.vifs.common import VifRequirements, plain
from nova.virt.libvirt.xml.specs import VifSpec


def spec(interface: Interface, asked: VifRequirements) -> VifSpec:
    """libvirt's ``interface type='user'``."""
    return replace(plain(interface, asked), type="user", mtu=None, queues=1, backend=None, bandwidth=None)
