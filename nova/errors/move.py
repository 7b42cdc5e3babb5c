"""Errors about moves of servers: resizes, migrations, evacuations."""

from __future__ import annotations

from nova.errors import kinds

BadDestination = kinds.HostRefused.row("move.bad_destination",
    "Invalid address of the migration destination: {reason}",
    "Upgrade both hosts to the same release, and check the destination's [libvirt]live_migration_inbound_addr.")
BadOffer = kinds.HostRefused.row("move.bad_offer", "Invalid file description from the guest's source host: {reason}")
BetweenCells = kinds.Conflict.row("move.between_cells",
    "Server {server} is moving to another cell. Wait until it has arrived, or delete it.",
    "A move that fails brings the server back. 'openstack server event list' shows the operation.")
Cancelled = kinds.Conflict.row("move.cancelled", "The move of {server} was cancelled.")
ChecksFailed = kinds.Invalid.row("move.checks_failed", "Migration pre-check error: {why}")
Cpu = kinds.HostRefused.row("move.cpu", "This host does not support the guest's processor: {reason}",
    "Choose a host with the same processor, or give all hosts a common [libvirt]cpu_models.")
Devices = kinds.Conflict.row("move.devices",
    "Guest {uuid} uses devices of its host ({devices}), so it cannot be live-migrated.",
    "Stop the server and migrate it cold, or detach the device.")
DiskShrinks = kinds.HostRefused.row("move.disk_shrinks",
    "The {kind} disk has {has_bytes} bytes and would have to shrink to {wanted_bytes}.")
GuestRuns = kinds.Conflict.row("move.guest_runs", "Guest {uuid} is not powered off.")
HostDown = kinds.Invalid.row("move.host_down", "Compute service of {host} is unavailable at this time.")
Lost = kinds.Bug.row("move.lost",
    "The source reports that {server} runs on host {host}, which does not have it. Its disks on the source were left "
    "unchanged.",
    "Search for the guest on both hosts (`virsh list --all`) before you start it: its disks on the source "
    "were left unchanged.")
NoFiles = kinds.Conflict.row("move.no_files",
    "Guest {uuid} has disks that are stored as {store}: this release moves only disks in files and in Ceph.")
NoSharedStorage = kinds.HostRefused.row("move.no_shared_storage",
    "Source and destination do not share the guest's storage: only a block migration is possible.",
    "Request a block migration (--block-migration), or let the hosts decide (auto).")
NoSuchHost = kinds.Invalid.row("move.no_such_host", "Compute host {host} could not be found.")
NotForgotten = kinds.Conflict.row("move.not_forgotten",
    "Files that an earlier move of guest {uuid} left on this host have not been removed yet.")
NothingAside = kinds.NotFound.row("move.nothing_aside", "This host has no source copy of guest {uuid}.")
OtherFiles = kinds.HostRefused.row("move.other_files",
    "This host has old files of guest {uuid}; they must be removed before the guest can move here.",
    "Check the files under [DEFAULT]instances_path of that host, and remove them if no server owns them.")
OtherPool = kinds.HostRefused.row("move.other_pool",
    "The guest's {name} is the image {there}, but the guest disks of this host are in the pool {here}.",
    "Hosts between which guests move must have the same [libvirt]images_type and images_rbd_pool.")
OwnHost = kinds.Invalid.row("move.own_host", "The target host can't be the same one.")
Proxy = kinds.HostRefused.row("move.proxy", "The live migration has no way through this host: {reason}",
    "Check [libvirt]live_migration_inbound_addr and live_migration_ports of this host.")
SharedStorage = kinds.HostRefused.row("move.shared_storage",
    "Source and destination share the guest's storage: a block migration has nothing to copy.",
    "Request a live migration without --block-migration.")
SourceDown = kinds.Conflict.row("move.source_down", "Compute service of {host} is unavailable at this time.")
#: The source host of a move failed: another destination would not help.
SourceFailed = kinds.Bug.row("move.source_failed", "Host {host}, the source host of {server}, failed: {why}",
    "nova-compute's log of the named host has the cause; the server is unchanged.")
StillArrives = kinds.Conflict.row("move.still_arrives", "Guest {uuid} is still moving to this host.")
Tpm = kinds.HostRefused.row("move.tpm", "The state of the guest's TPM cannot be used: {reason}")
UnlikePlace = kinds.HostRefused.row("move.unlike_place",
    "The guest's PCI and NUMA claim on the destination does not match its present one: {reason}.")

MigrationAborted = kinds.Conflict.row("migration.aborted",
    "The live migration of guest {uuid} was aborted: the guest keeps running on its source host.")
MigrationFailed = kinds.Conflict.row("migration.failed", "The live migration of guest {uuid} failed: {reason}",
    "The guest keeps running on its source host. libvirtd's logs of both hosts have the cause.")
MigrationGivenUp = kinds.Conflict.row("migration.given_up", "The live migration of guest {uuid} was abandoned.")
MigrationNoRoom = kinds.HostRefused.row("migration.no_room",
    "The destination is not, or no longer, prepared for guest {uuid}.",
    "Start the live migration again.")
MigrationNone = kinds.Conflict.row("migration.none", "No live migration of guest {uuid} is in progress.")
MigrationNotFound = kinds.NotFound.row("migration.not_found", "Migration {migration} not found for server {server}.")
MigrationNotInProgress = kinds.NotFound.row("migration.not_in_progress",
    "In-progress live migration {id} is not found for server {server}.")
MigrationNotLive = kinds.NotFound.row("migration.not_live",
    "Migration {migration} for server {server} is not live-migration.")
MigrationUnclear = kinds.Unavailable.row("migration.unclear",
    "Guest {uuid} is paused here and may run on the destination: libvirt cannot tell.",
    "No manual action: the conductor asks both hosts until one has the guest.")
MigrationUnderWay = kinds.Conflict.row("migration.under_way", "Guest {uuid} is still moving to this host.")
MigrationWrongStatus = kinds.Invalid.row("migration.wrong_status",
    "Migration {migration} state of instance {server} is {status}. Cannot {action} while the migration is in this "
    "state: it must be {wanted}.")

ResizeDiskWouldShrink = kinds.Invalid.row("resize.disk_would_shrink",
    "Server disk was unable to be resized because: {reason}")
ResizeNoRecord = kinds.Invalid.row("resize.no_record", "Instance {server} has not been resized.")
ResizeSameFlavor = kinds.Invalid.row("resize.same_flavor", "When resizing, instances must change flavor!")

EvacuateHostInUse = kinds.Invalid.row("evacuate.host_in_use", "Compute service of {host} is still in use.")
