"""KVM and QEMU guests, through libvirt."""

from nova.virt.libvirt.driver import LibvirtDriver, from_conf, image_tool
from nova.virt.libvirt.settings import LibvirtSettings

__all__ = ["LibvirtDriver", "LibvirtSettings", "from_conf", "image_tool"]
