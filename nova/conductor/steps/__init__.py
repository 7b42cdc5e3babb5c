"""The steps that several stories share, by what they touch: places and addresses (placement), guests, images, moves."""

from nova.conductor.steps.guests import BuildGuests, StartGuests, StopGuests, StopIfThere
from nova.conductor.steps.images import DropImages, HoldImage, TakeSnapshots, UploadSnapshots
from nova.conductor.steps.placement import (
    BindNetworks,
    ClaimResources,
    FenceLedger,
    ReleaseResources,
    SelectHosts,
    TakeNextHost,
    UnbindNetworks,
)

__all__ = ["BindNetworks", "BuildGuests", "ClaimResources", "DropImages", "FenceLedger", "HoldImage",
           "ReleaseResources", "SelectHosts", "StartGuests", "StopGuests", "StopIfThere", "TakeNextHost",
           "TakeSnapshots", "UnbindNetworks", "UploadSnapshots"]
