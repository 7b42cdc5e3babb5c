"""KVM and QEMU guests, through libvirt."""

from nova.virt.libvirt.driver import LibvirtDriver, image_tool
from nova.virt.libvirt.settings import Settings, settings_of

__all__ = ["LibvirtDriver", "Settings", "image_tool", "settings_of"]
