"""Errors about guests on a host, their disks and agents."""

from __future__ import annotations

from nova.errors import kinds

BaseLost = kinds.Conflict.row("guest.base_lost",
    "The image {image_id}, which the disk of guest {uuid} is made of, is not on its host any more, and could not be "
    "fetched again: {why}",
    "Restore the image in Glance, with the same bytes, and start the server again.")
BrokenSave = kinds.HostRefused.row("guest.broken_save", "The saved memory of guest {uuid} cannot be read: {reason}",
    "The saved memory is dropped with the next start, which boots from the disk.")
DetachStopped = kinds.Conflict.row("guest.detach_stopped",
    "Guest {uuid} keeps interface {interface}: a newer order came.")
DiskJobStalled = kinds.Conflict.row("guest.disk_job_stalled",
    "The job on disk {disk} of guest {uuid} did not get on for {seconds:.0f} s, and was given up.",
    "Look at the storage on both sides of the copy (`virsh blockjob`).")
DiskJobStopped = kinds.Conflict.row("guest.disk_job_stopped",
    "The job on disk {disk} of guest {uuid} was given up: a newer order came.")
HalfBuilt = kinds.Conflict.row("guest.half_built",
    "Guest {uuid} on host {host} was only built in part; rebuild the server, or delete it.")
HasSuccessor = kinds.Conflict.row("guest.has_successor",
    "Guest {uuid} has another volume in the place of volume {volume} already.")
KeepsInterface = kinds.Conflict.row("guest.keeps_interface",
    "Guest {uuid} did not give up interface {interface} within {seconds:.0f} s: its system must be up, and able to "
    "remove devices while it runs.")
TooManyDisks = kinds.Forbidden.row("guest.too_many_disks",
    "Guest {uuid} would have {count} disks, local disks, volumes and a config drive together, and may have {most} "
    "([compute]max_disk_devices_to_attach of its host; 4 on the bus ide).",
    "Detach a volume that is not needed; or use an image with hw_disk_bus=scsi, or virtio, in place of ide.")
KeepsVolume = kinds.Conflict.row("guest.keeps_volume",
    "Guest {uuid} did not give up volume {volume} within {seconds:.0f} s: its system must be up, and able to remove "
    "disks while it runs.")
KeepsVolumeStopped = kinds.Conflict.row("guest.keeps_volume_stopped",
    "Guest {uuid} keeps volume {volume}: a newer order came.")
NoConsole = kinds.Conflict.row("guest.no_console", "Guest {uuid} has no console log.")
NoConsoleLog = kinds.Conflict.row("guest.no_console_log", "Guest {uuid} has no console log yet.")
NoDisks = kinds.Conflict.row("guest.no_disks", "The disks of guest {uuid} are not there: {names}.",
    "See [DEFAULT]instances_path on the host: is its file system mounted? Rebuild the server if the disks are "
    "lost.")
NoSharedDisks = kinds.HostRefused.row("guest.no_shared_disks",
    "The disks of guest {uuid} should be on storage that host {host} shares, and are not there.",
    "Mount the shared storage on the host, or evacuate without on_shared_storage.")
NoSuchConsole = kinds.Conflict.row("guest.no_such_console",
    "The guest of instance {uuid} was made without a {what} console. Stop and start it, which makes it anew.")
NoVolumeFile = kinds.HostRefused.row("guest.no_volume_file",
    "Volume {volume} of guest {uuid} is no file of this host, or has no file {file}.")
NotDefined = kinds.NotFound.row("guest.not_defined", "There is no guest {uuid} on this host.")
NotFound = kinds.NotFound.row("guest.not_found", "There is no guest {uuid} on host {host}.")
NotRunning = kinds.Conflict.row("guest.not_running", "Guest {uuid} does not run.")
PasswordKept = kinds.Conflict.row("guest.password_kept", "A password is kept already.",
    "Delete the kept one first: `nova clear-password SERVER`.")
TpmSecretLost = kinds.HostRefused.row("guest.tpm_secret_lost",
    "The secret of the TPM of guest {uuid} is not on this host (any more).",
    "Restore the host's state_path from a backup; without its secret the guest's TPM cannot be opened.")
UnknownName = kinds.NotFound.row("guest.unknown_name", "No live server is known by {name}.")
WrongPower = kinds.Conflict.row("guest.wrong_power", "Guest {uuid} is {state}.")

AgentFailed = kinds.Conflict.row("agent.failed", "The agent in guest {uuid} could not {task}: {reason}",
    "Look at qemu-guest-agent's log in the guest: the agent answered, and said no.")
AgentNone = kinds.Conflict.row("agent.none",
    "Guest {uuid} has no agent: its image must say hw_qemu_guest_agent=yes, and have qemu-guest-agent.")
AgentNotQuiet = kinds.Conflict.row("agent.not_quiet",
    "The file systems of guest {uuid} must be frozen and cannot be: {reason}",
    "Start qemu-guest-agent in the guest, or take os_require_quiesce from its image: the snapshot is then made "
    "without freezing.")
AgentSilent = kinds.Conflict.row("agent.silent",
    "The agent in guest {uuid} does not answer ({reason}). Is qemu-guest-agent installed and running there?")

DiskFilesystem = kinds.Invalid.row("disk.filesystem", "Disks are not formatted as {name} here, but as one of {known}.")
DiskUnsafe = kinds.HostRefused.row("disk.unsafe", "The file {name} is no disk that may be used: {reason}.",
    "Somebody put another file in the place of the guest's disk: look at it before anything else, and restore the "
    "disk from a snapshot.")
DiskWouldShrink = kinds.HostRefused.row("disk.would_shrink",
    "Disk {disk} of guest {uuid} would have to shrink from {old} to {new} GB.",
    "Choose a flavor whose disks are not smaller.")

ConfigDrivePath = kinds.Invalid.row("config_drive.path", "A config drive cannot hold a file named '{path}'.")
ConfigDriveTooBig = kinds.Invalid.row("config_drive.too_big",
    "The config drive would hold {bytes} bytes; {limit} are allowed.")

FakeInjected = kinds.Bug.row("fake.injected", "The fake driver was told to fail in {call}.")
