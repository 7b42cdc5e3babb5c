"""Keypairs: users' public keys. Admins may act on those of another user (``user_id``)."""

from __future__ import annotations

from nova import concurrency
from nova.api import versions
from nova.api.handlers.users import sane_user
from nova.api.request import Request
from nova.api.view import LINKS, answers
from nova.api.views import keypairs as views
from nova.model.server.keypairs import KeypairQuery, NewKeypair
from nova.web import keys


def _user(req: Request, asked: str | None) -> str:
    """Return the user whose keypairs are requested, after the policy check."""
    user_id = sane_user(asked) or req.context.user_id or ""
    req.authorize(user_id=user_id)
    return user_id


@answers({"keypairs": [{"keypair": views.BRIEF}], "keypairs_links?": LINKS})
def index(req: Request) -> dict[str, object]:
    """List a user's keypairs by name: the caller's, or those of ``user_id`` if policy allows. Paged from 2.35. Raises
    api.BadUser, api.PageMarkerNotFound (400)."""
    user_id = _user(req, req.query.one("user_id"))
    limit = req.limit() if versions.keypairs_are_paged(req.version) else None
    found = req.conductor.list_keypairs(KeypairQuery(user_id=user_id, limit=limit, marker=req.query.one("marker")))
    return views.page(found, req)


@answers({"keypair": views.FULL})
def show(req: Request, keypair_name: str) -> dict[str, object]:
    """Show one keypair with its public key; the private key is never stored. Raises server.KeypairNotFound (404)."""
    user_id = _user(req, req.query.one("user_id"))
    return {"keypair": views.FULL(req.conductor.get_keypair(user_id, keypair_name), req)}


@answers({"keypair": views.MADE})
def create(req: Request) -> dict[str, object]:
    """Import the given public key, or generate a key pair: only then the response has the private key."""
    asked = req.body["keypair"]
    user_id = _user(req, asked.get("user_id"))
    kind = asked.get("type", keys.SSH)
    made = None if "public_key" in asked else concurrency.run_in_thread(keys.make, kind, user_id)
    public_key = made.public_key if made else asked["public_key"]
    fingerprint = made.fingerprint if made else keys.fingerprint(kind, public_key)
    keypair = req.conductor.create_keypair(NewKeypair(
        name=asked["name"].strip(), user_id=user_id, type=kind, fingerprint=fingerprint, public_key=public_key,
        generated=made is not None))
    shown = views.CREATED(keypair, req)
    if made:
        shown["private_key"] = made.private_key
    return {"keypair": shown}


def delete(req: Request, keypair_name: str) -> None:
    """Delete a keypair. Servers keep the public key that they were created with. Raises server.KeypairNotFound
    (404)."""
    user_id = _user(req, req.query.one("user_id"))
    req.conductor.delete_keypair(user_id, keypair_name)
