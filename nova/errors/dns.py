"""Errors about DNS names."""

from __future__ import annotations

from nova.errors import config, kinds

Away = kinds.Unavailable.row("dns.away", "The DNS driver {driver} does not answer: {reason}")
BadEntry = kinds.Invalid.row("dns.bad_entry",
    "A DNS entry of type {type} cannot have the address {address}: the types are A and AAAA.")
BadName = kinds.Invalid.row("dns.bad_name", "'{name}' is not a valid DNS name.")
BadType = kinds.Invalid.row("dns.bad_type", "This DNS driver does not support entries of type {type}.")
DomainExists = kinds.Conflict.row("dns.domain_exists", "The DNS domain {domain} already exists.")
EntryExists = kinds.Conflict.row("dns.entry_exists", "The DNS entry {name} already exists in domain {domain}.")
Ldap = kinds.Unavailable.row("dns.ldap", "The LDAP server at {url} refused {what}: {reason}")
NoDriver = config.Wrong.row("dns.no_driver", "[DEFAULT]{option} cannot be used: {reason}.")
NoEntries = kinds.NotFound.row("dns.no_entries", "DNS entries not found.")
NoSuchDomain = kinds.NotFound.row("dns.no_such_domain", "The DNS domain {domain} could not be found.")
NoSuchEntry = kinds.NotFound.row("dns.no_such_entry", "The DNS entry {name} could not be found in domain {domain}.")
NotYourDomain = kinds.Forbidden.row("dns.not_your_domain",
    "Names in the private domain {domain} belong to servers and cannot be changed.")
NotYourName = kinds.Forbidden.row("dns.not_your_name",
    "{address} is not a floating address of your project: its name in the domain {domain} cannot be changed.")
WrongOwner = kinds.Invalid.row("dns.wrong_owner", "A {scope} domain can have {may} but not {may_not}.")
