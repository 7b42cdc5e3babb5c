"""Encrypted volumes' keys on their way into orders: with whose token, and that nobody keeps them."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as tables
from nova.model.volumes import BACK_END, LUKS, AttachVolume, BlockDevice, VolumeConnection, VolumeEncryption
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.actions.test_volumes import attach, detach, listed, moved

KEY_ID, PASSPHRASE = "5f6c6f6e-1e0f-4d8e-8b3e-2f0a4b9a5c11", "0badc0de" * 8


def encrypted(cloud: SmallCloud, **encryption: Any) -> str:
    volume = cloud.volume_service.add(encrypted=True)
    cloud.volume_service.encryptions[volume] = VolumeEncryption(key_id=KEY_ID, **{"provider": "luks", **encryption})
    return volume


def told(cloud: SmallCloud, kind: str = "attach_volume") -> VolumeConnection:
    """What the last order of that kind said of how its only volume is reached."""
    [host] = [one for one in cloud.computes.values() if any(done == kind for done, _ in one.orders)]
    order = [order for done, order in host.orders if done == kind][-1]
    disks = [order.disk] if kind == "attach_volume" else (getattr(order, "build", None) or order).volumes
    [connection] = [one.connection for one in disks]
    return connection


def test_attach_when_the_user_may_read_the_key_then_the_host_gets_it_by_the_users_token(cloud):
    cloud.volume_keys.users[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud)
    device = attach(cloud, uuid, volume)
    assert device.encrypted and cloud.volume_keys.asked == [(KEY_ID, True)]
    connection = told(cloud)
    assert (connection.encryption, connection.passphrase) == (LUKS, PASSPHRASE)
    detach(cloud, uuid, volume)
    assert cloud.volume_service.status(volume) == "available"


def test_passphrase_when_it_went_to_a_host_then_it_is_in_no_table_and_no_log(cloud, caplog):
    cloud.volume_keys.users[KEY_ID] = cloud.volume_keys.ours[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud)
    with caplog.at_level("DEBUG"):
        attach(cloud, uuid, volume)
        moved(cloud, uuid, "live")
    for table in tables.metadata.sorted_tables:
        assert PASSPHRASE not in repr(cloud.rows("cell", sa.select(table)))
    assert PASSPHRASE not in caplog.text


def test_attach_when_only_we_may_read_the_key_then_it_is_read_as_ourselves(cloud):
    cloud.volume_keys.ours[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud)
    attach(cloud, uuid, volume)
    assert cloud.volume_keys.asked == [(KEY_ID, True), (KEY_ID, False)]
    assert told(cloud).passphrase == PASSPHRASE


def test_order_when_nobody_may_read_the_key_then_the_host_is_told_that_it_is_encrypted_and_decides(cloud, caplog):
    [uuid], volume = cloud.active(1), encrypted(cloud)
    attach(cloud, uuid, volume)
    connection = told(cloud)
    assert (connection.encryption, connection.passphrase) == (LUKS, "")
    assert f"cannot read the passphrase of volume {volume}" in caplog.text


def test_start_when_the_server_has_an_encrypted_volume_then_the_order_brings_the_key_anew(cloud):
    cloud.volume_keys.users[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud)
    attach(cloud, uuid, volume)
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    cloud.volume_keys.ours[KEY_ID] = PASSPHRASE
    cloud.order(uuid, "start")
    cloud.ended(uuid)
    assert cloud.volume_keys.asked[-1] == (KEY_ID, False)
    assert told(cloud, "start").passphrase == PASSPHRASE


@pytest.mark.parametrize("provider", ["luks2", "plain", "CryptsetupEncryptor", ""])
def test_attach_when_no_host_could_read_the_volume_then_it_is_refused_at_once_and_stays_free(cloud, provider):
    [uuid], volume = cloud.active(1), encrypted(cloud, provider=provider)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match=provider or "none given"):
        cloud.control.attach_volume(uuid, AttachVolume(volume_id=volume), True)
    assert cloud.volume_service.status(volume) == "available" and listed(cloud, uuid) == []


@pytest.mark.parametrize("provider", ["LuksEncryptor", "nova.volume.encryptors.luks.LuksEncryptor",
                                      "os_brick.encryptors.luks.LuksEncryptor"])
def test_attach_when_the_type_has_an_old_name_of_luks_then_it_is_luks(cloud, provider):
    cloud.volume_keys.users[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud, provider=provider)
    attach(cloud, uuid, volume)
    assert told(cloud).encryption == LUKS


@pytest.mark.parametrize("encryption", [{"control_location": BACK_END, "provider": "plain"}, None])
def test_attach_when_the_back_end_deciphers_by_itself_then_no_key_is_asked_for(cloud, encryption):
    [uuid], volume = cloud.active(1), encrypted(cloud, **(encryption or {}))
    if encryption is None:
        del cloud.volume_service.encryptions[volume]
    attach(cloud, uuid, volume)
    assert told(cloud).encryption == BACK_END and cloud.volume_keys.asked == []


def test_boot_when_an_encrypted_volume_comes_with_it_then_the_builder_gets_its_key_by_the_users_token(cloud):
    cloud.volume_keys.users[KEY_ID] = PASSPHRASE
    volume = encrypted(cloud)
    with context.entered(DEMO):
        [uuid] = cloud.boot(1, volumes=(BlockDevice(source="volume", source_id=volume),))
    cloud.ended(uuid)
    assert set(cloud.volume_keys.asked) == {(KEY_ID, True)}
    assert told(cloud, "build").passphrase == PASSPHRASE


def test_boot_when_no_host_could_read_its_volume_then_it_is_refused_before_anything_is_made(cloud):
    volume = encrypted(cloud, provider="luks2")
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="luks2"):
        cloud.boot(1, volumes=(BlockDevice(source="volume", source_id=volume),))
    assert cloud.volume_service.status(volume) == "available"


def test_move_when_the_server_has_an_encrypted_volume_then_its_destination_gets_the_key_beforehand(cloud):
    cloud.volume_keys.users[KEY_ID] = cloud.volume_keys.ours[KEY_ID] = PASSPHRASE
    [uuid], volume = cloud.active(1), encrypted(cloud)
    attach(cloud, uuid, volume)
    moved(cloud, uuid, "live")
    assert told(cloud, "prepare").passphrase == PASSPHRASE


@pytest.mark.parametrize(("kind", "shared"), [("iscsi", True), ("iscsi", None), ("fake", True)])
def test_order_when_the_volumes_targets_may_be_shared_then_the_host_learns_whose_turn_it_has_to_wait_for(
        cloud, kind, shared):
    cloud.volume_service.kind = kind
    [uuid] = cloud.active(1)
    volume = cloud.volume_service.add(shared_targets=shared, service_uuid="cinder-volume-1")
    attach(cloud, uuid, volume)
    found = told(cloud)
    assert (found.shared_targets, found.service_uuid) == ((shared, "cinder-volume-1") if kind == "iscsi"
                                                          else (False, ""))
