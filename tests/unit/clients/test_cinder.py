"""The client against a Cinder in small, over HTTP."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from keystoneauth1 import exceptions
from keystoneauth1 import session as ksession
from oslo_config import cfg

from nova import conf as nova_conf
from nova import context, errors
from nova.clients import cinder as client_module
from nova.clients import session
from nova.clients.cinder_caller import CinderCaller, CinderEndpoint
from nova.model.volumes import (
    NewVolume,
    NewVolumeSnapshot,
    VolumeEncryption,
    VolumeMetadataChange,
    VolumeQuery,
    VolumeUse,
)
from tests.fakes.cinder import OURS, SECRET, FakeCinder, Ours

DEMO = "d" * 32
CONNECTOR = {"host": "node1", "ip": "10.0.0.1", "initiator": "iqn.node1"}
SERVER, OTHER = "server-1", "server-2"


@pytest.fixture
def fake():
    with FakeCinder(tokens={"joe's": DEMO}) as cinder:
        yield cinder


@pytest.fixture
def ours():
    return session.Credentials(ksession.Session(), Ours())


@pytest.fixture
def client(fake):
    return fake.client()


def joe() -> Any:
    return context.entered(context.RequestContext(request_id="req-1", token="joe's", project_id=DEMO))


# -- the life of an attachment

def test_attachment_when_made_connected_completed_and_deleted_then_the_volume_follows(fake, client):
    volume = fake.add_volume()
    reserved = client.reserve(volume, SERVER)
    assert (reserved.volume_id, reserved.server_id, reserved.connection) == (volume, SERVER, None)
    assert fake.status(volume) == "reserved"
    connected = client.connect(reserved.id, CONNECTOR, "/dev/vdb")
    assert fake.status(volume) == "attaching"
    assert connected.connection.kind == "iscsi" and connected.connection.data["auth_password"] == SECRET
    assert not {"driver_volume_type", "attachment_id"} & connected.connection.data.keys()
    client.complete(reserved.id)
    assert client.get(volume).attachments == (VolumeUse(server_id=SERVER, attachment_id=reserved.id, device="/dev/vdb",
                                                        host="node1"),)
    assert client.get_attachment(reserved.id).connection == connected.connection
    assert [one.id for one in client.list_attachments(SERVER)] == [reserved.id]
    client.delete_attachment(reserved.id)
    assert fake.status(volume) == "available" and fake.unsettled() == {}


def test_attach_when_a_second_host_connects_then_the_volume_is_attaching_until_it_is_done(fake, client):
    volume = fake.add_volume()
    first = client.attach(volume, SERVER, CONNECTOR)
    client.complete(first.id)
    second = client.attach(volume, SERVER, {**CONNECTOR, "host": "node2"}, "/dev/vdb")
    assert second.connection is not None and fake.status(volume) == "attaching"
    client.delete_attachment(first.id)
    client.complete(second.id)
    assert fake.status(volume) == "in-use"
    assert {one["connector"]["host"] for one in fake.attachments_of(volume)} == {"node2"}


def test_detaching_when_begun_and_rolled_back_then_in_use_again(fake, client):
    volume = fake.add_volume()
    with pytest.raises(errors.volume.Refused, match="must be 'in-use'"):
        client.begin_detaching(volume)
    client.complete(client.reserve(volume, SERVER).id)
    client.begin_detaching(volume)
    assert fake.unsettled() == {volume: "detaching"}
    client.roll_detaching(volume)
    assert fake.status(volume) == "in-use"


def test_reserve_when_it_is_another_servers_then_refused_unless_it_is_of_many(fake, client):
    one, many = fake.add_volume(), fake.add_volume(multiattach=True)
    for volume in (one, many):
        client.complete(client.reserve(volume, SERVER).id)
    with pytest.raises(errors.volume.Refused, match="status must be available or downloading to reserve, but the"):
        client.reserve(one, OTHER)
    client.reserve(many, OTHER)
    assert len(client.list_attachments(OTHER, many)) == 1


# -- who asks

def test_call_when_a_user_asks_then_his_token_and_ours_are_sent(fake, client):
    volume = fake.add_volume(project=DEMO)
    with joe():
        attachment = client.attach(volume, SERVER, CONNECTOR, as_user=True)
        client.delete_attachment(attachment.id, as_user=True)
    sent = [(one["X-Auth-Token"], one["X-Service-Token"]) for one in fake.headers if "joe's" in one["X-Auth-Token"]]
    assert sent == [("joe's", "ours")] * 2


def test_call_when_we_ask_then_our_token_is_a_service_token_too(fake, client):
    volume = fake.add_volume(project=DEMO)
    client.delete_attachment(client.attach(volume, SERVER, CONNECTOR).id)
    assert {(one["X-Auth-Token"], one["X-Service-Token"]) for one in fake.headers} == {("ours", "ours")}


def test_call_when_the_users_token_is_missing_then_ours_is_not_used_for_it(fake, client):
    with pytest.raises(errors.Forbidden):
        client.get(fake.add_volume(), as_user=True)
    assert fake.asked("GET", "/volumes") == []


def test_delete_attachment_when_the_service_token_is_not_accepted_then_it_says_what_to_configure(fake, client):
    attachment = client.attach(fake.add_volume(), SERVER, CONNECTOR)
    fake.service_tokens = set()
    with pytest.raises(errors.volume.InUseByService, match="did not accept nova's service token") as raised:
        client.delete_attachment(attachment.id)
    assert "service_token_roles = service" in raised.value.cure and raised.value.status == 409
    fake.uses = lambda server, attachment: False
    client.delete_attachment(attachment.id)
    assert fake.attachments_of() == []


@pytest.mark.parametrize("as_user, error", [(True, errors.service.Forbidden), (False, errors.volume.Credentials)])
@pytest.mark.parametrize("status", [401, 403])
def test_call_when_it_is_forbidden_then_whose_fault_it_is_is_told(fake, client, status, as_user, error):
    fake.trouble("GET", "/limits", status, times=2)
    with joe(), pytest.raises(error, match="Not now"):
        client.limits(as_user=as_user)


@pytest.mark.parametrize("catalog, expected", [
    ("", ""), (f"/{OURS}", f"/{DEMO}")])
def test_address_when_the_catalog_names_our_project_then_a_users_call_names_his(fake, catalog, expected):
    own = Ours(fake.url + catalog)
    service = session.ServiceEndpoint("volume", "volumev3", region_name="r", interfaces=("publicURL",), retries=0,
                                      service_name="cinderv3")
    caller = CinderCaller(service, session.Credentials(ksession.Session(), own))
    volume = fake.add_volume(project=DEMO)
    with joe():
        client_module.Cinder(caller).encryption(volume, as_user=True)
    client_module.Cinder(caller).encryption(volume)
    assert fake.requests == [("GET", f"{expected}/volumes/{volume}/encryption"),
                             ("GET", f"{catalog}/volumes/{volume}/encryption")]
    assert own.asked_for == {"service_type": "volumev3", "service_name": "cinderv3", "interface": ["publicURL"],
                             "region_name": "r"}


@pytest.mark.parametrize("address, place", [
    ("http://c:8776/v3", CinderEndpoint("http://c:8776", False)),
    ("http://c/volume/v3/", CinderEndpoint("http://c/volume", False)),
    ("http://v3.c:8776/v3/%(project_id)s", CinderEndpoint("http://v3.c:8776", True))])
def test_address_when_of_version_3_then_taken_apart(ours, address, place):
    caller = CinderCaller(session.ServiceEndpoint("volume", "volumev3", (address,)), ours)
    assert caller._endpoint() == place


@pytest.mark.parametrize("address, error, why", [
    ("http://c:8776/v2/x", errors.volume.WrongAddress, "is not of version 3"),
    (None, errors.volume.NoService, "the catalog has no service of type volumev3")])
def test_address_when_it_cannot_be_used_then_it_says_what_to_configure(address, error, why):
    service = session.ServiceEndpoint("volume", "volumev3")
    caller = CinderCaller(service, session.Credentials(ksession.Session(), Ours(address)))
    with pytest.raises(error, match=why):
        client_module.Cinder(caller).limits()


def test_address_when_there_are_no_credentials_then_it_says_so():
    caller = CinderCaller(session.ServiceEndpoint("volume", "volumev3"), session.Credentials(ksession.Session(), None))
    with pytest.raises(errors.volume.NoService, match="neither credentials nor endpoint_template"):
        client_module.Cinder(caller).limits()


@pytest.mark.parametrize("which", ["get_endpoint", "get_project_id"])
def test_address_when_keystone_is_away_then_away(fake, monkeypatch, which):
    own = Ours(fake.url)

    def fail(session: Any, **wanted: Any) -> str:
        raise exceptions.ConnectFailure("keystone is away")
    monkeypatch.setattr(own, which, fail)
    caller = CinderCaller(session.ServiceEndpoint("volume", "volumev3", retries=1, retry_wait_s=0.0),
                          session.Credentials(ksession.Session(), own))
    with pytest.raises(errors.volume.Away, match="keystone is away"):
        client_module.Cinder(caller).limits()


# -- versions

@pytest.mark.parametrize("newest, asked", [((3, 71), "3.69"), ((3, 68), "3.48"), ((3, 47), "3.0")])
def test_get_when_the_service_is_older_then_the_best_version_it_has_is_asked_for(fake, client, newest, asked):
    fake.newest = newest
    volume = client.get(fake.add_volume(shared_targets=None))
    assert fake.headers[-1]["OpenStack-API-Version"] == f"volume {asked}"
    assert volume.shared_targets is {"3.69": None, "3.48": True, "3.0": False}[asked]


def test_attachments_when_the_service_is_too_old_then_it_says_which_version_is_needed(fake, client):
    fake.newest = (3, 43)
    with pytest.raises(errors.volume.TooOld, match=r"needs version 3\.44 .* has 3\.43"):
        client.reserve(fake.add_volume(), SERVER)
    fake.newest = (3, 67)
    with pytest.raises(errors.volume.TooOld, match=r"needs version 3\.44"):  # it is believed for some minutes
        client.reserve(fake.add_volume(), SERVER)


def test_versions_when_asked_often_then_read_once_and_after_an_upgrade_again(fake, ours):
    now = [0.0]
    caller = CinderCaller(session.ServiceEndpoint("volume", "volumev3", (fake.url,)), ours, clock=lambda: now[0])
    assert caller.newest() == caller.patient().newest() == (3, 71)
    assert len(fake.asked("GET", "/")) == 1
    fake.newest, now[0] = (3, 72), 600.0
    assert caller.newest() == (3, 72)


@pytest.mark.parametrize("body", [[], {"versions": []}, {"versions": [{"id": "v2.0", "version": "2.0"}]},
                                  {"versions": [{"id": "v3.0", "version": "new"}]}])
def test_versions_when_something_else_answers_then_away(fake, client, body):
    fake.instead = body,
    with pytest.raises(errors.volume.Away, match="not Cinder"):
        client.get(fake.add_volume())


# -- refusals and silence

@pytest.mark.parametrize("ask, error", [
    (lambda client: client.get("no/such"), errors.volume.NotFound),
    (lambda client: client.delete("none"), errors.volume.NotFound),
    (lambda client: client.begin_detaching("none"), errors.volume.NotFound),
    (lambda client: client.complete_migration("none", "new"), errors.volume.NotFound),
    (lambda client: client.encryption("none"), errors.volume.NotFound),
    (lambda client: client.reserve("none", SERVER), errors.volume.NotFound),
    (lambda client: client.create_snapshot(NewVolumeSnapshot(volume_id="none")), errors.volume.NotFound),
    (lambda client: client.create(NewVolume(size_gb=1, snapshot_id="none")), errors.volume.SnapshotNotFound),
    (lambda client: client.create(NewVolume(size_gb=1, volume_type="none")), errors.volume.TypeNotFound),
    (lambda client: client.get_snapshot("none"), errors.volume.SnapshotNotFound),
    (lambda client: client.delete_snapshot("none"), errors.volume.SnapshotNotFound),
    (lambda client: client.set_snapshot_status("none", "error"), errors.volume.SnapshotNotFound),
    (lambda client: client.get_attachment("none"), errors.volume.AttachmentNotFound),
    (lambda client: client.complete("none"), errors.volume.AttachmentNotFound),
    (lambda client: client.connect("none", CONNECTOR), errors.volume.AttachmentNotFound)])
def test_call_when_what_it_names_is_missing_then_the_error_names_it(fake, client, ask, error):
    with pytest.raises(error, match="no/such|none"):
        ask(client)


def test_delete_attachment_when_it_is_gone_then_nothing_is_said(client):
    client.delete_attachment("none")


def test_create_when_over_quota_then_cinders_words_are_kept(fake, client):
    fake.quotas = {"volumes": 0, "snapshots": 0}
    with pytest.raises(errors.volume.OverQuota, match=r"Maximum number of volumes allowed \(0\) exceeded") as raised:
        client.create(NewVolume(size_gb=1))
    assert raised.value.status == 403
    with pytest.raises(errors.volume.OverQuota, match="SnapshotLimitExceeded"):
        client.create_snapshot(NewVolumeSnapshot(volume_id=fake.add_volume()))


def test_conflict_when_cinder_says_one_then_its_words_are_kept(fake, client):
    volume = fake.add_volume()
    fake.trouble("DELETE", "/volumes", 409)
    with pytest.raises(errors.service.Conflict, match="Not now"):
        client.delete(volume)


@pytest.mark.parametrize("how", ["refused", "lost", 500, 503, 504])
def test_reads_when_nobody_answers_once_then_they_are_repeated_and_posts_are_not(fake, client, how):
    volume = fake.add_volume()
    fake.trouble("GET", "/volumes", how)
    assert client.get(volume).id == volume
    fake.trouble("POST", "/volumes", how)
    with pytest.raises(errors.volume.Away, match="Cinder"):
        client.create(NewVolume(size_gb=1))
    assert len(fake.asked("POST", "/volumes")) == 1


@pytest.mark.parametrize("how", ["lost", "refused", 500, 504])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_attachment_when_its_end_fails_four_times_then_the_fifth_does_it(fake, method, how):
    client = fake.client(retries=0)
    attachment = client.reserve(fake.add_volume(), SERVER)
    fake.trouble(method, "/attachments", how, times=4)
    if method == "PUT":
        assert client.connect(attachment.id, CONNECTOR).connection is not None
    else:
        client.delete_attachment(attachment.id)
        assert fake.attachments_of() == []
    fake.trouble(method, "/attachments", 500, times=5)
    with pytest.raises(errors.volume.Away, match="500 Not now"):
        client.connect(attachment.id, CONNECTOR) if method == "PUT" else client.delete_attachment(attachment.id)


def test_call_when_cinder_is_slow_then_given_up_in_time(fake):
    fake.trouble("GET", "/limits", "slow", seconds=1.0)
    client = fake.client(retries=0, read_timeout_s=0.1)
    begun = time.monotonic()
    with pytest.raises(errors.volume.Away, match="timeout"):
        client.limits()
    assert time.monotonic() - begun < 1.0


def test_call_when_nobody_waits_any_more_then_nothing_is_asked(fake, client):
    volume = fake.add_volume()
    with context.waited_for(0.0), pytest.raises(errors.volume.Away, match="no time is left"):
        client.create(NewVolume(size_gb=1))
    assert fake.asked("POST") == [] and client.get(volume)


def test_call_when_cinder_goes_and_comes_back_then_away_and_well(fake, client):
    volume = fake.add_volume()
    fake.go_away()
    with pytest.raises(errors.volume.Away, match="Cinder"):
        client.get(volume)
    fake.come_back()
    assert client.get(volume).id == volume


@pytest.mark.parametrize("body", [None, [], {}])
def test_call_when_something_else_answers_then_away(fake, client, body):
    client.get(fake.add_volume())  # its version is known
    fake.instead = body,
    for ask in (lambda: client.get("v"), lambda: client.list(VolumeQuery()), lambda: client.connect("a", CONNECTOR)):
        with pytest.raises(errors.volume.Away, match="not Cinder"):
            ask()


# -- lost answers of a reservation

def test_reserve_when_the_answer_is_lost_then_what_it_made_is_found(fake, client):
    volume = fake.add_volume()
    fake.trouble("POST", "/attachments", "lost")
    found = client.reserve(volume, SERVER)
    assert [one["id"] for one in fake.attachments_of(volume)] == [found.id]
    assert (found.volume_id, found.server_id) == (volume, SERVER)


@pytest.mark.parametrize("how", ["refused", 500])
def test_reserve_when_nothing_was_made_then_away_and_nothing_is_left(fake, client, how):
    volume = fake.add_volume()
    fake.trouble("POST", "/attachments", how)
    with pytest.raises(errors.volume.Away):
        client.reserve(volume, SERVER)
    assert fake.status(volume) == "available" and fake.attachments_of() == []


def test_reserve_when_the_answer_is_lost_then_older_attachments_of_both_are_not_taken_for_it(fake, client):
    volume = fake.add_volume()
    attached = client.attach(volume, SERVER, CONNECTOR)
    client.complete(attached.id)
    waiting = client.reserve(volume, SERVER)
    fake.trouble("POST", "/attachments", "refused")
    with pytest.raises(errors.volume.Away):
        client.reserve(volume, SERVER, known=(waiting.id,))
    assert client.find_reserved(volume, SERVER).id == waiting.id


def test_find_reserved_when_a_host_has_it_or_it_goes_meanwhile_then_none(fake, client):
    volume = fake.add_volume()
    attachment = client.attach(volume, SERVER, CONNECTOR)
    fake.store.attachments[attachment.id]["status"] = "reserved"  # as Cinder shows it for a moment
    assert client.find_reserved(volume, SERVER) is None
    fake.trouble("GET", f"/attachments/{attachment.id}", 404)
    assert client.find_reserved(volume, SERVER) is None


def test_reserve_when_cinder_is_away_altogether_then_away(fake, client):
    volume = fake.add_volume()
    client.get(volume)
    fake.trouble("", "/attachments", "refused", times=100)
    with pytest.raises(errors.volume.Away):
        client.reserve(volume, SERVER)


# -- volumes, snapshots, types

def test_create_when_of_an_image_then_as_asked_and_available_after_a_while(fake, client):
    now = [0.0]
    fake.clock, fake.takes_s = (lambda: now[0]), 10.0
    with joe():
        made = client.create(NewVolume(size_gb=2, name="n", description="d", image_id="i", volume_type="fast",
                                       availability_zone="az", metadata={"a": "b"}), as_user=True)
    assert (made.status, made.size_gb, made.name, made.description) == ("creating", 2, "n", "d")
    assert (made.bootable, made.availability_zone, dict(made.metadata)) == (True, "az", {"a": "b"})
    assert dict(made.image_metadata) == {"image_id": "i"} and made.created_at.tzinfo is None
    assert fake.store.volumes[made.id]["project"] == DEMO
    now[0] = 10.0
    assert client.get(made.id).status == "available"


def test_create_when_making_fails_then_error_and_it_can_be_deleted(fake, client):
    fake.fails_to_make = True
    made = client.create(NewVolume(size_gb=1))
    assert client.get(made.id).status == "error"
    client.delete(made.id)
    with pytest.raises(errors.volume.NotFound):
        client.get(made.id)


@pytest.mark.parametrize("query, expected", [
    (VolumeQuery(), [4, 3, 2, 1, 0]), (VolumeQuery(limit=3), [4, 3, 2]), (VolumeQuery(offset=1), [3, 2, 1, 0]),
    (VolumeQuery(limit=2, offset=2), [2, 1]), (VolumeQuery(limit=0), [])])
def test_lists_when_they_come_in_pages_then_as_asked_and_the_links_host_is_not_followed(fake, client, query, expected):
    volumes = [fake.add_volume(project=DEMO) for _ in range(5)]
    snapshots = [fake.add_snapshot(one) for one in volumes]
    fake.add_volume()
    fake.page = 2
    with joe():
        assert [volumes.index(one.id) for one in client.list(query, as_user=True)] == expected
        assert [snapshots.index(one.id) for one in client.list_snapshots(query, as_user=True)] == expected


def test_find_snapshots_then_those_of_exactly_that_name_are_found_whosever_they_are(fake, client):
    volumes = [fake.add_volume(project=DEMO), fake.add_volume()]
    named = [fake.add_snapshot(one, name="snapshot for image 7") for one in volumes]
    fake.add_snapshot(volumes[0], name="snapshot for image 70")
    fake.page = 1
    assert sorted(one.id for one in client.find_snapshots("snapshot for image 7")) == sorted(named)
    assert client.find_snapshots("snapshot for image 8") == ()


def test_find_snapshots_when_cinder_does_not_filter_then_others_are_left_out_all_the_same(fake, client):
    named, _other = (fake.add_snapshot(fake.add_volume(), name=name) for name in ("mine", "another's"))
    fake.filters_nothing = True
    assert [one.id for one in client.find_snapshots("mine")] == [named]


def test_snapshot_when_made_by_a_host_then_its_status_is_set(fake, client):
    volume = fake.add_volume(size=3)
    client.complete(client.reserve(volume, SERVER).id)
    with pytest.raises(errors.volume.Refused, match="must be available"):
        client.create_snapshot(NewVolumeSnapshot(volume_id=volume))
    fake.takes_s = 1000
    made = client.create_snapshot(NewVolumeSnapshot(volume_id=volume, name="s", description="d", force=True))
    assert (made.status, made.size_gb, made.volume_id, made.name, made.description, made.project_id) == (
        "creating", 3, volume, "s", "d", OURS)
    client.set_snapshot_status(made.id, "creating", "90%")
    assert client.get_snapshot(made.id).progress == "90%"
    client.set_snapshot_status(made.id, "error")
    client.delete_snapshot(made.id)
    assert fake.status(made.id) == "gone"


def test_limits_when_there_is_one_and_when_there_is_none(fake, client):
    fake.add_snapshot(fake.add_volume())
    assert (client.limits().snapshots_used, client.limits().snapshots_most) == (1, None)
    fake.quotas["snapshots"] = 4
    assert client.limits().snapshots_most == 4


def test_types_when_asked_then_names_by_id_and_by_name_of_all_pages(fake, client):
    fake.page, fake.store.types = 1, {"1": "fast", "2": "slow"}
    assert client.types() == {"1": "fast", "fast": "fast", "2": "slow", "slow": "slow"}


def test_encryption_when_there_is_some_and_when_there_is_none(fake, client):
    plain = fake.add_volume()
    locked = fake.add_volume(encryption={"encryption_key_id": "k", "control_location": "front-end", "cipher": "aes",
                                         "key_size": 256, "provider": "luks"})
    assert client.encryption(plain) is None
    assert client.encryption(locked) == VolumeEncryption(key_id="k", provider="luks", cipher="aes", key_size=256)


def test_reimage_when_reserved_then_downloading_and_reserved_again(fake, client):
    volume = fake.add_volume()
    client.reserve(volume, SERVER)
    with pytest.raises(errors.volume.Refused):
        client.reimage(volume, "image", reserved=False)
    with pytest.raises(errors.image.NotFound, match="none"):
        client.reimage(volume, "none")
    now = [0.0]
    fake.clock, fake.takes_s = (lambda: now[0]), 5.0
    client.reimage(volume, "image")
    assert client.get(volume).status == "downloading"
    now[0] = 5.0
    assert client.get(volume).status == "reserved"


@pytest.mark.parametrize("failed", [False, True])
def test_complete_migration_when_cinder_began_it_then_the_id_that_is_kept(fake, client, failed):
    old, new = fake.add_volume(migration_status="migrating"), fake.add_volume()
    assert client.complete_migration(old, new, failed) == (new if failed else old)
    with pytest.raises(errors.volume.NotFound, match="none"):
        client.complete_migration(old, "none")


# -- secrets

def test_connection_when_logged_shown_or_lost_then_its_secrets_are_nowhere(fake, client, caplog):
    caplog.set_level(logging.DEBUG)
    volume = fake.add_volume()
    attachment = client.reserve(volume, SERVER)
    shown = [repr(client.connect(attachment.id, CONNECTOR)), repr(client.get_attachment(attachment.id))]
    shown += [repr(client.attach(volume, SERVER, CONNECTOR)), repr(client.list_attachments(SERVER))]
    for trouble in ({"attachment": None}, {"connection_info": {"auth_password": SECRET}}, [SECRET], SECRET):
        fake.instead = trouble,
        for ask in (lambda: client.connect("a", CONNECTOR), lambda: client.get_attachment("a"),
                    lambda: client.attach(volume, SERVER, CONNECTOR)):
            with pytest.raises(errors.volume.Away) as raised:
                ask()
            shown.append(f"{raised.value} {raised.value.data} {raised.getrepr(style='value')}")
    assert SECRET not in caplog.text and SECRET not in "".join(shown)
    assert "keystoneauth" in caplog.text  # whose lines would have it


# -- configuration

def options(text, tmp_path):
    file = tmp_path / "nova.conf"
    file.write_text(text)
    conf = nova_conf.register(cfg.ConfigOpts())
    conf(["--config-file", str(file)], project="nova")
    return conf


def test_client_of_groups_when_configured_then_as_said(tmp_path):
    found = options("[cinder]\ncatalog_info = block-storage:cinder:internalURL\nhttp_retries = 5\ntimeout = 7\n"
                    "os_region_name = r\nendpoint_template = http://c:8776/v3/%(project_id)s/", tmp_path)
    service = client_module.of_groups(found.cinder, session.load(found, "cinder"))._caller.service
    assert (service.service_type, service.service_name, service.interfaces) == ("block-storage", "cinder",
                                                                                 ("internalURL",))
    assert (service.addresses, service.retries, service.region_name) == (("http://c:8776/v3/%(project_id)s",), 5, "r")
    assert (service.read_timeout_s, service.deadline_s) == (7.0, 10.5)


@pytest.mark.parametrize("text", ["volumev3", "volumev3:publicURL", "::publicURL", "volumev3::"])
def test_client_of_groups_when_catalog_info_is_not_of_three_parts_then_it_says_so(tmp_path, text):
    found = options(f"[cinder]\ncatalog_info = {text}", tmp_path)
    with pytest.raises(errors.config.CatalogInfo, match="TYPE:NAME:INTERFACE"):
        client_module.of_groups(found.cinder, session.load(found, "cinder"))


@pytest.mark.parametrize("debug, expected", [("true", True), ("false", False)])
def test_debug_when_on_then_each_call_is_logged_with_cinders_request_id(fake, tmp_path, caplog, debug, expected):
    found = options(f"[cinder]\nendpoint_template = {fake.url}\ndebug = {debug}", tmp_path)
    loggers = [logging.getLogger(name) for name in client_module.LOGGERS]
    try:
        client_module.of_groups(found.cinder, session.load(found, "cinder")).limits()
    finally:
        for logger in loggers:
            logger.setLevel(logging.NOTSET)
    assert ("GET /limits: 200 (req-1)" in caplog.text) is expected


# -- metadata

@pytest.mark.parametrize("kind", ["volume", "snapshot"])
def test_metadata_when_written_and_taken_out_then_the_rest_stays(fake, client, kind):
    volume = fake.add_volume(metadata={"old": "1"})
    thing = volume if kind == "volume" else fake.add_snapshot(volume, metadata={"old": "1"})
    get = client.get if kind == "volume" else client.get_snapshot
    client.change_metadata(VolumeMetadataChange(kind=kind, id=thing, items={"a/b?": "2", "c": "3"}))
    assert get(thing).metadata == {"old": "1", "a/b?": "2", "c": "3"}
    client.change_metadata(VolumeMetadataChange(kind=kind, id=thing, delete=("a/b?", "never there", "old")))
    assert get(thing).metadata == {"c": "3"}


@pytest.mark.parametrize(("kind", "error"), [("volume", "volume.not_found"), ("snapshot", "volume.snapshot_not_found")])
def test_metadata_when_the_thing_is_gone_then_the_error_names_it(fake, client, kind, error):
    with pytest.raises(errors.NotFound) as raised:
        client.change_metadata(VolumeMetadataChange(kind=kind, id="gone", items={"a": "1"}))
    assert raised.value.code == error and "gone" in raised.value.message


def test_metadata_when_it_is_too_long_then_cinders_no_is_passed_on(fake, client):
    with pytest.raises(errors.Invalid):
        client.change_metadata(VolumeMetadataChange(kind="volume", id=fake.add_volume(), items={"a": "b" * 256}))
