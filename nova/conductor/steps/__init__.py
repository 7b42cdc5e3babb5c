"""The steps workflows are made of, by what they touch: where (placement), networks, guests, and the ledger."""

from nova.conductor.steps.guests import (
    BuildGuests,
    CrashGuests,
    DestroyGuests,
    PauseGuests,
    RebootGuests,
    RescueGuests,
    ResumeGuests,
    SetPasswords,
    StartGuests,
    StopGuests,
    SuspendGuests,
    UnpauseGuests,
    UnrescueGuests,
)
from nova.conductor.steps.images import DropImages, HoldImage, RotateBackups, TakeSnapshots, UploadSnapshots
from nova.conductor.steps.networks import BindNetworks, UnbindNetworks
from nova.conductor.steps.placement import (
    ClaimResources,
    FenceLedger,
    HostsExhausted,
    ReleaseResources,
    SelectHosts,
    TakeNextHost,
)
from nova.conductor.steps.rebuild import CountAsRebuilt, RebuildGuests, RebuildScheduled
from nova.conductor.steps.shelving import (
    CheckShelvedImage,
    DropShelvedImage,
    OffloadGuests,
    PlaceOnHost,
    ReleaseHost,
    RespawnGuests,
    SetAsideGuests,
    StopIfThere,
)

__all__ = ["BindNetworks", "BuildGuests", "CheckShelvedImage", "ClaimResources", "CountAsRebuilt", "CrashGuests",
           "DestroyGuests", "DropImages", "DropShelvedImage", "FenceLedger", "HoldImage", "HostsExhausted",
           "OffloadGuests", "PauseGuests", "PlaceOnHost", "RebootGuests", "RebuildGuests", "RebuildScheduled",
           "ReleaseHost", "ReleaseResources", "RescueGuests", "RespawnGuests", "ResumeGuests", "RotateBackups",
           "SelectHosts", "SetAsideGuests", "SetPasswords", "StartGuests", "StopGuests", "StopIfThere",
           "SuspendGuests", "TakeNextHost", "TakeSnapshots", "UnbindNetworks", "UnpauseGuests", "UnrescueGuests",
           "UploadSnapshots"]
