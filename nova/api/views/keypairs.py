"""Keypairs as the API shows them. Each is wrapped as ``{"keypair": {...}}``, also in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova.api import versions
from nova.api.request import Request
from nova.api.view import Out, View, micros_of
from nova.model.server.keypairs import Keypair

BRIEF = View(
    Out("fingerprint", "fingerprint"),
    Out("name", "name"),
    Out("public_key", "public_key"),
    Out("type", "type", since="2.2"),
    of=Keypair,
)

CREATED = View(*BRIEF.fields, Out("user_id", "user_id"), of=Keypair)

FULL = View(
    *CREATED.fields,
    Out("id", "id"),
    Out("created_at", micros_of("created_at")),
    Out("updated_at", lambda keypair, req: None, type="null"),  # keypairs never change, and deleted ones are removed
    Out("deleted", lambda keypair, req: False, type="boolean"),
    Out("deleted_at", lambda keypair, req: None, type="null"),
    of=Keypair,
)


#: The response of a create: with the private key, if it was generated here.
MADE = View(*CREATED.fields, Out("private_key", "", optional=True, type="string"), of=Keypair)


def page(keypairs: Sequence[Keypair], req: Request) -> dict[str, object]:
    """Return ``keypairs``, and from 2.35 the link to the next page if this one is full; its marker is a name."""
    listed: dict[str, Any] = {"keypairs": [{"keypair": shown} for shown in BRIEF.all(keypairs, req)]}
    if versions.keypairs_are_paged(req.version):
        listed.update(req.next_links("keypairs_links", keypairs, keypairs[-1].name if keypairs else None))
    return listed
