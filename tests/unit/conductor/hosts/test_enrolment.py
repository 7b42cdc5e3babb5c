"""Hosts that are let in, that bring their secrets, change them, and are shut out."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.conductor.hosts.enrolment import EnrolledKeys, encrypt_clear_secrets
from nova.db.host import enrolments
from nova.db.models.cell import enrolments as table
from nova.model.host.services import ContractVersion, Heartbeat, Registration, ServiceQuery
from nova.model.security.secret_wrap import MARK, SecretWrap, new_key
from nova.rpc import host_secret
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret
from nova.rpc.proofs import Proofs
from tests.fakes.small_cloud import WRAP, SmallCloud, node_id


class Host:
    """A host's daemons, with their folder."""

    def __init__(self, cloud: SmallCloud, name: str, folder: Path) -> None:
        self.cloud, self.name, self.folder = cloud, name, folder
        folder.mkdir(exist_ok=True)
        self.secret = HostSecret(folder)
        self.conductor = cloud.bus.client(ConductorHostRPC, name, proofs=Proofs(self.secret))

    def take(self, token: str) -> None:
        path = self.folder / host_secret.TOKEN
        path.touch(0o600)
        path.write_text(token)

    def register(self, binary: str = "nova-compute", **fields: Any) -> Any:
        said = {"topic": binary.removeprefix("nova-"),
                **({"host_id": node_id(self.name)} if binary == "nova-compute" else {}), **fields}
        return self.secret.introduce(lambda one: self.conductor.register(self.name, one),
                                     Registration(host=self.name, binary=binary, **said),
                                     lambda fresh: self.conductor.change_secret(self.name, fresh))

    def speaks(self) -> bool:
        return self.conductor.may_proceed(self.name, ()) == ()


@pytest.fixture
def keys(cloud: SmallCloud) -> EnrolledKeys:
    made = EnrolledKeys(cloud.cell, WRAP)
    cloud.bus.serve(ConductorHostRPC, cloud.hosts, proofs=Proofs(made))
    return made


@pytest.fixture
def new(cloud: SmallCloud, keys: EnrolledKeys, tmp_path: Path) -> Host:
    """Enrolled, with its token, and not yet started."""
    host = Host(cloud, "new", tmp_path / "new")
    host.take(cloud.control.enroll_host("new", ("nova-compute",)))
    return host


def refused(host: Host, code: str) -> None:
    with pytest.raises(errors.NovaError) as error:
        host.speaks()
    assert error.value.code == code


# -- letting in

def test_host_when_nobody_enrolled_it_then_nothing_is_believed(cloud: SmallCloud, keys: EnrolledKeys,
                                                               tmp_path: Path) -> None:
    orphan = Host(cloud, "stranger", tmp_path / "s")
    for say in (orphan.register, orphan.speaks):
        with pytest.raises(errors.Unavailable, match="nova-manage host enroll stranger"):
            say()
    orphan.take("0" * 64)
    with pytest.raises(errors.Unavailable, match="not enrolled"):
        orphan.register()
    assert cloud.control.list_services(ServiceQuery(host="stranger")) == ()


def test_token_when_used_then_good_for_that_host_and_never_again(cloud: SmallCloud, new: Host, tmp_path: Path) -> None:
    token = host_secret.peek(new.folder, host_secret.TOKEN)
    thief = Host(cloud, "a", tmp_path / "a")
    thief.take(token)
    with pytest.raises(errors.NovaError):
        thief.register()
    assert new.register().service_id and new.speaks()
    second = Host(cloud, "new", tmp_path / "second")
    second.take(token)
    with pytest.raises(errors.Forbidden, match="nova-manage host readmit new"):
        second.register()
    assert new.speaks()


def test_token_when_a_day_is_over_then_good_for_nothing(cloud: SmallCloud, new: Host) -> None:
    cloud.write("cell", table.update().where(table.c.host == "new").values(
        token_until=datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(seconds=1)))
    with pytest.raises(errors.Unavailable, match="not enrolled"):
        new.register()
    [listed] = [one for one in cloud.control.list_enrolled_hosts() if one.host == "new"]
    assert listed.joined_at is None and not listed.waits


def test_host_when_enrolled_again_then_its_secret_is_good_until_the_token_is_used(
        cloud: SmallCloud, new: Host, tmp_path: Path) -> None:
    new.register()
    token = cloud.control.enroll_host("new", ("nova-compute",))
    assert new.speaks()
    anew = Host(cloud, "new", tmp_path / "installed anew")
    anew.take(token)
    anew.register()
    assert anew.speaks()
    refused(new, errors.daemon.RpcNotProven.code)  # who had the disk that was thrown away is nobody now


@pytest.mark.parametrize("binary", ["nova-network", "nova-metadata"])
def test_registration_when_the_host_was_not_enrolled_for_it_then_refused(cloud: SmallCloud, new: Host,
                                                                         binary: str) -> None:
    new.register()
    with pytest.raises(errors.Forbidden, match=f"enrolled to run nova-compute, not {binary}"):
        new.register(binary)
    cloud.control.enroll_host("new", ("nova-compute", binary))
    assert new.register(binary).service_id


@pytest.mark.parametrize("host, runs", [("b", ("nova-conductor",)), ("", ("nova-compute",)), ("b", ("x",)),
                                        ("a b", ("nova-compute",)), ("a/b", ("nova-compute",)),
                                        ("x" * 201, ("nova-compute",))])
def test_enroll_when_it_makes_no_sense_then_refused(cloud: SmallCloud, host: str, runs: tuple[str, ...]) -> None:
    with pytest.raises((errors.Forbidden, errors.Invalid)):
        cloud.control.enroll_host(host, runs)
    assert host not in {one.host for one in cloud.control.list_enrolled_hosts()} - {"b"}


def test_tokens_and_secrets_are_in_no_log(cloud: SmallCloud, new: Host, caplog: pytest.LogCaptureFixture) -> None:
    token = host_secret.peek(new.folder, host_secret.TOKEN)
    with caplog.at_level(logging.DEBUG):
        new.register()
        new.secret.change(lambda fresh: new.conductor.change_secret("new", fresh))
    for secret in (token, *new.secret("new")):
        assert secret not in caplog.text
    assert "host new registered its signing key" in caplog.text


# -- another secret

def test_secret_when_changed_then_both_are_good_for_an_hour(cloud: SmallCloud, new: Host, keys: EnrolledKeys) -> None:
    new.register()
    before = new.secret("new")[0]
    new.secret.change(lambda fresh: new.conductor.change_secret("new", fresh))
    assert new.secret("new")[0] != before and new.speaks()
    old = cloud.bus.client(ConductorHostRPC, "new", proofs=Proofs(lambda host, introducing=False: (before,)))
    assert old.may_proceed("new", ()) == ()
    cloud.write("cell", table.update().values(former_until=datetime.datetime(2000, 1, 1), version=table.c.version + 1))
    keys.hosts_if_changed()
    with pytest.raises(errors.Forbidden):
        old.may_proceed("new", ())
    assert new.speaks()


@pytest.mark.parametrize("secret", ["", "short", "7" * 65])
def test_secret_when_it_is_none_then_refused(cloud: SmallCloud, new: Host, secret: str) -> None:
    new.register()
    with pytest.raises(errors.Invalid):
        new.conductor.change_secret("new", secret)
    assert new.speaks()


# -- shutting out

def test_host_when_expelled_then_refused_within_two_seconds_and_its_servers_can_leave(
        cloud: SmallCloud, new: Host, keys: EnrolledKeys) -> None:
    new.register()
    keys.hosts_if_changed()
    assert new.speaks()
    cloud.control.expel_host("new")
    assert keys.hosts_if_changed()  # which conductors do each two seconds
    refused(new, errors.daemon.RpcNotEnrolled.code)
    with pytest.raises(errors.Unavailable):
        new.register()
    with pytest.raises(errors.Unavailable):
        new.conductor.heartbeat("new", Heartbeat(host="new", binary="nova-compute"))
    [service] = cloud.control.list_services(ServiceQuery(host="new"))
    assert service.forced_down and not service.up
    assert list(keys("new")) == [] and enrolled(cloud, "new").expelled_at


def test_host_when_let_in_again_after_it_was_expelled_then_its_old_secret_is_no_good(
        cloud: SmallCloud, new: Host, keys: EnrolledKeys, tmp_path: Path) -> None:
    new.register()
    cloud.control.expel_host("new")
    token = cloud.control.enroll_host("new", ("nova-compute",))
    keys.hosts_if_changed()
    refused(new, errors.daemon.RpcNotEnrolled.code)
    clean = Host(cloud, "new", tmp_path / "clean")
    clean.take(token)
    clean.register()
    assert clean.speaks() and not enrolled(cloud, "new").expelled_at
    assert not cloud.control.list_services(ServiceQuery(host="new"))[0].forced_down


def test_expel_when_the_host_is_unknown_then_not_found(cloud: SmallCloud) -> None:
    with pytest.raises(errors.NotFound, match="never enrolled"):
        cloud.control.expel_host("nobody")


def enrolled(cloud: SmallCloud, host: str) -> Any:
    [found] = [one for one in cloud.control.list_enrolled_hosts() if one.host == host]
    return found


# -- as the database keeps them

def kept(cloud: SmallCloud, host: str) -> Any:
    return cloud.rows("cell", table.select().where(table.c.host == host))[0]


def in_clear(cloud: SmallCloud, host: str, secret: str) -> None:
    """As the release before kept it."""
    cloud.write("cell", table.update().where(table.c.host == host).values(secret=secret, version=table.c.version + 1))


def conductor_of(cloud: SmallCloud, version: str) -> None:
    cloud.daemons.register(Registration(host="ctl9", binary="nova-conductor", topic="conductor", contracts=(
        ContractVersion(name="ConductorRPC", version=version),)))


def test_tokens_and_secrets_are_in_no_row(cloud: SmallCloud, new: Host) -> None:
    token = host_secret.peek(new.folder, host_secret.TOKEN)
    assert token not in str(kept(cloud, "new")) and kept(cloud, "new").token.startswith(MARK)
    new.register()
    new.secret.change(lambda fresh: new.conductor.change_secret("new", fresh))
    row = kept(cloud, "new")
    assert row.secret.startswith(MARK) and row.former.startswith(MARK)
    assert not any(secret in str(row) for secret in new.secret("new"))


def test_secret_when_moved_to_another_hosts_row_then_it_proves_nothing(
        cloud: SmallCloud, new: Host, keys: EnrolledKeys, caplog: pytest.LogCaptureFixture) -> None:
    new.register()
    [secret, *_] = list(keys("new"))
    in_clear(cloud, "a", kept(cloud, "new").secret)
    keys.hosts_if_changed()
    assert list(keys("a")) == [] == list(keys("a")) and list(keys("new")) == [secret]
    said = [record.getMessage() for record in caplog.records if "host_secret_key" in record.getMessage()]
    assert len(said) == 1 and "secret of a" in said[0] and "nova-manage host enroll" in said[0]
    assert not enrolled(cloud, "a").readable and enrolled(cloud, "new").readable


def test_host_when_the_key_of_its_secret_is_lost_then_it_comes_back_by_a_new_token(
        cloud: SmallCloud, new: Host, keys: EnrolledKeys) -> None:
    new.register()
    in_clear(cloud, "new", SecretWrap((new_key(),)).wrapped("new", "1" * 64))
    keys.hosts_if_changed()
    refused(new, errors.daemon.RpcNotEnrolled.code)
    new.take(cloud.control.enroll_host("new", ("nova-compute",)))
    new.register()
    assert new.speaks() and enrolled(cloud, "new").readable


def test_secret_in_clear_when_an_older_conductor_is_alive_then_it_stays_for_it(cloud: SmallCloud,
                                                                               keys: EnrolledKeys) -> None:
    in_clear(cloud, "a", "1" * 64)
    conductor_of(cloud, "1.4")
    encrypt_clear_secrets(cloud.deps)
    assert kept(cloud, "a").secret == "1" * 64 and list(keys("a")) == ["1" * 64]
    conductor_of(cloud, "1.5")
    for _twice in range(2):
        encrypt_clear_secrets(cloud.deps)
        assert kept(cloud, "a").secret.startswith(MARK) and list(keys("a")) == ["1" * 64]


def test_wrapping_when_it_died_half_way_then_the_next_one_goes_on(cloud: SmallCloud, keys: EnrolledKeys) -> None:
    for host in ("a", "b"):
        in_clear(cloud, host, "1" * 64)
    cloud.cell.transact(lambda tx: enrolments.rewrap(tx, "a", WRAP))
    before = kept(cloud, "a").secret
    encrypt_clear_secrets(cloud.deps)
    assert kept(cloud, "a").secret == before and kept(cloud, "b").secret.startswith(MARK)
    assert list(keys("a")) == list(keys("b")) == ["1" * 64]


# -- what conductors remember

def test_keys_are_read_once_and_again_when_they_do_not_fit(cloud: SmallCloud, keys: EnrolledKeys) -> None:
    cloud.cell.transact(lambda tx: enrolments.keep_secret(tx, "a", "1" * 64, WRAP, keep_former=False))
    assert list(keys("a")) == ["1" * 64]
    cloud.cell.transact(lambda tx: enrolments.keep_secret(tx, "a", "2" * 64, WRAP, keep_former=True))
    remembered = keys("a")
    assert next(remembered) == "1" * 64  # no statement so far
    assert list(remembered) == ["2" * 64]
    assert list(keys("a")) == ["2" * 64, "1" * 64] and list(keys("nobody")) == []


def test_hosts_when_one_is_enrolled_or_expelled_then_they_are_said_once(cloud: SmallCloud) -> None:
    keys = EnrolledKeys(cloud.cell, WRAP)
    assert keys.hosts_if_changed() == ("a", "b", "net")
    assert keys.hosts_if_changed() is None
    cloud.enroll("new")
    assert keys.hosts_if_changed() == ("a", "b", "net", "new")
    cloud.control.expel_host("a")
    assert keys.hosts_if_changed() == ("b", "net", "new")
    assert keys.hosts_if_changed() is None


def test_hosts_when_the_database_fails_between_then_they_are_said_the_next_time(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = EnrolledKeys(cloud.cell, WRAP)
    with monkeypatch.context() as patch:
        patch.setattr(enrolments, "names", lambda tx: (_ for _ in ()).throw(errors.Unavailable("away")))
        with pytest.raises(errors.Unavailable):
            keys.hosts_if_changed()
    assert keys.hosts_if_changed() == ("a", "b", "net")


# -- where its consoles are

def test_console_addresses_when_the_host_says_them_first_then_it_cannot_say_otherwise(cloud: SmallCloud, new: Host
                                                                                       ) -> None:
    new.register(addresses=("10.0.0.5",))
    new.register(addresses=("10.0.0.6",))
    assert enrolled(cloud, "new").addresses == ("10.0.0.5",)
    cloud.control.enroll_host("new", ("nova-compute",), ("10.0.0.7", "10.0.0.8"))
    new.register(addresses=("10.0.0.6",))
    assert enrolled(cloud, "new").addresses == ("10.0.0.7", "10.0.0.8")
