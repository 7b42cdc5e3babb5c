"""Facts that a host needs about a volume in addition to its connection: the passphrase, and shared targets, which need
a lock.

They are read when an order is written, and only go into that order. A request that brings an encrypted volume to a
server reads the key with its user's token, and passes it to its operation in memory. Later actions use nova's own
credentials: a start after a reboot of the host, a move, an operation that another conductor takes over. A host that
still has the passphrase needs none, so a missing key is only an error on the host.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.model.volumes import BACK_END, LUKS, BlockDevice, VolumeConnection, VolumeEncryption

LOG = logging.getLogger(__name__)

#: Names of the only format that hosts read; the long ones are from old volume types.
LUKS_PROVIDERS = frozenset({"luks", "LuksEncryptor", "nova.volume.encryptors.luks.LuksEncryptor",
                            "os_brick.encryptors.luks.LuksEncryptor"})
#: Kinds of connections whose volumes may share targets, which hosts lock.
WITH_TARGETS = frozenset({"iscsi", "iser", "fibre_channel", "nvmeof", "lightos"})
PASSPHRASES = "volume passphrases"  # in an operation's secrets: passphrases by volume


def whole(deps: Deps, op: Op, device: BlockDevice, connection: VolumeConnection) -> VolumeConnection:
    """Return the connection with all data that the host needs. Raises volume.Encrypted if no host can read the volume,
    and the errors of the volume client."""
    volume_id, more = device.volume_id, {}
    if connection.kind in WITH_TARGETS:
        volume = deps.volumes.get(volume_id)
        more = {"shared_targets": volume.shared_targets, "service_uuid": volume.service_uuid or ""}
    if device.encrypted or connection.data.get("encrypted") is True:
        more |= _encryption(deps, op, volume_id)
    return msgspec.structs.replace(connection, **more) if more else connection


def check(deps: Deps, volume_id: str) -> None:
    """Raise volume.Encrypted if no host can read the volume, as the user sees it. Raises the errors of the volume
    client too."""
    _format(volume_id, deps.volumes.encryption(volume_id, as_user=True))


def of_user(deps: Deps, devices: Iterable[BlockDevice]) -> Mapping[str, Mapping[str, str]]:
    """Return an operation's secrets: the passphrases of encrypted volumes, read with the requesting user's token.

    An unreadable passphrase is left out and read again when an order needs it. Raises volume.Encrypted if no host can
    read the volume.
    """
    found = {}
    for device in devices:
        if device.encrypted and device.volume_id not in found:
            with failures.best_effort(LOG, "the user's token cannot read the key of volume %s: %s", device.volume_id,
                    but=errors.volume.Encrypted, level=logging.INFO):
                encryption = deps.volumes.encryption(device.volume_id, as_user=True)
                if encryption is not None and _format(device.volume_id, encryption) == LUKS:
                    found[device.volume_id] = deps.volume_keys.passphrase(encryption.key_id, as_user=True)
    return {PASSPHRASES: found} if found else {}


def _encryption(deps: Deps, op: Op, volume_id: str) -> dict[str, str]:
    passphrases: Mapping[str, str] = op.secrets.get(PASSPHRASES, {})
    if volume_id in passphrases:
        return {"encryption": LUKS, "passphrase": passphrases[volume_id]}
    encryption = deps.volumes.encryption(volume_id)
    if encryption is None or _format(volume_id, encryption) == BACK_END:
        return {"encryption": BACK_END}
    with failures.best_effort(LOG, "cannot read the passphrase of volume %s; the host may still have it: %s", volume_id,
            on=errors.volume.NoKey, extra={"server": op.uuid}):
        return {"encryption": LUKS, "passphrase": deps.volume_keys.passphrase(encryption.key_id)}
    return {"encryption": LUKS}


def _format(volume_id: str, encryption: VolumeEncryption | None) -> str:
    if encryption is None or encryption.control_location == BACK_END:
        return BACK_END
    if encryption.provider not in LUKS_PROVIDERS:
        raise errors.volume.Encrypted(volume=volume_id, provider=encryption.provider or "none given by Cinder")
    return LUKS
