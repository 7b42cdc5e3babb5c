"""The steps workflows are made of, by what they touch: where (placement), networks, guests, and the ledger."""

from nova.conductor.steps.guests import BuildGuests, DestroyGuests, RebootGuests, StartGuests, StopGuests
from nova.conductor.steps.networks import BindNetworks, UnbindNetworks
from nova.conductor.steps.placement import (
    ClaimResources,
    FenceLedger,
    HostsExhausted,
    ReleaseResources,
    SelectHosts,
    TakeNextHost,
)

__all__ = ["BindNetworks", "BuildGuests", "ClaimResources", "DestroyGuests", "FenceLedger", "HostsExhausted",
           "RebootGuests", "ReleaseResources", "SelectHosts", "StartGuests", "StopGuests", "TakeNextHost",
           "UnbindNetworks"]
