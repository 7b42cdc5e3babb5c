"""Errors about guests on a host, their disks and agents."""

from __future__ import annotations

from nova.errors import kinds

BaseLost = kinds.Conflict.row("guest.base_lost",
    "Image {image_id}, the base of the disk of guest {uuid}, is missing from the host and could not be fetched again: "
    "{why}",
    "Restore the image in Glance, with the same bytes, and start the server again.")
BrokenSave = kinds.HostRefused.row("guest.broken_save", "The saved memory of guest {uuid} cannot be read: {reason}",
    "The next start discards the saved memory and boots from the disk.")
DetachStopped = kinds.Conflict.row("guest.detach_stopped",
    "Detaching interface {interface} from guest {uuid} was cancelled by a newer order.")
DiskJobStalled = kinds.Conflict.row("guest.disk_job_stalled",
    "The block job on disk {disk} of guest {uuid} made no progress for {seconds:.0f} s and was aborted.",
    "Check the storage on both sides of the copy (`virsh blockjob`).")
DiskJobStopped = kinds.Conflict.row("guest.disk_job_stopped",
    "The block job on disk {disk} of guest {uuid} was aborted by a newer order.")
HalfBuilt = kinds.Conflict.row("guest.half_built",
    "Guest {uuid} on host {host} was built only in part; rebuild the server, or delete it.")
HasSuccessor = kinds.Conflict.row("guest.has_successor",
    "Guest {uuid} already has another volume in place of volume {volume}.")
KeepsInterface = kinds.Conflict.row("guest.keeps_interface",
    "Guest {uuid} did not release interface {interface} within {seconds:.0f} s: its operating system must be running "
    "and support hot-unplug.")
TooManyDisks = kinds.Forbidden.row("guest.too_many_disks",
    "Guest {uuid} would have {count} disks (local disks, volumes and config drive); the maximum is {most} "
    "([compute]max_disk_devices_to_attach of its host; 4 on the bus ide).",
    "Detach a volume that is not needed; or use an image with hw_disk_bus=scsi or virtio instead of ide.")
KeepsVolume = kinds.Conflict.row("guest.keeps_volume",
    "Guest {uuid} did not release volume {volume} within {seconds:.0f} s: its operating system must be running and "
    "support hot-unplug.")
KeepsVolumeStopped = kinds.Conflict.row("guest.keeps_volume_stopped",
    "Detaching volume {volume} from guest {uuid} was cancelled by a newer order.")
NoConsole = kinds.Conflict.row("guest.no_console", "Guest {uuid} has no console log.")
NoConsoleLog = kinds.Conflict.row("guest.no_console_log", "Guest {uuid} has no console log yet.")
NoDisks = kinds.Conflict.row("guest.no_disks", "Disks of guest {uuid} are missing: {names}.",
    "Check [DEFAULT]instances_path on the host: is its file system mounted? Rebuild the server if the disks are "
    "lost.")
NoSharedDisks = kinds.HostRefused.row("guest.no_shared_disks",
    "The disks of guest {uuid} should be on storage shared with host {host}, but are missing there.",
    "Mount the shared storage on the host, or evacuate without on_shared_storage.")
NoSuchConsole = kinds.Conflict.row("guest.no_such_console",
    "The guest of instance {uuid} was created without a {what} console. Stop and start it to add the console.")
NoVolumeFile = kinds.HostRefused.row("guest.no_volume_file",
    "Volume {volume} of guest {uuid} is not a file on this host, or has no file {file}.")
NotDefined = kinds.NotFound.row("guest.not_defined", "Guest {uuid} does not exist on this host.")
NotFound = kinds.NotFound.row("guest.not_found", "Guest {uuid} does not exist on host {host}.")
NotRunning = kinds.Conflict.row("guest.not_running", "Guest {uuid} is not running.")
PasswordKept = kinds.Conflict.row("guest.password_kept", "A password is already stored.",
    "Delete the stored one first: `nova clear-password SERVER`.")
TpmSecretLost = kinds.HostRefused.row("guest.tpm_secret_lost",
    "The secret of the TPM of guest {uuid} is missing from this host.",
    "Restore the host's state_path from a backup; without its secret the guest's TPM cannot be opened.")
UnknownName = kinds.NotFound.row("guest.unknown_name", "No live server is named {name}.")
WrongPower = kinds.Conflict.row("guest.wrong_power", "Guest {uuid} is {state}.")

AgentFailed = kinds.Conflict.row("agent.failed", "The agent in guest {uuid} could not {task}: {reason}",
    "See qemu-guest-agent's log in the guest: the agent answered with an error.")
AgentNone = kinds.Conflict.row("agent.none",
    "Guest {uuid} has no agent: its image must have the property hw_qemu_guest_agent=yes and contain qemu-guest-agent.")
AgentNotQuiet = kinds.Conflict.row("agent.not_quiet",
    "The file systems of guest {uuid} must be frozen but cannot be: {reason}",
    "Start qemu-guest-agent in the guest, or remove os_require_quiesce from its image: the snapshot is then taken "
    "without freezing.")
AgentSilent = kinds.Conflict.row("agent.silent",
    "The agent in guest {uuid} does not answer ({reason}). Is qemu-guest-agent installed and running there?")

DiskFilesystem = kinds.Invalid.row("disk.filesystem", "Disks cannot be formatted as {name}, only as one of {known}.")
DiskUnsafe = kinds.HostRefused.row("disk.unsafe", "The file {name} is not a safe disk: {reason}.",
    "The guest's disk was replaced by another file: examine that file first, then restore the disk from a snapshot.")
DiskWouldShrink = kinds.HostRefused.row("disk.would_shrink",
    "Disk {disk} of guest {uuid} would have to shrink from {old} to {new} GB.",
    "Choose a flavor whose disks are not smaller.")

ConfigDrivePath = kinds.Invalid.row("config_drive.path", "A config drive cannot hold a file named '{path}'.")
ConfigDriveTooBig = kinds.Invalid.row("config_drive.too_big",
    "The config drive would hold {bytes} bytes; {limit} are allowed.")

FactsNotHere = kinds.Unavailable.row("guest.facts_not_here",
    "Some facts of guest {server} are not in its cell's database yet.",
    "Repeat the request: a super conductor carries them within seconds. If it does not, check that one runs.")

FakeInjected = kinds.Bug.row("fake.injected", "The fake driver is configured to fail in {call}.")
