"""Errors about compute hosts: orders, claims, devices, and the programs that hosts run."""

from __future__ import annotations

from nova.errors import config, kinds

Brick = kinds.HostRefused.row("host.brick", "os-brick could not {task} on this host: {reason}",
    "The reason is the library's own text: check the host's sessions (iscsiadm -m session, nvme list-subsys), "
    "`multipath -ll`, and, with [cinder]debug, the lines of os_brick in nova-compute's log.")
BadInventory = kinds.Invalid.row("host.bad_inventory",
    "The inventory that {host} reports cannot be stored: {reason}.",
    "A number in it is infinite or not a number: check the host's allocation ratios and provider files.")
BadPacking = kinds.HostRefused.row("host.bad_packing",
    "The resources that guest {uuid} has claimed do not match this host's topology: {reason}.",
    "The host's topology changed (BIOS, hw options): move the server, or restore [compute]cpu_dedicated_set.")
Cannot = kinds.NotSupported.row("host.cannot", "The hypervisor driver of host {host} cannot {what}.",
    "Use a host with another hypervisor driver for this.")
CephSecret = kinds.HostRefused.row("host.ceph_secret",
    "libvirt on this host has no secret {secret} for the key of Ceph user {user}, and cannot create it "
    "without the keyring /etc/ceph/ceph.client.{user}.keyring. Install the keyring; or create the secret, with a "
    "file s.xml that contains `<secret ephemeral='no' private='yes'><uuid>{secret}</uuid><usage type='ceph'>"
    "<name>client.{user}</name></usage></secret>`: `virsh secret-define s.xml`, then "
    "`virsh secret-set-value {secret} $(ceph auth get-key client.{user})`.",
    "Every host that uses the pool needs the secret, with the uuid of Cinder's rbd_secret_uuid.")
CommandFailed = kinds.Unavailable.row("host.command_failed", "`{command}` failed on {where}: {reason}",
    "Run the command by hand on the host, as nova's user; the reason is the command's own output.")
ComputeId = kinds.Invalid.row("host.compute_id",
    "{path} does not contain a UUID; restore it, or remove it on a host without guests.")
CouldNot = kinds.HostRefused.row("host.could_not", "{reason}",
    "nova-compute's log on the host has the command that failed.")
CpuUnfit = kinds.HostRefused.row("host.cpu_unfit", "Guest {uuid} needs a processor {needed}; host {host} has {has}.",
    "Choose a host with the same processor, or give all hosts a common [libvirt]cpu_models.")
DamagedId = kinds.Conflict.row("host.damaged_id",
    "{path} does not contain a UUID. It is this host's identity: restore it from a backup, or, if the host is new or "
    "has no guests, remove it and delete the host's nova-compute service.")
DamagedSecret = kinds.Conflict.row("host.damaged_secret",
    "{path} does not contain this host's secret: {reason}. Restore it from a backup; or remove it and enroll this "
    "host again: run `nova-manage host enroll` on a controller, and write the token to state_path/host_token here.")
DiskFull = kinds.HostRefused.row("host.disk_full", "There is no space left for {what} on {host}.",
    "Free space under [DEFAULT]instances_path, or disable the host's compute service until then.")
Down = kinds.Invalid.row("host.down", "Compute service of {host} is unavailable at this time.")
Export = kinds.HostRefused.row("host.export", "This host cannot export the guest's disks: {reason}",
    "Check whether [libvirt]live_migration_inbound_addr is an address of this host, and its certificates readable.")
GroupsNotHeld = kinds.HostRefused.row("host.groups_not_held",
    "Security groups are not enforced between guests on one bridge of host {host} ({reason}): {cure}.")
HelperDied = kinds.Unavailable.row("host.helper_died",
    "The privileged helper exited during {call}: {reason}",
    "See `journalctl -u nova-privileged`. The next call connects again once the helper runs.")
HelperRefused = kinds.HostRefused.row("host.helper_refused", "The privileged helper refuses {call}: {reason}",
    "nova-privileged reads paths, groups and pools from its own nova.conf: restart it after a change there.")
ImageTool = kinds.HostRefused.row("host.image_tool", "The image tool could not {task}: {reason}",
    "Run qemu-img by hand on the file that the log names.")
LibvirtDown = kinds.Unavailable.row("host.libvirt_down",
    "libvirt on {host} does not answer at {uri}: {reason}. Is libvirtd running?",
    "See `systemctl status libvirtd`; [libvirt]connection_uri is the address that nova-compute connects to.")
LibvirtRefused = kinds.HostRefused.row("host.libvirt_refused", "libvirt could not {task}: {reason}",
    "libvirtd's log on the host has details; `nova-manage doctor` there checks the setup.")
Link = kinds.Unavailable.row("host.link", "The network device {device} could not be set up: {reason}",
    "Run `ip link` on the host: does the interface exist, and is the name in nova.conf correct?")
LockBusy = kinds.Unavailable.row("host.lock_busy", "Another process has held the lock {path} for {seconds} s",
    "Check which process has the file open (`fuser`); it may hang.")
Lvm = kinds.HostRefused.row("host.lvm", "LVM could not {task}: {reason}",
    "Run vgs and lvs on the host: does the group [libvirt]images_volume_group exist, with space left?")
Misaddressed = kinds.HostRefused.row("host.misaddressed", "This is host {host}, but the order is for {given}.",
    "Two hosts have the same queue: give each its own [DEFAULT]host.")
#: The host sent no reply (as opposed to a reply with an error of this kind).
NoAnswer = kinds.Unavailable.row("host.no_answer")
NoBackend = kinds.HostRefused.row("host.no_backend",
    "A disk of the guest is stored as {store} ({place}), which this host does not have.",
    "The host's [libvirt]images_type changed: set it back, or move the disks by hand.")
NoBrick = kinds.HostRefused.row("host.no_brick",
    "Volume {volume} is connected by {kind}, for which this host needs the library os-brick.",
    "Install it where nova-compute runs (pip install os-brick), with the tools of the back end, and restart "
    "nova-compute.")
NoBridge = kinds.HostRefused.row("host.no_bridge", "The bridge {bridge} of network {network} is not on this host.",
    "Create the bridge, or check whether nova-network (or Neutron's agent) runs on the host.")
NoConsoles = kinds.NotSupported.row("host.no_consoles",
    "The hypervisor driver of host {host} does not serve its guests' consoles.")
NoDiagnostics = kinds.NotSupported.row("host.no_diagnostics",
    "The hypervisor driver of host {host} does not report diagnostics of its guests.")
NoKeptOrders = kinds.NotSupported.row("host.no_kept_orders",
    "The hypervisor driver of host {host} stores no orders with its guests.")
NoEmulator = kinds.Unavailable.row("host.no_emulator",
    "libvirt on this host cannot run {virt_type} guests: is qemu-system installed?",
    "Install qemu-system for the host's architecture, or set [libvirt]virt_type=qemu on hosts without KVM.")
BadName = kinds.Invalid.row("host.bad_name",
    "'{host}' is not a valid host name: it must have at most {longest} letters, digits, dots, hyphens and underscores.")
NoHostDaemon = kinds.Forbidden.row("host.no_host_daemon",
    "'{binary}' is not a service that runs on compute hosts (host '{host}')")
NoImageService = kinds.NotSupported.row("host.no_image_service", "Host {host} cannot reach the image service.",
    "Set [glance]api_servers, or credentials that find the image service in Keystone's catalog.")
NoHelper = kinds.Unavailable.row("host.no_helper",
    "Privileged operations are not possible: {reason}. Start nova-privileged.service; or let this user run "
    "nova-rootwrap by sudo; or run the service as root: see 'Privileges' in doc/install.rst.",
    "`nova-manage doctor` on the host shows which way is in use, and whether it answers.")
NoIsoMaker = kinds.HostRefused.row("host.no_iso_maker",
    "This host cannot make config drives: none of {programs} is installed.",
    "Install genisoimage, mkisofs or xorriso, or set [DEFAULT]config_drive_format=vfat.")
NoMonitor = kinds.Invalid.row("host.no_monitor",
    "[DEFAULT]compute_monitors: unknown monitor {name!r}; known monitors: {known}")
NoPowerActions = kinds.NotSupported.row("host.no_power_actions",
    "The hypervisor driver of host {host} cannot turn the host on or off, reboot it or put it in maintenance.")
NoSerialPort = kinds.HostRefused.row("host.no_serial_port",
    "All ports of [serial_console]port_range = {first}:{last} are in use on this host; a guest needs {count} of them.",
    "Widen [serial_console]port_range.")
NoSuchAction = kinds.NotSupported.row("host.no_such_action", "A fake host cannot do {action}.")
NoSuchConsole = kinds.NotSupported.row("host.no_such_console",
    "Guests of this hypervisor have no consoles of type {type}.")
NoSuchGuest = kinds.HostRefused.row("host.no_such_guest", "This host does not support {name}={value}: {reason}.",
    "Another host may support it; the image or the flavor has the requirement.")
NoUplink = kinds.HostRefused.row("host.no_uplink",
    "Network {network} has VLAN {vlan}, but this host has no interface to carry it: set [DEFAULT]vlan_interface in "
    "nova.conf, or the network's bridge_interface.")
NoSandbox = kinds.Unavailable.row("host.no_sandbox",
    "Tools that read images have no sandbox on this host: {reason}",
    "Install bubblewrap; in a container, allow it to create namespaces.")
NoSecret = kinds.Unavailable.row("host.no_secret", "Host {host} has no secret: it has not registered yet.",
    "Start nova-compute there, and see its log.")
NoUptime = kinds.NotSupported.row("host.no_uptime", "The hypervisor driver of host {host} does not report the uptime.")
NotEnrolled = kinds.NotFound.row("host.not_enrolled", "The host '{host}' was never enrolled.",
    "`nova-manage host list` shows the enrolled hosts.")
NotEnrolledFor = kinds.Forbidden.row("host.not_enrolled_for",
    "'{host}' is enrolled to run {runs}, not {binary}: list all services of the host with `nova-manage host enroll "
    "{host} --runs ...` on a controller.")
NotFound = kinds.NotFound.row("host.not_found", "Compute host {host} could not be found.",
    "List the hosts with `openstack compute service list`, as an administrator.")
NotMarked = kinds.Unavailable.row("host.not_marked", "This host cannot record its state in {path}: {reason}.",
    "Free space under [DEFAULT]state_path, and make it writable for the users of this host's services.")
NotPlugged = kinds.HostRefused.row("host.not_plugged", "Interface {id} cannot be {what} {bridge}: {reason}.")
NotRegistered = kinds.Conflict.row("host.not_registered",
    "nova-compute on '{host}' is not registered with id {host_id}.",
    "Start nova-compute there: it registers when it starts.")
NodeNotYours = kinds.Forbidden.row("host.node_not_yours",
    "'{host}' reports {uuid}, which is a node or provider of another owner.",
    "Two hosts must not share an identity: look for a copied state directory (compute_id) or a cloned machine.")
NotYours = kinds.Forbidden.row("host.not_yours", "'{host}' is not allowed to act for '{other}'.")
PlaceTaken = kinds.HostRefused.row("host.place_taken", "The claim of guest {uuid} on host {host} failed: {reason}.",
    "No action needed: nova tries the next host; another guest claimed the resources at the same moment.")
NoVolumes = kinds.HostRefused.row("host.no_volumes",
    "The hypervisor driver of host {host} does not support volumes.",
    "Use a host with another hypervisor driver for servers with volumes.")
Rbd = kinds.HostRefused.row("host.rbd", "Ceph could not {task}: {reason}",
    "Check `ceph -s` and the key of [libvirt]rbd_user.")
#: The conductor rejected the identity that this host claims; the conductor's message has the cure.
Refused = kinds.Conflict.row("host.refused")
Renamed = kinds.Conflict.row("host.renamed",
    "this machine's id {given} is registered as host '{known}', but [DEFAULT]host is '{host}'. Set [DEFAULT]host = "
    "{known}; or, if its state_path was copied from that host, remove state_path/host_id.")
SecretNotMade = kinds.Unavailable.row("host.secret_not_made",
    "This host has no secret yet ({path}): its first service creates it at startup.",
    "Start nova-compute (or nova-network) here.")
SecretSealed = kinds.Conflict.row("host.secret_sealed",
    "No key of [conductor]host_secret_key decrypts the stored secret of {host}.",
    "Add the key that encrypted it after the first key; or enroll the host again: nova-manage host enroll NAME.")
SerialAddress = kinds.HostRefused.row("host.serial_address",
    "This host cannot listen on [serial_console]proxyclient_address = {address} for its guests' serial ports: "
    "{reason}.",
    "[serial_console]proxyclient_address must be an address of this host.")
SerialSockets = kinds.HostRefused.row("host.serial_sockets",
    "[serial_console]socket_dir = {path} cannot be created on this host: {reason}.")
Stopping = kinds.HostRefused.row("host.stopping", "nova-compute on {host} is stopping and accepts no new guests.",
    "No action needed: nova tries the next host. Orders for guests that are on the host still work.")
TwoDaemons = kinds.Conflict.row("host.two_daemons",
    "Another nova-compute uses {path}: stop it, or give this one its own state_path.")
VifData = kinds.HostRefused.row("host.vif_data", "Interface {id} cannot be plugged: {reason}.",
    "Check the port in Neutron: its mechanism driver sets the binding profile and details.")
VifNotBridged = kinds.HostRefused.row("host.vif_not_bridged",
    "Interface {id} is of type {type}, which this host cannot plug.",
    "This network's mechanism driver does not fit this host: bind the port elsewhere, or install its agent here.")
VifNotPlugged = kinds.HostRefused.row("host.vif_not_plugged",
    "The network service did not confirm within {seconds} s that interface {interface} of guest {uuid} is connected "
    "(vif_plugging_timeout): check its agent on host {host}.",
    "Check the network agent of the host; [DEFAULT]vif_plugging_timeout sets how long nova waits, and "
    "vif_plugging_is_fatal whether the timeout is an error.")
VifPlugFailed = kinds.HostRefused.row("host.vif_plug_failed",
    "The network service could not connect interface {interface} of guest {uuid} on host {host}.",
    "See the network agent's log on that host.")
VifType = kinds.HostRefused.row("host.vif_type",
    "Interface {id} is of type {type} ({vnic}), which this host cannot plug.",
    "This network's mechanism driver does not fit this host: bind the port elsewhere, or install its agent here.")
VolumeData = kinds.HostRefused.row("host.volume_data", "Volume {volume} cannot be used on this host: {reason}.",
    "Check the volume in Cinder: its back end's driver decides how the volume is connected.")
VolumeIdentity = kinds.HostRefused.row("host.volume_identity",
    "The device at {path} on this host is not volume {volume}: it is {found}, not {expected}. It was not attached.",
    "The device of a deleted volume was left there. When no guest uses it, remove it (`multipath -f`, then write 1 to "
    "its sysfs file delete), and try again.")
VolumeKey = kinds.HostRefused.row("host.volume_key",
    "Volume {volume} is encrypted, and neither this host nor the order has its passphrase.",
    "nova-conductor's log has the reason: check its [key_manager] and [barbican], and which users may read the "
    "volume's key (openstack acl get).")
VolumeKind = kinds.HostRefused.row("host.volume_kind",
    "Volume {volume} is connected by {kind}, which this host does not support; it supports {known}.",
    "Use a volume type of another back end.")
VolumeMount = kinds.HostRefused.row("host.volume_mount", "{export} could not be mounted on {path}: {reason}",
    "Try the command by hand on the host: is the NFS server up, and are the NFS client programs installed?")
VolumeNotConnected = kinds.HostRefused.row("host.volume_not_connected",
    "Volume {volume} of guest {uuid} is not connected to this host, and the order has no connection data for it.",
    "Reboot the server hard, which connects its volumes again.")
WeakSecret = kinds.Invalid.row("host.weak_secret", "A secret of '{host}' must have {length} characters.")
WrongIdentity = kinds.Conflict.row("host.wrong_identity",
    "host '{host}' is registered with id {known}, but this machine has id {given}. If it was reinstalled, restore "
    "state_path/host_id (write {known} into it) or delete the old service first (openstack compute service delete); if "
    "it is another machine, give it another [DEFAULT]host.")
#: The command was killed because it did not end in time.
CommandTooSlow = CommandFailed.row("host.command_too_slow")
NoLocalBridge = NoBridge.row("host.no_local_bridge",
    "The bridge {bridge} of the multi-host network {network} is not on this host: nova-network, which creates it, is "
    "not running here or failed to create it.")

HypervisorBadId = kinds.Invalid.row("hypervisor.bad_id", "Invalid {what} {id}: it must be {wanted}.")
HypervisorHostDown = kinds.Invalid.row("hypervisor.host_down",
    "The compute service of host {host} is down: its uptime is unknown.")
HypervisorNoMatch = kinds.NotFound.row("hypervisor.no_match", "No hypervisor matching '{pattern}' could be found.")
HypervisorNotFound = kinds.NotFound.row("hypervisor.not_found", "Hypervisor with ID '{id}' could not be found.")
HypervisorPatternIsNotPaged = kinds.Invalid.row("hypervisor.pattern_is_not_paged",
    "Paging over hypervisors with the hypervisor_hostname_pattern query parameter is not supported.")
HypervisorUptimeUnknown = kinds.NotSupported.row("hypervisor.uptime_unknown",
    "The driver of hypervisor {name} does not report its uptime.")

BaremetalNotHere = kinds.Invalid.row("baremetal.not_here",
    "Nodes cannot be changed here. Use the bare metal service: openstack baremetal {command}.")
BaremetalUnavailable = kinds.NotSupported.row("baremetal.unavailable",
    "The bare metal service is not available here: its nodes cannot be shown.")

OrderBadUuid = kinds.Invalid.row("order.bad_uuid", "'{given}' is not the UUID of a server.")
OrderCannotAsk = kinds.HostRefused.row("order.cannot_ask",
    "Host {host} could not ask the conductor whether to continue, so it stopped: {reason}",
    "The broker or the conductors were unreachable for longer than 20 s; the operation continues on another host.")
OrderClosed = kinds.HostRefused.row("order.closed",
    "An order of epoch {epoch} removed guest {uuid}; this order of epoch {asked} came too late.")
OrderIncomplete = kinds.Invalid.row("order.incomplete",
    "The order to {what} {uuid} lacks the specification of the guest.")
OrderNotGranted = kinds.Overtaken.row("order.not_granted",
    "The conductor has a newer operation on {uuid} than epoch {epoch}.")
OrderOvertaken = kinds.Overtaken.row("order.overtaken",
    "Server {uuid} is at epoch {newest} here; an order of epoch {epoch} is too old.")
OrderStale = kinds.HostRefused.row("order.stale",
    "The order to {kind} {uuid} came {late:.0f} s after its deadline to start (if this happens often, compare the "
    "clocks of this host and the conductor).",
    "Compare the clocks of the host and the conductors (`nova-manage doctor`).")
OrderStopped = kinds.Overtaken.row("order.stopped", "The order to {kind} {uuid} was stopped by a newer one.")

ClaimGroup = kinds.ClaimConflict.row("claim.group", "Server group {group} has the policy {policy}, and {why}.",
    "Nova tries the next host. If none is left, the group's policy cannot be met: add hosts, or use a soft policy.")
ClaimHeld = kinds.Conflict.row("claim.held", "These servers already have allocations on their providers.",
    "No action needed: another request completed this claim.")
ClaimNotEnough = kinds.ClaimConflict.row("claim.not_enough",
    "The selected host has {free} {resource_class} left, but {wanted} are needed.")
ClaimUnfit = kinds.ClaimConflict.row("claim.unfit", "The selected host cannot take the server: {why}.")

PciBadAlias = config.Wrong.row("pci.bad_alias", "[pci]alias cannot be used: {problem}.")
PciBadRequest = kinds.Invalid.row("pci.bad_request",
    "pci_passthrough:alias={value} is not possible: it must have the form <alias>:<count>,<alias>:<count>.")
PciNoSuchAlias = kinds.Invalid.row("pci.no_such_alias",
    "PCI alias {alias} is not defined: pci_passthrough:alias={value}.",
    "The flavor names an alias that is missing from [pci]alias of the conductors.")
PciTooManyDevices = kinds.Invalid.row("pci.too_many_devices",
    "pci_passthrough:alias={value} is not possible: a server can have at most {most} devices.")
