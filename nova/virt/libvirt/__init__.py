"""The libvirt driver, for KVM and QEMU guests."""

from nova.virt.libvirt.driver import LibvirtDriver, from_conf, image_tool
from nova.virt.libvirt.settings import LibvirtSettings

__all__ = ["LibvirtDriver", "LibvirtSettings", "from_conf", "image_tool"]
