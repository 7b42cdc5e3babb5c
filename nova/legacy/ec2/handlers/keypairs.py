"""Actions on key pairs: describe, create, import, delete."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from nova import concurrency, errors, failures
from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, absent, unsupported
from nova.legacy.ec2.handlers.run_instances import TagSpecification
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.xml import Tree
from nova.model.ec2 import KEY_PAIR, ec2_id
from nova.model.server.keypairs import Keypair, KeypairQuery, NewKeypair
from nova.web import keys

RULES = "os_compute_api:os-keypairs"
LONGEST_NAME = 255

FILTERS: lists.FilterPaths = {"key-name": "keyName", "fingerprint": "keyFingerprint", "key-pair-id": "keyPairId"}


class DescribeKeyPairs(Ec2Listing, frozen=True, kw_only=True):
    key_name: tuple[str, ...] = ()
    key_pair_id: tuple[str, ...] = ()
    include_public_key: bool = False


def describe_key_pairs(req: Ec2Request, args: DescribeKeyPairs) -> Tree:
    """List the user's key pairs.

    Raises InvalidKeyPair.NotFound if a name or id is unknown; for old clients, only if all are unknown.
    """
    found: Sequence[Keypair] = req.conductor.list_keypairs(KeypairQuery(user_id=req.context.user_id or ""))
    hidden = "" if req.context.is_admin else req.options.vpn_key_suffix
    shown = [_described(req, one, args.include_public_key) for one in found
             if not hidden or not one.name.endswith(hidden)]
    if args.key_name or args.key_pair_id:
        asked = {*args.key_name, *args.key_pair_id}
        chosen = [one for one in shown if {one["keyName"], one.get("keyPairId")} & asked]
        known = {name for one in chosen for name in (one["keyName"], one.get("keyPairId"))}
        unknown = [name for name in (*args.key_name, *args.key_pair_id) if name not in known]
        if unknown and (not req.is_old or not chosen):
            raise absent(KEY_PAIR, unknown[0])
        shown = chosen
    test = lists.tester(args.filter, FILTERS)
    return {"keySet": [one for one in shown if test(one)]}


def _keypair(req: Ec2Request, one: Keypair) -> dict[str, object]:
    """Return the view of a key pair for CreateKeyPair and ImportKeyPair."""
    shown: dict[str, object] = {"keyName": one.name, "keyFingerprint": one.fingerprint}
    return shown if req.is_old else shown | {"keyPairId": _id(one)}


def _described(req: Ec2Request, one: Keypair, with_public_key: bool) -> dict[str, object]:
    shown = _keypair(req, one)
    return shown if req.is_old else shown | {
        "keyType": _type(one), "createTime": one.created_at,
        "publicKey": one.public_key if with_public_key else None}


def _id(one: Keypair) -> str:
    return ec2_id("key", one.id)


def _type(one: Keypair) -> str:
    return "ed25519" if one.public_key.startswith("ssh-ed25519") else "rsa"


class CreateKeyPair(Ec2Arguments, frozen=True, kw_only=True):
    key_name: str
    key_type: str = "rsa"
    key_format: str = "pem"
    tag_specification: tuple[TagSpecification, ...] = ()


def create_key_pair(req: Ec2Request, args: CreateKeyPair) -> Tree:
    """Create a key pair. The private key is only in the response; it is not stored.

    Raises InvalidKeyPair.Duplicate or Format, ResourceLimitExceeded.
    """
    _check(req, args.key_name, args.tag_specification)
    if args.key_type != "rsa" or args.key_format != "pem":
        raise unsupported("KeyType must be rsa and KeyFormat must be pem. Import keys of other types.")
    req.begin()
    made = concurrency.run_in_thread(keys.make, keys.SSH, req.context.user_id or "")
    kept = _keep(req, args.key_name, made.public_key, made.fingerprint, generated=True)
    return {**_keypair(req, kept), "keyMaterial": made.private_key}


class ImportKeyPair(Ec2Arguments, frozen=True, kw_only=True):
    key_name: str
    public_key_material: bytes
    tag_specification: tuple[TagSpecification, ...] = ()


def import_key_pair(req: Ec2Request, args: ImportKeyPair) -> Tree:
    """Import a public key.

    Raises InvalidKeyPair.Duplicate, InvalidKeyPair.Format if it is not an OpenSSH public key, ResourceLimitExceeded.
    """
    _check(req, args.key_name, args.tag_specification)
    with failures.replaced(UnicodeDecodeError, lambda _: Ec2Error("InvalidKeyPair.Format",
            "PublicKeyMaterial is not an OpenSSH public key.")):
        public_key = args.public_key_material.decode().strip()
    fingerprint = keys.fingerprint(keys.SSH, public_key)
    return _keypair(req, _keep(req, args.key_name, public_key, fingerprint, generated=False))


def _check(req: Ec2Request, name: str, tags: Sequence[TagSpecification]) -> None:
    if any(one.tag for one in tags):
        raise unsupported("TagSpecification: this cloud does not support tags of key pairs.")
    if not re.fullmatch(rf"[\x20-\x7e]{{1,{LONGEST_NAME}}}", name) or not name.strip():
        raise Ec2Error("InvalidKeyPair.Format", f"KeyName must have 1 to {LONGEST_NAME} printable ASCII characters.")


def _keep(req: Ec2Request, name: str, public_key: str, fingerprint: str, generated: bool) -> Keypair:
    kept: Keypair = req.conductor.create_keypair(NewKeypair(
        name=name.strip(), user_id=req.context.user_id or "", type=keys.SSH, fingerprint=fingerprint,
        public_key=public_key, generated=generated))
    return kept


class DeleteKeyPair(Ec2Arguments, frozen=True, kw_only=True):
    key_name: str | None = None
    key_pair_id: str | None = None


def delete_key_pair(req: Ec2Request, args: DeleteKeyPair) -> Tree:
    """Delete a key pair. Succeeds also if the key pair does not exist."""
    name = args.key_name
    if name is None:
        if args.key_pair_id is None:
            raise Ec2Error("MissingParameter", "The request must contain the parameter KeyName")
        found: Sequence[Keypair] = req.conductor.list_keypairs(KeypairQuery(user_id=req.context.user_id or ""))
        name = next((one.name for one in found if _id(one) == args.key_pair_id), None)
    if name is not None:
        with contextlib.suppress(errors.NotFound):
            req.conductor.delete_keypair(req.context.user_id or "", name)
    return {"return": True}
