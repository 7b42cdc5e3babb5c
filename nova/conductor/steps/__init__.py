"""Steps that several workflows share, by subject: placement and addresses, guests, images, volumes, moves."""

from nova.conductor.steps.cells import PlaceInCell
from nova.conductor.steps.guests import BuildGuests, StartGuests, StopGuests, StopIfThere
from nova.conductor.steps.images import DropImages, HoldImage, TakeSnapshots, UploadSnapshots
from nova.conductor.steps.placement import (
    BindNetworks,
    ClaimResources,
    FenceLedger,
    ReleaseResources,
    SelectHosts,
    SelectNextHost,
    UnbindNetworks,
)
from nova.conductor.steps.volumes import (
    AwaitVolumes,
    ConnectAtDestination,
    ConnectVolumes,
    DropVolumes,
    MoveVolumes,
    ReserveVolumes,
)

__all__ = ["AwaitVolumes", "ConnectAtDestination", "ConnectVolumes", "DropVolumes", "MoveVolumes", "ReserveVolumes",
           "BindNetworks", "BuildGuests", "ClaimResources", "DropImages", "FenceLedger", "HoldImage",
           "PlaceInCell", "ReleaseResources", "SelectHosts", "StartGuests", "StopGuests", "StopIfThere",
           "SelectNextHost", "TakeSnapshots", "UnbindNetworks", "UploadSnapshots"]
