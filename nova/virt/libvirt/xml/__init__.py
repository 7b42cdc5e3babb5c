"""Pure functions from what a guest shall be to libvirt's XML, and from libvirt's XML to what a host is. No I/O."""
