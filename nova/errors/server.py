"""Errors about servers, their groups, keys, actions and snapshots."""

from __future__ import annotations

from nova.errors import kinds

AttachFailed = kinds.HostRefused.row("server.attach_failed",
    "The host of instance {server} could not complete the request, which is undone: {reason}",
    "Correct what the message names, or ask an operator: `openstack server event list SERVER` has the request.")
AttachInterrupted = kinds.Conflict.row("server.attach_interrupted",
    "Attaching an interface to instance {server} was interrupted by another action on it.")
AttachSlow = kinds.Unavailable.row("server.attach_slow",
    "Attaching an interface to instance {server} takes longer than {seconds:.0f} s and continues: the instance's "
    "actions show the result.")
BadBlockDevice = kinds.Invalid.row("server.bad_block_device",
    "Block Device Mapping is Invalid: device {number}: {reason}")
#: An error of all entries together.
BadBlockDevices = kinds.Invalid.row("server.bad_block_devices", "Block Device Mapping is Invalid: {reason}")
#: An error of an entry in the image's own mapping.
BadImageDevice = kinds.Invalid.row("server.bad_image_device",
    "Block Device Mapping is Invalid: the image's property {property}, entry {number}: {reason}",
    "Ask the image's owner to correct the property (`openstack image set --property`), or use another image.")
BadCreate = kinds.Invalid.row("server.bad_create")
NoSignatures = kinds.Invalid.row("server.no_signatures",
    "trusted_image_certificates: this cloud does not verify image signatures, so it cannot honour the request. Omit "
    "the field.")
BadFixedIp = kinds.Invalid.row("server.bad_fixed_ip",
    "Invalid fixed_ip: {address} is not an address of network {network} ({cidr}).")
BadFlavor = kinds.Invalid.row("server.bad_flavor", "Flavor {flavor_id} could not be found.",
    "`openstack flavor list` shows your flavors.")
BadGroup = kinds.Invalid.row("server.bad_group",
    "ServerGroup {group} in the scheduler hint 'group' could not be found.")
BadImage = kinds.Invalid.row("server.bad_image", "Cannot find requested image {image_id}: {reason}",
    "`openstack image list` shows your images.")
BadImageProperty = kinds.Invalid.row("server.bad_image_property", "Image {image_id} cannot be used: {reason}.")
BadKeypair = kinds.Invalid.row("server.bad_keypair", "Invalid key_name provided.",
    "`openstack keypair list` shows your keys: a key belongs to one user.")
BadNetwork = kinds.Invalid.row("server.bad_network", "Network {network_id} could not be found.")
BadTag = kinds.Invalid.row("server.bad_tag", "Tag '{tag}' is invalid. {reason}")
DiskConfigDisabled = kinds.Invalid.row("server.disk_config_disabled",
    "Invalid OS-DCF:diskConfig: it must be MANUAL, because image {image} says (auto_disk_config) that its file system "
    "cannot be grown.")
FixedIpInUse = kinds.Invalid.row("server.fixed_ip_in_use",
    "Invalid fixed_ip: {address} of network {network} is in use already.")
FixedIpV6 = kinds.Invalid.row("server.fixed_ip_v6",
    "Invalid fixed_ip: {address}: IPv6 addresses are derived from the interface's MAC and cannot be chosen.")
FlavorTooSmall = kinds.Invalid.row("server.flavor_too_small", "{reason}")
ForcedNowhere = kinds.Invalid.row("server.forced_nowhere",
    "Can't force to a non-provided destination: force needs a host.")
Going = kinds.WrongState.row("server.going", "Instance {server} is being deleted.")
#: The disks may be gone: any action that starts the server would give its owner an empty server.
HalfDestroyed = kinds.WrongState.row("server.half_destroyed",
    "Instance {server} was deleted only in part, so no other action is possible: delete it again.",
    "Run `openstack server delete SERVER` again, which removes the rest.")
HasOwnCall = kinds.Bug.row("server.has_own_call", "'{action}' takes arguments: use its own call.")
HostForcedDown = kinds.WrongState.row("server.host_forced_down",
    "Cannot '{action}' instance {server}: an operator marked its host as down. Wait until the host is back, or until "
    "the instance is evacuated.")
ImageAndFlavor = kinds.Invalid.row("server.image_and_flavor", "{name}={value} is not possible: {reason}.")
#: A flavor or an image has a requirement that no host can meet, or they contradict each other.
ImpossibleRequirement = kinds.Invalid.row("server.impossible_requirement", "{name}={value} is not possible: {reason}.")
InterfacesBusy = kinds.Conflict.row("server.interfaces_busy",
    "Another interface of instance {server} is being attached or detached: try again when it has ended.")
InterfacesUnsettled = kinds.Conflict.row("server.interfaces_unsettled",
    "An interface could not be attached to instance {server}, and will be removed when the host answers again. "
    "Until then its address stays allocated, and no other interface can be attached or detached.")
Locked = kinds.Conflict.row("server.locked", "Instance {uuid} is locked",
    "Run `openstack server unlock SERVER` as the user who locked it, or as an administrator.")
LockedMeanwhile = kinds.Conflict.row("server.locked_meanwhile",
    "Instance {server} was locked by its {by} meanwhile; repeat the request.")
MetadataKeyMismatch = kinds.Invalid.row("server.metadata_key_mismatch",
    "Request body and URI mismatch: the body must hold the key {key}.")
NetworkOfNobody = kinds.Invalid.row("server.network_of_nobody",
    "Network {network_id} does not belong to a project yet. Request no network, so that the project gets one with its "
    "first server; or ask an administrator to add the network to the project (os-networks/add).")
NoGuest = kinds.Conflict.row("server.no_guest", "Instance {server} is not ready: its host does not have its guest.",
    "Check the server's host: the guest may have been removed by hand. Rebuild or delete the server.")
NoHost = kinds.Conflict.row("server.no_host", "Instance {server} is not ready: it is on no host.",
    "A server that failed to build, or is shelved, has no host: delete or unshelve it.")
NoNetworks = kinds.Invalid.row("server.no_networks", "No network is available to the project.")
NoShelvedImage = kinds.Conflict.row("server.no_shelved_image",
    "Instance {server} stays on its host: {reason}, and its disk is not stored elsewhere.",
    "Wait until the image is active, or unshelve the server and shelve it again.")
NoSuchHost = kinds.Invalid.row("server.no_such_host", "Compute host {host} could not be found.",
    "List the hosts with `openstack compute service list --service nova-compute`.")
NoSuchInterface = kinds.NotFound.row("server.no_such_interface", "Instance {server} has no interface {interface}.")
NoSuchMetadata = kinds.NotFound.row("server.no_such_metadata", "Metadata item was not found")
NoSuchNetwork = kinds.NotFound.row("server.no_such_network",
    "Network {label} was not found among the server's addresses")
NoSuchNode = kinds.Invalid.row("server.no_such_node", "Compute node {node} could not be found{where}.")
NoSuchPort = kinds.NotFound.row("server.no_such_port", "Instance {server} does not have a port with id {port}")
NoSuchSecurityGroup = kinds.Invalid.row("server.no_such_security_group", "Security group {name} could not be found.")
NoSuchTag = kinds.NotFound.row("server.no_such_tag", "Server {server} has no tag '{tag}'")
NotForIt = kinds.Conflict.row("server.not_for_it", "Cannot '{action}' instance {server}: it {has}.")
#: Also for a malformed UUID, which needs no database query.
NotFound = kinds.NotFound.row("server.not_found", "Instance {server} could not be found.")
OneHostname = kinds.Invalid.row("server.one_hostname",
    "Unable to allocate a single hostname to multiple instances: hostname is {hostname}, and {count} servers are "
    "requested (max_count).",
    "Omit hostname, so that each server gets a hostname from its name; or create the servers with one request each.")
PasswordLost = kinds.Conflict.row("server.password_lost",
    "The password for instance {server} was lost before it reached the guest; set it again.")
PasswordOfKeptDisk = kinds.Invalid.row("server.password_of_kept_disk",
    "adminPass cannot be set on a preserved disk: omit adminPass or onSharedStorage.")
PinConflict = kinds.Conflict.row("server.pin_conflict",
    "Server {uuid} cannot be pinned to availability zone {zone}: it is in {current}. A pin may only be "
    "removed, or set to the zone the server is in.")
TokenLost = kinds.Conflict.row("server.token_lost",
    "An operation on instance {server} was interrupted, and its user's token was lost with it; nothing was changed.",
    "Repeat the request.")
TooManyTags = kinds.Invalid.row("server.too_many_tags", "The number of tags exceeded the per-server limit {limit}")
TooManyLocalDisks = kinds.Invalid.row("server.too_many_local_disks",
    "The server would have {count} disks on its host, and at most {most} are allowed "
    "([DEFAULT]max_local_block_devices). Use volumes.")
UnderWay = kinds.WrongState.row("server.under_way",
    "Cannot '{action}' instance {server}: this action is already in progress.")
WrongState = kinds.WrongState.row("server.wrong_state",
    "Cannot '{action}' instance {server} while it is in {attribute} {value}")

ServersBadFilter = kinds.Invalid.row("servers.bad_filter", "Invalid filter {name}={value}: {reason}")
ServersBadSort = kinds.Invalid.row("servers.bad_sort", "Invalid sorting: {reason}")
ServersDeletedForbidden = kinds.Forbidden.row("servers.deleted_forbidden",
    "Only administrators may list deleted instances")
ServersSortForbidden = kinds.Forbidden.row("servers.sort_forbidden", "Only administrators can sort servers by {keys}")

ServerGroupNotFound = kinds.NotFound.row("server_group.not_found", "Instance group {group} could not be found.")
ServerGroupRuleTooLarge = kinds.Invalid.row("server_group.rule_too_large",
    "Invalid input for field/attribute max_server_per_host. Value: {value}. It must be at most {most}.")
ServerGroupRules = kinds.Invalid.row("server_group.rules",
    "Invalid input for field/attribute rules. Only anti-affinity policy supports rules, not {policy}.")

#: An unexpected failure of a host: another host may succeed.
BuildFailed = kinds.HostRefused.row("build.failed", "The host could not {kind} the guest ({reason}).",
    "Nova tries the next host. nova-compute's log on this host has the cause under the request id.")

RebuildOtherTopology = kinds.Invalid.row("rebuild.other_topology",
    "Image {image_id} cannot be used: it requires other NUMA nodes, dedicated processors or pages than the server "
    "has. A rebuild cannot change them; resize the server, or use an image with the same requirements.")

InterfaceAddressInUse = kinds.Conflict.row("interface.address_in_use",
    "Fixed IP address {address} of network {network} is in use already.")
InterfaceAddressWithoutNetwork = kinds.Invalid.row("interface.address_without_network",
    "Must input network_id when request IP address")
InterfaceNetworkAndPort = kinds.Invalid.row("interface.network_and_port", "Must not input both network_id and port_id")

ActionNotFound = kinds.NotFound.row("action.not_found",
    "Action for request_id {request_id} on instance {server} not found")

KeypairBadKey = kinds.Invalid.row("keypair.bad_key", "Keypair data is invalid: {reason}")
KeypairNotFound = kinds.NotFound.row("keypair.not_found", "Keypair {name} not found for user {user_id}")
KeypairTaken = kinds.Conflict.row("keypair.taken", "Key pair '{name}' already exists.")

SnapshotName = kinds.Invalid.row("snapshot.name", "'{image_id}' is not a valid image id.")
SnapshotNotFound = kinds.Conflict.row("snapshot.not_found",
    "Host {host} has no snapshot of guest {uuid} for image {image_id}, or no longer has it.")
SnapshotStalled = kinds.HostRefused.row("snapshot.stalled",
    "The copy of the disk of guest {uuid} made no progress for {seconds} s.",
    "The host's storage is too slow or hangs: see the host's kernel log.")
