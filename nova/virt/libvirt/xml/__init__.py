"""Pure functions that convert a guest's spec to libvirt's XML, and libvirt's XML to facts of a host. No I/O."""
