"""The steps that several stories share, by what they touch: where (placement), networks, guests, images, the ledger."""

from nova.conductor.steps.guests import BuildGuests, StartGuests, StopGuests, StopIfThere
from nova.conductor.steps.images import DropImages, HoldImage, TakeSnapshots, UploadSnapshots
from nova.conductor.steps.networks import BindNetworks, UnbindNetworks
from nova.conductor.steps.placement import ClaimResources, FenceLedger, ReleaseResources, SelectHosts, TakeNextHost

__all__ = ["BindNetworks", "BuildGuests", "ClaimResources", "DropImages", "FenceLedger", "HoldImage", "HostsExhausted",
           "ReleaseResources", "SelectHosts", "StartGuests", "StopGuests", "StopIfThere", "TakeNextHost",
           "TakeSnapshots", "UnbindNetworks", "UploadSnapshots"]
