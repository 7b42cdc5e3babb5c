"""Keypairs: a user's public keys."""

from __future__ import annotations

from nova.model.base import Time, Value


class Keypair(Value):
    id: int = 0
    name: str
    user_id: str
    type: str = "ssh"  # ssh or x509
    fingerprint: str
    public_key: str
    created_at: Time | None = None


class NewKeypair(Value):
    """A key to keep. The conductor never sees a private key: where one is made, the API makes it."""

    name: str
    user_id: str
    type: str = "ssh"
    fingerprint: str
    public_key: str
    generated: bool = False  # made by the API for its user; False: the user's own


class KeypairQuery(Value):
    user_id: str
    limit: int | None = None
    marker: str | None = None  # a keypair's name
