"""Errors about moves of servers: resizes, migrations, evacuations."""

from __future__ import annotations

from nova.errors import kinds

BadDestination = kinds.HostRefused.row("move.bad_destination",
    "Where the destination is to be reached cannot be: {reason}",
    "Bring both hosts to the same release, and look at the destination's [libvirt]live_migration_inbound_addr.")
BadOffer = kinds.HostRefused.row("move.bad_offer", "What the guest's source tells of its files cannot be: {reason}")
Cancelled = kinds.Conflict.row("move.cancelled", "The move of {server} was cancelled.")
ChecksFailed = kinds.Invalid.row("move.checks_failed", "Migration pre-check error: {why}")
Cpu = kinds.HostRefused.row("move.cpu", "The guest's processor is not possible on this host: {reason}",
    "Choose a host with the same processor, or give all hosts a common [libvirt]cpu_models.")
Devices = kinds.Conflict.row("move.devices",
    "Guest {uuid} holds devices of its host ({devices}), and cannot leave it while it runs.",
    "Stop the server and migrate it cold, or detach the device.")
DiskShrinks = kinds.HostRefused.row("move.disk_shrinks",
    "The {kind} disk has {has_bytes} bytes and would have to shrink to {wanted_bytes}.")
GuestRuns = kinds.Conflict.row("move.guest_runs", "Guest {uuid} is not off.")
HostDown = kinds.Invalid.row("move.host_down", "Compute service of {host} is unavailable at this time.")
Lost = kinds.Bug.row("move.lost",
    "The source says that {server} runs on host {host}, which does not have it. Its disks on the source were left as "
    "they are.",
    "Look for the guest on both hosts (`virsh list --all`) before anything is started: its disks on the source "
    "were left alone.")
NoFiles = kinds.Conflict.row("move.no_files",
    "Guest {uuid} has disks that are kept as {store}: this release moves those in files and in Ceph.")
NoSharedStorage = kinds.HostRefused.row("move.no_shared_storage",
    "Source and destination do not share the guest's storage: only a block migration is possible.",
    "Ask for a block migration (--block-migration), or let the hosts find out (auto).")
NoSuchHost = kinds.Invalid.row("move.no_such_host", "Compute host {host} could not be found.")
NotForgotten = kinds.Conflict.row("move.not_forgotten",
    "What guest {uuid} left here in an earlier move has not been removed yet.")
NothingAside = kinds.NotFound.row("move.nothing_aside", "Nothing of guest {uuid} was put aside on this host.")
OtherFiles = kinds.HostRefused.row("move.other_files",
    "This host has files of guest {uuid} from another time; they must be removed before it can come here.",
    "Look at the files under [DEFAULT]instances_path of that host, and remove them if no server owns them.")
OtherPool = kinds.HostRefused.row("move.other_pool",
    "The guest's {name} is the image {there}; guests' disks of this host are in the pool {here}.",
    "Hosts between which guests move have the same [libvirt]images_type and images_rbd_pool.")
OwnHost = kinds.Invalid.row("move.own_host", "The target host can't be the same one.")
Proxy = kinds.HostRefused.row("move.proxy", "The live migration has no way through this host: {reason}",
    "Look at [libvirt]live_migration_inbound_addr and live_migration_ports of this host.")
SharedStorage = kinds.HostRefused.row("move.shared_storage",
    "Source and destination share the guest's storage: a block migration has nothing to copy.",
    "Ask for a live migration without --block-migration.")
SourceDown = kinds.Conflict.row("move.source_down", "Compute service of {host} is unavailable at this time.")
#: The host that a server is to leave: no other destination would help.
SourceFailed = kinds.Bug.row("move.source_failed", "Host {host}, which {server} is on, failed: {why}",
    "nova-compute's log of the named host has the cause; the server is as it was.")
StillArrives = kinds.Conflict.row("move.still_arrives", "Guest {uuid} is still moving to this host.")
Tpm = kinds.HostRefused.row("move.tpm", "The state of the guest's TPM cannot be used: {reason}")
UnlikePlace = kinds.HostRefused.row("move.unlike_place",
    "The guest's place at its destination is unlike the one it has: {reason}.")

MigrationAborted = kinds.Conflict.row("migration.aborted",
    "The live migration of guest {uuid} was aborted: it runs on where it was.")
MigrationFailed = kinds.Conflict.row("migration.failed", "The live migration of guest {uuid} failed: {reason}",
    "The guest runs on where it was. libvirtd's logs of both hosts have the cause.")
MigrationGivenUp = kinds.Conflict.row("migration.given_up", "The live migration of guest {uuid} was given up.")
MigrationNoRoom = kinds.HostRefused.row("migration.no_room",
    "The destination of guest {uuid} is not ready for it (any more).",
    "Start the live migration again.")
MigrationNone = kinds.Conflict.row("migration.none", "No live migration of guest {uuid} is under way.")
MigrationNotFound = kinds.NotFound.row("migration.not_found", "Migration {migration} not found for server {server}.")
MigrationNotInProgress = kinds.NotFound.row("migration.not_in_progress",
    "In-progress live migration {id} is not found for server {server}.")
MigrationNotLive = kinds.NotFound.row("migration.not_live",
    "Migration {migration} for server {server} is not live-migration.")
MigrationUnclear = kinds.Unavailable.row("migration.unclear",
    "Guest {uuid} stands still here, and may run where it was sent: libvirt cannot tell.",
    "Nothing by hand: the conductor asks both hosts until one has the guest.")
MigrationUnderWay = kinds.Conflict.row("migration.under_way", "Guest {uuid} is still moving to this host.")
MigrationWrongStatus = kinds.Invalid.row("migration.wrong_status",
    "Migration {migration} state of instance {server} is {status}. Cannot {action} while the migration is in this "
    "state: it must be {wanted}.")

ResizeDiskWouldShrink = kinds.Invalid.row("resize.disk_would_shrink",
    "Server disk was unable to be resized because: {reason}")
ResizeNoRecord = kinds.Invalid.row("resize.no_record", "Instance {server} has not been resized.")
ResizeSameFlavor = kinds.Invalid.row("resize.same_flavor", "When resizing, instances must change flavor!")

EvacuateHostInUse = kinds.Invalid.row("evacuate.host_in_use", "Compute service of {host} is still in use.")
