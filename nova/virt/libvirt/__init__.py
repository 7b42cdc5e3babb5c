"""KVM and QEMU guests, through libvirt."""

from nova.virt.libvirt.driver import LibvirtDriver, from_conf, image_tool
from nova.virt.libvirt.settings import Settings

__all__ = ["LibvirtDriver", "Settings", "from_conf", "image_tool"]
