"""What our client expects of Cinder: asked of a real one, and of the one in small that other tests are run with."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from nova import context, errors
from nova.clients.cinder import Cinder
from nova.model.volumes import NewVolume, NewVolumeSnapshot, Volume, VolumeQuery, VolumeSnapshot

WAIT_S = 60.0


@dataclass
class Cloud:
    """``client`` has our credentials; ``user`` is a request of an ordinary user. ``set_quota``: of the user's project,
    by Cinder's words; -1: none."""

    client: Cinder
    user: context.RequestContext
    connector: dict[str, str]
    set_quota: Callable[[str, int], None]
    volumes: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)

    def server(self) -> str:
        self.servers.append(str(uuid.uuid4()))
        return self.servers[-1]

    def volume(self, size: int = 1, **members: str) -> str:
        """The user's; its id, when it is available."""
        with context.entered(self.user):
            made = self.client.create(NewVolume(size_gb=size, **members), as_user=True)  # type: ignore[arg-type]
        self.volumes.append(made.id)
        assert made.status == "creating"
        self.wait(made.id, "available")
        return made.id

    def snapshot(self, volume_id: str) -> str:
        with context.entered(self.user):
            made = self.client.create_snapshot(NewVolumeSnapshot(volume_id=volume_id, name="s"), as_user=True)
        self.snapshots.append(made.id)
        self._until(lambda: self.client.get_snapshot(made.id).status == "available")
        return made.id

    def wait(self, volume_id: str, status: str) -> Volume:
        self._until(lambda: self.client.get(volume_id).status in (status, "error"))
        found = self.client.get(volume_id)
        assert found.status == status
        return found

    def gone(self, ask: Callable[[], object]) -> None:
        """Until what is asked for is not found any more."""
        def away() -> bool:
            with contextlib.suppress(errors.NotFound):
                ask()
                return False
            return True
        self._until(away)

    @staticmethod
    def _until(done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def clean(self) -> None:
        """Attachments, snapshots, volumes: all that the case made."""
        for server in self.servers:
            for one in self.client.list_attachments(server):
                self.client.delete_attachment(one.id)
        for made, delete, get in ((self.snapshots, self.client.delete_snapshot, self.client.get_snapshot),
                                  (self.volumes, self.client.delete, self.client.get)):
            for key in made:
                with contextlib.suppress(errors.NotFound):
                    delete(key)
            for key in made:
                self.gone(lambda key=key, get=get: get(key))  # type: ignore[misc]


def newest_first(get: Callable[[str], Volume | VolumeSnapshot], ids: list[str]) -> list[str]:
    """As Cinder sorts them: it knows seconds, and those of one second go by their ids."""
    return sorted(ids, key=lambda one: (get(one).created_at, one), reverse=True)


class CinderCases:
    """A subclass has the fixture ``cloud``."""

    @pytest.fixture(autouse=True)
    def cleaned(self, cloud: Cloud) -> Iterator[None]:
        yield
        cloud.clean()

    def test_version_when_asked_then_all_that_we_use_is_there(self, cloud):
        assert cloud.client._caller.newest() >= (3, 69)

    def test_volume_when_made_then_as_asked_and_deleted_when_asked(self, cloud):
        made = cloud.client.get(cloud.volume(2, name="n", description="d"))
        assert (made.size_gb, made.name, made.description, made.bootable) == (2, "n", "d", False)
        assert made.volume_type in cloud.client.types() and made.created_at.tzinfo is None
        assert made.attachments == () and made.shared_targets in (False, None) and not made.multiattach
        cloud.client.delete(made.id)
        cloud.gone(lambda: cloud.client.get(made.id))

    def test_volume_when_it_cannot_be_made_then_it_says_why(self, cloud):
        nothing = str(uuid.uuid4())
        with context.entered(cloud.user):
            with pytest.raises(errors.volume.SnapshotNotFound):
                cloud.client.create(NewVolume(size_gb=1, snapshot_id=nothing), as_user=True)
            with pytest.raises(errors.volume.TypeNotFound):
                cloud.client.create(NewVolume(size_gb=1, volume_type=nothing), as_user=True)

    def test_missing_when_asked_for_then_not_found(self, cloud):
        nothing = str(uuid.uuid4())
        for ask in (cloud.client.get, cloud.client.delete, cloud.client.begin_detaching, cloud.client.encryption):
            with pytest.raises(errors.volume.NotFound):
                ask(nothing)
        with pytest.raises(errors.volume.NotFound):
            cloud.client.reserve(nothing, cloud.server())
        for ask in (cloud.client.get_snapshot, cloud.client.delete_snapshot):
            with pytest.raises(errors.volume.SnapshotNotFound):
                ask(nothing)
        for ask in (cloud.client.get_attachment, cloud.client.complete):
            with pytest.raises(errors.volume.AttachmentNotFound):
                ask(nothing)
        with pytest.raises(errors.volume.AttachmentNotFound):
            cloud.client.connect(nothing, cloud.connector)
        cloud.client.delete_attachment(nothing)

    def test_attachment_when_it_lives_then_the_volume_follows(self, cloud):
        volume, server = cloud.volume(), cloud.server()
        attachment = cloud.client.reserve(volume, server)
        assert (attachment.volume_id, attachment.server_id, attachment.status) == (volume, server, "reserved")
        assert attachment.connection is None and cloud.client.get(volume).status == "reserved"
        assert cloud.client.get_attachment(attachment.id).connection is None
        connected = cloud.client.connect(attachment.id, cloud.connector, "/dev/vdb")
        assert connected.id == attachment.id and connected.connection.kind and connected.connection.data
        assert cloud.client.get(volume).status == "attaching"
        again = cloud.client.get_attachment(attachment.id)
        assert (again.status, again.connection.kind) == ("attaching", connected.connection.kind)
        assert again.connection.data == connected.connection.data
        cloud.client.complete(attachment.id)
        found = cloud.client.get(volume)
        assert found.status == "in-use" and cloud.client.get_attachment(attachment.id).status == "attached"
        assert [(one.server_id, one.attachment_id, one.device, one.host) for one in found.attachments] == [
            (server, attachment.id, "/dev/vdb", cloud.connector["host"])]
        cloud.client.delete_attachment(attachment.id)
        assert cloud.client.get(volume).status == "available"
        cloud.client.delete_attachment(attachment.id)

    def test_attachment_when_it_is_only_reserved_then_given_back(self, cloud):
        volume = cloud.volume()
        cloud.client.delete_attachment(cloud.client.reserve(volume, cloud.server()).id)
        assert cloud.client.get(volume).status == "available"

    def test_attachment_when_no_host_has_it_then_it_can_be_completed(self, cloud):
        volume = cloud.volume()
        attachment = cloud.client.reserve(volume, cloud.server())
        cloud.client.complete(attachment.id)
        assert cloud.client.get(volume).status == "in-use"
        assert cloud.client.get_attachment(attachment.id).connection is None
        cloud.client.delete_attachment(attachment.id)
        assert cloud.client.get(volume).status == "available"

    def test_reserve_when_the_volume_is_anothers_then_refused_with_its_status(self, cloud):
        volume = cloud.volume()
        cloud.client.reserve(volume, cloud.server())
        with pytest.raises(errors.volume.Refused, match="reserved"):
            cloud.client.reserve(volume, cloud.server())
        assert cloud.client.list_attachments(cloud.servers[-1]) == ()

    def test_reserve_when_its_server_moves_then_in_use_until_the_old_one_goes(self, cloud):
        volume, server = cloud.volume(), cloud.server()
        old = cloud.client.reserve(volume, server)
        cloud.client.connect(old.id, cloud.connector)
        cloud.client.complete(old.id)
        new = cloud.client.reserve(volume, server)
        assert cloud.client.get(volume).status == "in-use"
        cloud.client.delete_attachment(old.id)
        assert cloud.client.get(volume).status == "reserved"
        cloud.client.connect(new.id, {**cloud.connector, "host": "elsewhere"})
        assert cloud.client.get(volume).status == "attaching"
        cloud.client.complete(new.id)
        assert cloud.client.get(volume).attachments[0].host == "elsewhere"

    def test_connect_when_another_host_has_the_volume_then_not_before_that_one_gave_it_back(self, cloud):
        volume, server = cloud.volume(), cloud.server()
        old = cloud.client.attach(volume, server, cloud.connector)
        cloud.client.complete(old.id)
        new = cloud.client.reserve(volume, server)
        with pytest.raises(errors.service.Conflict, match="duplicate connectors"):
            cloud.client.connect(new.id, {**cloud.connector, "host": "elsewhere"})
        cloud.client.delete_attachment(old.id)
        cloud.client.connect(new.id, {**cloud.connector, "host": "elsewhere"})

    def test_attach_when_its_server_moves_alive_then_attaching_until_one_of_both_is_left(self, cloud):
        volume, server = cloud.volume(), cloud.server()
        old = cloud.client.attach(volume, server, cloud.connector, "/dev/vdb")
        assert old.connection is not None
        cloud.client.complete(old.id)
        new = cloud.client.attach(volume, server, {**cloud.connector, "host": "elsewhere"}, "/dev/vdb")
        assert new.connection is not None and cloud.client.get(volume).status == "attaching"
        assert {one.id for one in cloud.client.list_attachments(server, volume)} == {old.id, new.id}
        cloud.client.delete_attachment(new.id)
        assert cloud.client.get(volume).status == "in-use"
        assert [one.attachment_id for one in cloud.client.get(volume).attachments] == [old.id]

    def test_find_reserved_when_one_is_left_then_that_one_alone(self, cloud):
        volume, server = cloud.volume(), cloud.server()
        assert cloud.client.find_reserved(volume, server) is None
        made = cloud.client.reserve(volume, server)
        assert cloud.client.find_reserved(volume, server).id == made.id
        assert cloud.client.find_reserved(volume, server, known=(made.id,)) is None
        cloud.client.connect(made.id, cloud.connector)
        assert cloud.client.find_reserved(volume, server) is None

    def test_detaching_when_begun_then_it_can_be_rolled_back(self, cloud):
        volume = cloud.volume()
        with pytest.raises(errors.volume.Refused, match="in-use"):
            cloud.client.begin_detaching(volume)
        attachment = cloud.client.reserve(volume, cloud.server())
        cloud.client.connect(attachment.id, cloud.connector)
        cloud.client.complete(attachment.id)
        cloud.client.begin_detaching(volume)
        assert cloud.client.get(volume).status == "detaching"
        with pytest.raises(errors.volume.Refused):
            cloud.client.begin_detaching(volume)
        cloud.client.roll_detaching(volume)
        assert cloud.client.get(volume).status == "in-use"
        cloud.client.begin_detaching(volume)
        cloud.client.delete_attachment(attachment.id)
        assert cloud.client.get(volume).status == "available"

    def test_volume_when_in_use_then_neither_deleted_nor_taken_a_snapshot_of(self, cloud):
        volume = cloud.volume()
        cloud.client.complete(cloud.client.reserve(volume, cloud.server()).id)
        with pytest.raises(errors.volume.Refused):
            cloud.client.delete(volume)
        with pytest.raises(errors.image.NotFound):
            cloud.client.reimage(volume, str(uuid.uuid4()))
        with pytest.raises(errors.volume.Refused):
            cloud.client.create_snapshot(NewVolumeSnapshot(volume_id=volume))
        assert cloud.client.get(volume).status == "in-use"

    def test_complete_migration_when_cinder_does_not_move_it_then_its_attachments_go(self, cloud):
        """So whoever calls it looks at migration_status first."""
        volume, other = cloud.volume(), cloud.volume()
        attachment = cloud.client.attach(volume, cloud.server(), cloud.connector)
        cloud.client.complete(attachment.id)
        with pytest.raises(errors.volume.NotFound):
            cloud.client.complete_migration(volume, str(uuid.uuid4()))
        assert cloud.client.complete_migration(volume, other) == other
        with pytest.raises(errors.volume.AttachmentNotFound):
            cloud.client.get_attachment(attachment.id)
        cloud.wait(volume, "available")

    def test_snapshot_when_made_then_shown_counted_and_a_volume_is_made_of_it(self, cloud):
        volume = cloud.volume()
        with context.entered(cloud.user):
            before = cloud.client.limits(as_user=True).snapshots_used
            snapshot = cloud.client.get_snapshot(cloud.snapshot(volume), as_user=True)
            assert cloud.client.limits(as_user=True).snapshots_used == before + 1
        assert (snapshot.volume_id, snapshot.size_gb, snapshot.name) == (volume, 1, "s")
        assert snapshot.project_id == cloud.user.project_id and snapshot.progress == "100%"
        assert cloud.client.get(cloud.volume(snapshot_id=snapshot.id)).snapshot_id == snapshot.id
        with pytest.raises(errors.volume.Refused):
            cloud.client.delete(volume)

    def test_snapshot_status_when_no_host_makes_it_then_refused(self, cloud):
        snapshot = cloud.snapshot(cloud.volume())
        with pytest.raises(errors.volume.Refused):
            cloud.client.set_snapshot_status(snapshot, "deleting", "90%")

    def test_lists_when_there_are_limits_and_offsets_then_the_newest_first(self, cloud):
        made = newest_first(cloud.client.get, [cloud.volume() for _ in range(3)])
        snapshots = newest_first(cloud.client.get_snapshot, [cloud.snapshot(one) for one in made])
        for query, wanted in ((VolumeQuery(), slice(0, 3)), (VolumeQuery(limit=2), slice(0, 2)),
                              (VolumeQuery(offset=1), slice(1, 3)), (VolumeQuery(limit=1, offset=1), slice(1, 2)),
                              (VolumeQuery(limit=0), slice(0, 0))):
            with context.entered(cloud.user):
                assert [one.id for one in cloud.client.list(query, as_user=True)] == made[wanted]
                assert [one.id for one in cloud.client.list_snapshots(query, as_user=True)] == snapshots[wanted]

    def test_projects_when_we_ask_then_all_volumes_and_a_list_has_our_own(self, cloud):
        volume = cloud.volume()
        assert cloud.client.get(volume).id == volume
        assert volume not in [one.id for one in cloud.client.list(VolumeQuery())]

    def test_encryption_when_there_is_none_then_none(self, cloud):
        assert cloud.client.encryption(cloud.volume()) is None

    def test_quota_when_it_is_used_up_then_cinders_words(self, cloud):
        volume = cloud.volume()
        cloud.set_quota("volumes", 1)
        cloud.set_quota("snapshots", 0)
        try:
            with context.entered(cloud.user):
                with pytest.raises(errors.volume.OverQuota, match="Maximum number of volumes allowed \\(1\\) exceeded"):
                    cloud.client.create(NewVolume(size_gb=1), as_user=True)
                assert cloud.client.limits(as_user=True).snapshots_most == 0
                with pytest.raises(errors.volume.OverQuota, match="Maximum number of snapshots allowed \\(0\\)"):
                    cloud.client.create_snapshot(NewVolumeSnapshot(volume_id=volume), as_user=True)
        finally:
            cloud.set_quota("volumes", -1)
            cloud.set_quota("snapshots", -1)
        with context.entered(cloud.user):
            assert cloud.client.limits(as_user=True).snapshots_most is None
