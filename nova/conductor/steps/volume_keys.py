"""What a host must know of a volume beside how its back end is reached: its passphrase, and with whom it takes turns.

It is asked for when an order is written, and goes into that alone. A request that brings an encrypted volume to a
server reads the key with its user's token, and hands it to its operation, in memory. Whatever is done later (a start
after the host was rebooted, a move, an operation that another conductor takes over) asks with our own credentials. A
host that has the passphrase still needs none: a key that cannot be had is the host's to miss.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.model.volumes import BACK_END, LUKS, BlockDevice, VolumeConnection, VolumeEncryption

LOG = logging.getLogger(__name__)

#: Names of the one format that hosts read; the long ones are of volume types that are as old as they look.
LUKS_PROVIDERS = frozenset({"luks", "LuksEncryptor", "nova.volume.encryptors.luks.LuksEncryptor",
                            "os_brick.encryptors.luks.LuksEncryptor"})
#: Kinds whose volumes may share targets, with which hosts take turns.
WITH_TARGETS = frozenset({"iscsi", "iser", "fibre_channel", "nvmeof", "lightos"})
PASSPHRASES = "volume passphrases"  # of an operation's secrets: by volume


def whole(deps: Deps, op: Op, device: BlockDevice, connection: VolumeConnection) -> VolumeConnection:
    """The connection with all that the host must know. volume.Encrypted: no host can read it; errors of the client."""
    volume_id, more = device.volume_id, {}
    if connection.kind in WITH_TARGETS:
        volume = deps.volumes.get(volume_id)
        more = {"shared_targets": volume.shared_targets, "service_uuid": volume.service_uuid or ""}
    if device.encrypted or connection.data.get("encrypted") is True:
        more |= _encryption(deps, op, volume_id)
    return msgspec.structs.replace(connection, **more) if more else connection


def check(deps: Deps, volume_id: str) -> None:
    """volume.Encrypted: no host could read it. The user asks; errors of the client."""
    _format(volume_id, deps.volumes.encryption(volume_id, as_user=True))


def of_user(deps: Deps, devices: Iterable[BlockDevice]) -> Mapping[str, Mapping[str, str]]:
    """Secrets of an operation: passphrases, read with the token of the request that is served. What cannot be read is
    not in them: it is tried again when an order needs it. volume.Encrypted: no host could read it."""
    found = {}
    for device in devices:
        if device.encrypted and device.volume_id not in found:
            try:
                encryption = deps.volumes.encryption(device.volume_id, as_user=True)
                if encryption is not None and _format(device.volume_id, encryption) == LUKS:
                    found[device.volume_id] = deps.volume_keys.passphrase(encryption.key_id, as_user=True)
            except errors.volume.Encrypted:
                raise
            except errors.NovaError as error:
                LOG.info("the user's token does not read the key of volume %s: %s", device.volume_id, error)
    return {PASSPHRASES: found} if found else {}


def _encryption(deps: Deps, op: Op, volume_id: str) -> dict[str, str]:
    passphrases: Mapping[str, str] = op.secrets.get(PASSPHRASES, {})
    if volume_id in passphrases:
        return {"encryption": LUKS, "passphrase": passphrases[volume_id]}
    encryption = deps.volumes.encryption(volume_id)
    if encryption is None or _format(volume_id, encryption) == BACK_END:
        return {"encryption": BACK_END}
    try:
        return {"encryption": LUKS, "passphrase": deps.volume_keys.passphrase(encryption.key_id)}
    except errors.volume.NoKey as error:
        LOG.warning("no passphrase of volume %s goes to the host, which may have it still: %s", volume_id, error,
                    extra={"server": op.uuid})
        return {"encryption": LUKS}


def _format(volume_id: str, encryption: VolumeEncryption | None) -> str:
    if encryption is None or encryption.control_location == BACK_END:
        return BACK_END
    if encryption.provider not in LUKS_PROVIDERS:
        raise errors.volume.Encrypted(volume=volume_id, provider=encryption.provider or "nothing that Cinder names")
    return LUKS
