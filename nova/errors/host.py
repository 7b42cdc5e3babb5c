"""Errors about compute hosts: what an order needs of them, claims, devices, the programs they run."""

from __future__ import annotations

from nova.errors import config, kinds

Brick = kinds.HostRefused.row("host.brick", "os-brick could not {task} on this host: {reason}",
    "The reason is the library's own: look at the host's sessions (iscsiadm -m session, nvme list-subsys), "
    "`multipath -ll`, and, with [cinder]debug, at the lines of os_brick in nova-compute's log.")
BadInventory = kinds.Invalid.row("host.bad_inventory",
    "What {host} reports to have cannot be kept: {reason}.",
    "A number there is infinite or none: look at its allocation ratios, and at what its provider files say.")
BadPacking = kinds.HostRefused.row("host.bad_packing",
    "What guest {uuid} holds of this host does not fit what it is: {reason}.",
    "The host's topology changed (BIOS, hw options): move the server, or restore [compute]cpu_dedicated_set.")
Cannot = kinds.NotSupported.row("host.can_not", "The hypervisor driver of host {host} cannot {what}.",
    "Use a host with another hypervisor driver for this.")
CephSecret = kinds.HostRefused.row("host.ceph_secret",
    "libvirt on this host has no secret {secret}, where the key of Ceph's user {user} shall be, and there is no "
    "keyring /etc/ceph/ceph.client.{user}.keyring to make it of. Put the keyring there; or make the secret, with a "
    "file s.xml of `<secret ephemeral='no' private='yes'><uuid>{secret}</uuid><usage type='ceph'><name>client.{user}"
    "</name></usage></secret>`: `virsh secret-define s.xml`, then "
    "`virsh secret-set-value {secret} $(ceph auth get-key client.{user})`.",
    "Every host that reaches the pool needs the secret, by the uuid that Cinder's rbd_secret_uuid has.")
CommandFailed = kinds.Unavailable.row("host.command_failed", "`{command}` failed on {where}: {reason}",
    "Run the command by hand on the host, as nova's user; the reason is its own words.")
ComputeId = kinds.Invalid.row("host.compute_id",
    "{path} does not hold a uuid; restore it, or remove it on a host without guests.")
CouldNot = kinds.HostRefused.row("host.could_not", "{reason}",
    "nova-compute's log on the host has the command that failed.")
CpuUnfit = kinds.HostRefused.row("host.cpu_unfit", "Guest {uuid} needs a processor {needed}; host {host} has {has}.",
    "Choose a host with the same processor, or give all hosts a common [libvirt]cpu_models.")
DamagedId = kinds.Conflict.row("host.damaged_id",
    "{path} does not hold a uuid. It is this host's identity: restore it from a backup, or, when the host is new or "
    "has no guests, remove it and delete the host's nova-compute service.")
DamagedSecret = kinds.Conflict.row("host.damaged_secret",
    "{path} does not hold this host's secret: {reason}. Restore it from a backup; or remove it, and enroll this "
    "host again: `nova-manage host enroll` on a controller, its token into state_path/host_token here.")
DiskFull = kinds.HostRefused.row("host.disk_full", "There is no space left for {what} on {host}.",
    "Free space under [DEFAULT]instances_path, or take the host out of scheduling until then.")
Down = kinds.Invalid.row("host.down", "Compute service of {host} is unavailable at this time.")
Export = kinds.HostRefused.row("host.export", "This host cannot offer the guest's disks: {reason}",
    "See whether [libvirt]live_migration_inbound_addr is an address of this host, and its certificates readable.")
GroupsNotHeld = kinds.HostRefused.row("host.groups_not_held",
    "Security groups do not hold between guests on one bridge of host {host} ({reason}): {cure}.")
HelperDied = kinds.Unavailable.row("host.helper_died",
    "The privileged helper ended in the middle of {call}: {reason}",
    "journalctl -u nova-privileged. The next call finds it again when it runs.")
HelperRefused = kinds.HostRefused.row("host.helper_refused", "The privileged helper refuses {call}: {reason}",
    "nova-privileged takes paths, groups and pools from its own nova.conf: start it anew after a change there.")
ImageTool = kinds.HostRefused.row("host.image_tool", "The image tool could not {task}: {reason}",
    "Run qemu-img by hand on the file that the log names.")
LibvirtDown = kinds.Unavailable.row("host.libvirt_down",
    "libvirt on {host} does not answer at {uri}: {reason}. Is libvirtd running?",
    "systemctl status libvirtd; [libvirt]connection_uri says where nova-compute looks for it.")
LibvirtRefused = kinds.HostRefused.row("host.libvirt_refused", "libvirt could not {task}: {reason}",
    "libvirtd's log on the host has more; `nova-manage doctor` there checks its set-up.")
Link = kinds.Unavailable.row("host.link", "The network device {device} could not be set up: {reason}",
    "`ip link` on the host: is the interface there, and is the name in nova.conf right?")
LockBusy = kinds.Unavailable.row("host.lock_busy", "Another process has held the lock {path} for {seconds} s",
    "See which process has the file open (`fuser`); it may hang.")
Lvm = kinds.HostRefused.row("host.lvm", "LVM could not {task}: {reason}",
    "vgs and lvs on the host: is the group [libvirt]images_volume_group there, with space left?")
Misaddressed = kinds.HostRefused.row("host.misaddressed", "This is host {host}; the order is for {given}.",
    "Two hosts have the same queue: give each its own [DEFAULT]host.")
#: The host itself said nothing (an error of this kind in its answer is another thing).
NoAnswer = kinds.Unavailable.row("host.no_answer")
NoBackend = kinds.HostRefused.row("host.no_backend",
    "A disk of the guest is kept as {store} ({place}), which this host does not have.",
    "The host's [libvirt]images_type changed: set it back, or move what it has by hand.")
NoBrick = kinds.HostRefused.row("host.no_brick",
    "Volume {volume} is reached by {kind}, for which this host needs the library os-brick.",
    "Install it where nova-compute runs (pip install os-brick), with the tools of the back end, and start "
    "nova-compute anew.")
NoBridge = kinds.HostRefused.row("host.no_bridge", "The bridge {bridge} of network {network} is not on this host.",
    "Make the bridge, or see whether nova-network (or Neutron's agent) runs on the host.")
NoConsoles = kinds.NotSupported.row("host.no_consoles",
    "The hypervisor driver of host {host} does not serve its guests' consoles.")
NoDiagnostics = kinds.NotSupported.row("host.no_diagnostics",
    "The hypervisor driver of host {host} does not tell what its guests use.")
NoKeptOrders = kinds.NotSupported.row("host.no_kept_orders",
    "The hypervisor driver of host {host} keeps no orders beside its guests.")
NoEmulator = kinds.Unavailable.row("host.no_emulator",
    "libvirt on this host cannot run {virt_type} guests: is qemu-system installed?",
    "Install qemu-system for the host's architecture, or set [libvirt]virt_type=qemu where there is no KVM.")
BadName = kinds.Invalid.row("host.bad_name",
    "'{host}' cannot be a host's name: letters, digits, dots, hyphens and underscores are, {longest} at most.")
NoHostDaemon = kinds.Forbidden.row("host.no_host_daemon",
    "'{host}' cannot register a {binary}: that is none of a host's daemons.")
NoImageService = kinds.NotSupported.row("host.no_image_service", "Host {host} has no way to the image service.",
    "Set [glance]api_servers, or credentials that find it in Keystone's catalog.")
NoHelper = kinds.Unavailable.row("host.no_helper",
    "What needs root's rights cannot be done: {reason}. Start nova-privileged.service; or let this user run "
    "nova-rootwrap by sudo; or run the daemon as root: see 'Privileges' in doc/install.rst.",
    "`nova-manage doctor` on the host says which way is in use, and whether it answers.")
NoIsoMaker = kinds.HostRefused.row("host.no_iso_maker",
    "This host cannot make config drives: none of {programs} is installed.",
    "Install genisoimage, mkisofs or xorriso, or set [DEFAULT]config_drive_format=vfat.")
NoMonitor = kinds.Invalid.row("host.no_monitor",
    "[DEFAULT]compute_monitors: there is no monitor {name!r}; there are: {known}")
NoPowerActions = kinds.NotSupported.row("host.no_power_actions",
    "The hypervisor driver of host {host} cannot turn the host on or off, reboot it or put it in maintenance.")
NoSerialPort = kinds.HostRefused.row("host.no_serial_port",
    "All ports of [serial_console]port_range = {first}:{last} are taken on this host; a guest needs {count} of them.",
    "Make [serial_console]port_range wider.")
NoSuchAction = kinds.NotSupported.row("host.no_such_action", "A fake host cannot do {action}.")
NoSuchConsole = kinds.NotSupported.row("host.no_such_console",
    "Guests of this hypervisor have no consoles of type {type}.")
NoSuchGuest = kinds.HostRefused.row("host.no_such_guest", "This host cannot give {name}={value}: {reason}.",
    "Another host may; the image or the flavor says what is needed.")
NoUplink = kinds.HostRefused.row("host.no_uplink",
    "Network {network} has VLAN {vlan}, and this host no interface to carry it: set [DEFAULT]vlan_interface in "
    "nova.conf, or the network's bridge_interface.")
NoSandbox = kinds.Unavailable.row("host.no_sandbox",
    "Tools that read images have no sandbox on this host: {reason}",
    "Install bubblewrap; in a container, let it make namespaces.")
NoSecret = kinds.Unavailable.row("host.no_secret", "No secret of host {host} is known: it has not registered yet.",
    "Start nova-compute there, and look at its log.")
NoUptime = kinds.NotSupported.row("host.no_uptime", "The hypervisor driver of host {host} does not tell the uptime.")
NotEnrolled = kinds.NotFound.row("host.not_enrolled", "The host '{host}' was never enrolled.",
    "`nova-manage host list` shows the enrolled hosts.")
NotEnrolledFor = kinds.Forbidden.row("host.not_enrolled_for",
    "'{host}' is enrolled to run {runs}, not {binary}: `nova-manage host enroll {host} --runs ...` on a controller "
    "says all that it is to run.")
NotFound = kinds.NotFound.row("host.not_found", "Compute host {host} could not be found.",
    "`openstack compute service list`, as an administrator.")
NotPlugged = kinds.HostRefused.row("host.not_plugged", "Interface {id} cannot be {what} {bridge}: {reason}.")
NotRegistered = kinds.Conflict.row("host.not_registered",
    "nova-compute on '{host}' is not registered with id {host_id}.",
    "Start nova-compute there: it registers at its start.")
NodeNotYours = kinds.Forbidden.row("host.node_not_yours",
    "'{host}' reports {uuid}, which is a node or provider of somebody else's.",
    "Two hosts must not have one identity: look for a copied state folder (compute_id) or a cloned machine.")
NotYours = kinds.Forbidden.row("host.not_yours", "'{host}' may not speak for '{other}'.")
PlaceTaken = kinds.HostRefused.row("host.place_taken", "Guest {uuid} cannot have its place on host {host}: {reason}.",
    "The next host is tried; it was taken in the same moment.")
NoVolumes = kinds.HostRefused.row("host.no_volumes",
    "The hypervisor driver of host {host} has no disks on volumes.",
    "Use a host with another hypervisor driver for servers with volumes.")
Rbd = kinds.HostRefused.row("host.rbd", "Ceph could not {task}: {reason}",
    "ceph -s, and the key of [libvirt]rbd_user.")
#: The conductor doesn't know this host as who it says it is; its message has the cure.
Refused = kinds.Conflict.row("host.refused")
Renamed = kinds.Conflict.row("host.renamed",
    "this machine's id {given} is known as host '{known}', but [DEFAULT]host says '{host}'. Set [DEFAULT]host = "
    "{known}; or, if its state_path was copied from there, remove state_path/host_id.")
SecretNotMade = kinds.Unavailable.row("host.secret_not_made",
    "This host has no secret yet ({path}): its first daemon makes it when it starts.",
    "Start nova-compute (or nova-network) here.")
SecretSealed = kinds.Conflict.row("host.secret_sealed",
    "No key of [conductor]host_secret_key opens what the database keeps as the secret of {host}.",
    "Put the key that wrapped it behind the first one; or let the host in anew: nova-manage host enroll NAME.")
SerialAddress = kinds.HostRefused.row("host.serial_address",
    "This host cannot listen on [serial_console]proxyclient_address = {address}, where its guests' serial ports "
    "shall be: {reason}.",
    "[serial_console]proxyclient_address must be an address of this host.")
SerialSockets = kinds.HostRefused.row("host.serial_sockets",
    "[serial_console]socket_dir = {path} cannot be made on this host: {reason}.")
Stopping = kinds.HostRefused.row("host.stopping", "nova-compute on {host} is stopping and takes no guest.",
    "The next host is tried. The guests that it has still obey.")
TwoDaemons = kinds.Conflict.row("host.two_daemons",
    "Another nova-compute runs with {path}: stop it, or give this one a state_path of its own.")
VifData = kinds.HostRefused.row("host.vif_data", "Interface {id} cannot be plugged: {reason}.",
    "Look at the port in Neutron: its binding profile and details are from its mechanism driver.")
VifNotBridged = kinds.HostRefused.row("host.vif_not_bridged",
    "Interface {id} is of type {type}, which this host cannot plug.",
    "This network's mechanism driver does not fit this host: bind the port elsewhere, or install its agent here.")
VifNotPlugged = kinds.HostRefused.row("host.vif_not_plugged",
    "The network service did not say within {seconds} s that interface {interface} of guest {uuid} is connected "
    "(vif_plugging_timeout): look at its agent on host {host}.",
    "Look at the network agent of the host; [DEFAULT]vif_plugging_timeout and vif_plugging_is_fatal say how long, "
    "and whether it matters.")
VifPlugFailed = kinds.HostRefused.row("host.vif_plug_failed",
    "The network service could not connect interface {interface} of guest {uuid} on host {host}.",
    "Look at the network agent's log on that host.")
VifType = kinds.HostRefused.row("host.vif_type",
    "Interface {id} is of type {type} ({vnic}), which this host cannot plug.",
    "This network's mechanism driver does not fit this host: bind the port elsewhere, or install its agent here.")
VolumeData = kinds.HostRefused.row("host.volume_data", "Volume {volume} cannot be used on this host: {reason}.",
    "Look at the volume in Cinder: how it is reached is the word of its back end's driver.")
VolumeIdentity = kinds.HostRefused.row("host.volume_identity",
    "What this host has at {path} is not volume {volume}: it is {found}, and not {expected}. No guest gets it.",
    "A device of a volume that is gone was left there. Remove it (`multipath -f`, then 1 into its sysfs file delete), "
    "when no guest uses it, and try again.")
VolumeKey = kinds.HostRefused.row("host.volume_key",
    "Volume {volume} is encrypted: this host has no passphrase of it, and the order brings none.",
    "nova-conductor's log says why it could not get the key: look at its [key_manager] and [barbican], and at who may "
    "read the volume's key (openstack acl get).")
VolumeKind = kinds.HostRefused.row("host.volume_kind",
    "Volume {volume} is reached by {kind}, which this host cannot do; it can do {known}.",
    "Use a volume type of another back end.")
VolumeMount = kinds.HostRefused.row("host.volume_mount", "{export} could not be mounted on {path}: {reason}",
    "Try the command by hand on the host: is the NFS server up, and are its client's programs installed?")
VolumeNotConnected = kinds.HostRefused.row("host.volume_not_connected",
    "Volume {volume} of guest {uuid} is not connected to this host, and the order does not say how to reach it.",
    "Reboot the server hard: its volumes are connected anew.")
WeakSecret = kinds.Invalid.row("host.weak_secret", "A secret of '{host}' has to have {length} characters.")
WrongIdentity = kinds.Conflict.row("host.wrong_identity",
    "host '{host}' is known with id {known}, but this machine says {given}. If it was installed anew, restore "
    "state_path/host_id (put {known} into it) or delete the old service first (openstack compute service delete); if "
    "it is another machine, give it another [DEFAULT]host.")
#: It was killed, as it had not ended in time.
CommandTooSlow = CommandFailed.row("host.command_too_slow")
NoLocalBridge = NoBridge.row("host.no_local_bridge",
    "The bridge {bridge} of the multi-host network {network} is not on this host: nova-network, which makes it, does "
    "not run here or could not.")

HypervisorBadId = kinds.Invalid.row("hypervisor.bad_id", "Invalid {what} {id}: it must be {wanted}.")
HypervisorHostDown = kinds.Invalid.row("hypervisor.host_down",
    "The compute service of host {host} is down: its uptime is not known.")
HypervisorNoMatch = kinds.NotFound.row("hypervisor.no_match", "No hypervisor matching '{pattern}' could be found.")
HypervisorNotFound = kinds.NotFound.row("hypervisor.not_found", "Hypervisor with ID '{id}' could not be found.")
HypervisorPatternIsNotPaged = kinds.Invalid.row("hypervisor.pattern_is_not_paged",
    "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported.")
HypervisorUptimeUnknown = kinds.NotSupported.row("hypervisor.uptime_unknown",
    "The driver of hypervisor {name} does not tell its uptime.")

BaremetalNotHere = kinds.Invalid.row("baremetal.not_here",
    "Nodes cannot be changed here. Ask the bare metal service: openstack baremetal {command}.")
BaremetalUnavailable = kinds.NotSupported.row("baremetal.unavailable",
    "The bare metal service is not available here: its nodes cannot be shown.")

OrderBadUuid = kinds.Invalid.row("order.bad_uuid", "'{given}' is not the uuid of a server.")
OrderCannotAsk = kinds.HostRefused.row("order.cannot_ask",
    "Host {host} could not ask the conductor whether to go on, so it did not: {reason}",
    "The broker or the conductors were away for longer than 20 s; the operation goes on elsewhere.")
OrderClosed = kinds.HostRefused.row("order.closed",
    "Guest {uuid} was ordered away at epoch {epoch}; this order of epoch {asked} came late.")
OrderIncomplete = kinds.Invalid.row("order.incomplete",
    "The order to {what} {uuid} does not say what the guest is made of.")
OrderNotGranted = kinds.Overtaken.row("order.not_granted",
    "The conductor has a newer operation on {uuid} than epoch {epoch}.")
OrderOvertaken = kinds.Overtaken.row("order.overtaken",
    "Server {uuid} is at epoch {newest} here; an order of epoch {epoch} is too old.")
OrderStale = kinds.HostRefused.row("order.stale",
    "The order to {kind} {uuid} came {late:.0f} s after the time it had to begin by (if many do, compare the clocks "
    "of this host and the conductor's).",
    "Compare the clocks of the host and the conductors (`nova-manage doctor`).")
OrderStopped = kinds.Overtaken.row("order.stopped", "The order to {kind} {uuid} was stopped by a newer one.")

ClaimGroup = kinds.ClaimConflict.row("claim.group", "Server group {group} has the policy {policy}, and {why}.",
    "The next host is tried. If none is left, the group's policy cannot be kept: add hosts, or use a soft policy.")
ClaimHeld = kinds.Conflict.row("claim.held", "These servers hold something of their providers already.",
    "Nothing: somebody else finished this claim.")
ClaimNotEnough = kinds.ClaimConflict.row("claim.not_enough",
    "The chosen host has {free} {resource_class} left, {wanted} are needed.")
ClaimUnfit = kinds.ClaimConflict.row("claim.unfit", "The chosen host cannot take it: {why}.")

PciBadAlias = config.Wrong.row("pci.bad_alias", "[pci]alias cannot be used: {problem}.")
PciBadRequest = kinds.Invalid.row("pci.bad_request",
    "pci_passthrough:alias={value} is not possible: it must have the form <alias>:<count>,<alias>:<count>.")
PciNoSuchAlias = kinds.Invalid.row("pci.no_such_alias",
    "PCI alias {alias} is not defined: pci_passthrough:alias={value}.",
    "The flavor names an alias that [pci]alias of the conductors does not have.")
PciTooManyDevices = kinds.Invalid.row("pci.too_many_devices",
    "pci_passthrough:alias={value} is not possible: a server gets {most} devices at most.")
