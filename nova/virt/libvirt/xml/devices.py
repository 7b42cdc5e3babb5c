"""A guest's devices as libvirt's XML, one function for each kind."""

from __future__ import annotations

from nova.virt.libvirt.xml.build import Element, add, text
from nova.virt.libvirt.xml.consoles import add_screen, add_serials, add_spice_agent
from nova.virt.libvirt.xml.specs import DiskSpec, GuestDevices, GuestSpec, HostDeviceSpec, TpmSpec, VifSpec

USB_CONTROLLERS = {"none": "none", "nec-xhci": "nec-xhci", "qemu-xhci": "qemu-xhci"}
AGENT_CHANNEL = "org.qemu.guest_agent.0"


def add_devices(devices: Element, spec: GuestSpec) -> None:
    """Add all devices: disks, controllers, interfaces, host devices, consoles and small ones. Called once per
    domain."""
    for disk in spec.disks:
        add_disk(devices, disk)
    add_controllers(devices, spec)
    for vif in spec.vifs:
        add_vif(devices, vif)
    for device in spec.host_devices:
        add_host_device(devices, device)
    others = spec.devices
    add_serials(devices, others)
    add_screen(devices, others)
    add_small(devices, others)
    if spec.encryption is not None:
        _hide_memory(devices)


def add_host_device(devices: Element, spec: HostDeviceSpec) -> None:
    """Add a PCI device of the host. ``managed``: libvirt unbinds it from its host driver and rebinds it later."""
    device = add(devices, "hostdev", mode="subsystem", type_="pci", managed="yes" if spec.managed else "no")
    add_pci_address(add(device, "source"), spec.address)


def add_pci_address(source: Element, address: str, **attributes: str) -> None:
    """Add a PCI address. ``address``: in the form 0000:03:10.1."""
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    add(source, "address", **attributes, domain=f"0x{domain}", bus=f"0x{bus}", slot=f"0x{slot}",
        function=f"0x{function}")


def _hide_memory(devices: Element) -> None:
    """Route virtio devices of a guest with encrypted memory through buffers that the host can read."""
    virtio = [*(disk for disk in devices.iterfind("disk") if disk.find("target[@bus='virtio']") is not None),
              *(vif for vif in devices.iterfind("interface") if vif.find("model[@type='virtio']") is not None),
              *devices.iterfind("rng"), *devices.iterfind("memballoon"),
              *(one for one in devices.iterfind("controller") if one.get("model") == "virtio-scsi")]
    for device in virtio:
        driver = device.find("driver")
        (driver if driver is not None else add(device, "driver")).set("iommu", "on")


def add_disk(devices: Element, spec: DiskSpec) -> None:
    """Add a ``disk`` element. Its backing chain ends where the spec says: libvirt never probes a file for its backing
    file."""
    kind = "network" if spec.rbd else "block" if spec.block else "file"
    disk = add(devices, "disk", type_=kind, device=spec.device)
    add(disk, "driver", name="qemu", type_=spec.format, cache=spec.cache, io=spec.io, discard=spec.discard,
        packed="on" if spec.packed and spec.bus == "virtio" else None)
    add_source(disk, spec)
    if spec.backing:
        backing = add(disk, "backingStore", type_="file")
        add(backing, "format", type_=spec.backing.format)
        add(backing, "source", file=spec.backing.path)
        add(backing, "backingStore")
    elif spec.format != "raw" and spec.chain:
        add(disk, "backingStore")  # empty: libvirt must not probe for another
    add(disk, "target", dev=spec.target, bus=spec.bus)
    if spec.throttle:
        iotune = add(disk, "iotune")
        for name, value in spec.throttle:
            text(iotune, name, value)
    logical, physical = spec.blocks
    if logical or physical:
        add(disk, "blockio", logical_block_size=logical, physical_block_size=physical)
    if spec.device == "cdrom" or spec.readonly:
        add(disk, "readonly")
    if spec.shareable:
        add(disk, "shareable")
    if spec.serial:
        text(disk, "serial", spec.serial)
    if spec.boot_order:
        add(disk, "boot", order=spec.boot_order)
    if spec.alias:
        add(disk, "alias", name=spec.alias)


def add_source(disk: Element, spec: DiskSpec) -> None:
    """Add the disk's source: a file, a block device, or an image of a Ceph pool with its authentication."""
    if spec.rbd is None:
        _add_luks(add(disk, "source", **{"dev" if spec.block else "file": spec.path}), spec)
        return
    source = add(disk, "source", protocol="rbd", name=spec.path)
    _add_luks(source, spec)
    for address, port in spec.rbd.hosts:
        add(source, "host", name=address, port=port)
    if spec.rbd.conf:
        add(source, "config", file=spec.rbd.conf)
    if spec.rbd.user:
        add(add(disk, "auth", username=spec.rbd.user), "secret", type_="ceph", uuid=spec.rbd.secret)


def _add_luks(source: Element, spec: DiskSpec) -> None:
    """Add the encryption within the source, because a migration compares and replaces the source as a whole."""
    if spec.luks is not None:
        encryption = add(source, "encryption", format="luks", engine="qemu")
        add(encryption, "secret", type_="passphrase", uuid=spec.luks)


def add_controllers(devices: Element, spec: GuestSpec) -> None:
    """Add SCSI if a disk needs it, USB of the requested model, and PCI Express root ports for hot-plugged devices."""
    others = spec.devices
    if any(disk.bus == "scsi" for disk in spec.disks):
        add(devices, "controller", type_="scsi", index=0, model=others.scsi_model or "virtio-scsi")
    if others.usb_model:
        add(devices, "controller", type_="usb", index=0, model=USB_CONTROLLERS[others.usb_model])
    if others.pcie_ports:
        add(devices, "controller", type_="pci", model="pcie-root")
        for _ in range(others.pcie_ports):
            add(devices, "controller", type_="pci", model="pcie-root-port")


def add_vif(devices: Element, spec: VifSpec) -> None:
    """Add an ``interface`` element; a whole card is a ``hostdev``, which libvirt does not configure."""
    if spec.pci and spec.bare:
        add_host_device(devices, HostDeviceSpec(spec.pci))
        return
    interface = add(devices, "interface", type_=spec.type, managed="yes" if spec.pci else None)
    add(interface, "mac", address=spec.mac)
    _add_wire(interface, spec)
    if not spec.pci:
        add(interface, "model", type_=spec.model)
    if spec.model == "virtio" and not spec.pci:
        attributes = {"name": spec.backend, "queues": spec.queues if spec.queues > 1 else None,
                      "rx_queue_size": spec.rx_queue_size, "tx_queue_size": spec.tx_queue_size,
                      "packed": "on" if spec.packed else None}
        if any(value is not None for value in attributes.values()):
            add(interface, "driver", **attributes)
    if spec.mtu:
        add(interface, "mtu", size=spec.mtu)
    if spec.bandwidth:
        bandwidth = add(interface, "bandwidth")
        for direction, amounts in spec.bandwidth.items():
            add(bandwidth, direction, **amounts)


def _add_wire(interface: Element, spec: VifSpec) -> None:
    """Add the host side of the interface."""
    if spec.pci:
        add_pci_address(add(interface, "source"), spec.pci, type_="pci")
    elif spec.bridge:
        add(interface, "source", bridge=spec.bridge)
    elif spec.source:
        add(interface, "source", **spec.source)
    if spec.port_id:
        add(add(interface, "virtualport", type_="openvswitch"), "parameters", interfaceid=spec.port_id)
    if spec.vlan:
        add(add(interface, "vlan"), "tag", id=spec.vlan)
    if spec.device:
        add(interface, "target", dev=spec.device)


def add_small(devices: Element, spec: GuestDevices) -> None:
    """Add the random number generator, watchdog, guest agent channel, SPICE's channel, sound, TPM and IOMMU that the
    spec has. The memory balloon is always added."""
    if spec.rng_path:
        rng = add(devices, "rng", model="virtio")
        if spec.rng_bytes:
            add(rng, "rate", bytes=spec.rng_bytes, period=spec.rng_period_ms)
        text(rng, "backend", spec.rng_path, model="random")
    if spec.watchdog_action:
        add(devices, "watchdog", model="i6300esb", action=spec.watchdog_action)
    if spec.agent:
        channel = add(devices, "channel", type_="unix")
        add(channel, "target", type_="virtio", name=AGENT_CHANNEL)
    if spec.spice is not None and spec.spice.agent:
        add_spice_agent(devices)
    if spec.sound_model:
        add(devices, "sound", model=spec.sound_model)
    if spec.tpm:
        add_tpm(devices, spec.tpm)
    if spec.iommu:
        add_iommu(devices, spec.iommu)
    balloon = add(devices, "memballoon", model="virtio")
    if spec.balloon_period_s:
        add(balloon, "stats", period=spec.balloon_period_s)


def add_tpm(devices: Element, spec: TpmSpec) -> None:
    """Add a TPM with persistent state: a hard reboot redefines the guest, and the state is removed only with the
    guest."""
    backend = add(add(devices, "tpm", model=spec.model), "backend", type_="emulator", version=spec.version,
                  persistent_state="yes")
    if spec.secret:
        add(backend, "encryption", secret=spec.secret)


def add_iommu(devices: Element, model: str) -> None:
    """Add an IOMMU. ``model`` in libvirt's form: intel, virtio, smmuv3."""
    iommu = add(devices, "iommu", model=model)
    if model == "intel":  # with interrupt remapping; passed-through devices see the guest's own mappings
        add(iommu, "driver", intremap="on", caching_mode="on", iotlb="on")
