"""Errors about floating addresses and their pools."""

from __future__ import annotations

from nova.errors import kinds

AutoAssigned = kinds.Forbidden.row("floating.auto_assigned",
    "Floating IP {address} was auto-assigned and cannot be disassociated")
BadId = kinds.Invalid.row("floating.bad_id", "Invalid ID received {id}.")
BadRange = kinds.Invalid.row("floating.bad_range", "Invalid input received: {range}: {reason}")
Exists = kinds.Conflict.row("floating.exists", "Floating IP {address} already exists.")
NoFixedAddress = kinds.Invalid.row("floating.no_fixed_address",
    "Server {server} has no fixed address to associate with.")
NoFixedAddresses = kinds.Invalid.row("floating.no_fixed_addresses", "No fixed IPs associated to instance {server}.")
NoPool = kinds.NotFound.row("floating.no_pool", "Floating IP pool {pool} could not be found.")
NoSuchAddress = kinds.NotFound.row("floating.no_such_address", "Floating IP not found for address {address}.")
NoSuchPool = kinds.NotFound.row("floating.no_such_pool", "Floating IP pool {pool} not found.")
NoneOnHost = kinds.NotFound.row("floating.none_on_host", "Floating IP not found for host {host}.")
NotAssociated = kinds.Conflict.row("floating.not_associated",
    "Floating IP {address} is not associated with instance {server}.")
NotFound = kinds.NotFound.row("floating.not_found", "Floating IP not found for ID {id}")
NotItsFixedAddress = kinds.Invalid.row("floating.not_its_fixed_address",
    "Instance {server} has no fixed IP address {address}.")
NotItsOwn = kinds.Conflict.row("floating.not_its_own",
    "Floating address {address} is not associated with server {server}.")
NotYours = kinds.Forbidden.row("floating.not_yours", "Floating IP {address} does not belong to your project.")
OtherFixedAddress = kinds.Invalid.row("floating.other_fixed_address",
    "Server {server} does not have the fixed address {address}.")
OverQuota = kinds.OverQuota.row("floating.over_quota", "Maximum number of floating IPs exceeded")
PoolEmpty = kinds.NotFound.row("floating.pool_empty", "No more floating IPs in pool {pool}.")
SeveralPools = kinds.Invalid.row("floating.several_pools", "Multiple floating IP pools are named {pool}.")
