"""Upstream mode: a host that nobody enrolled brings a secret, and is believed by it from then on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.host_service import HostService
from nova.conductor.hosts.enrolment import EnrolledKeys
from nova.db.host import enrolments, security
from nova.db.models.cell import enrolments as enrolments_table
from nova.model.host.services import Heartbeat, Registration
from nova.model.security.security_modes import SecurityMode
from nova.rpc import host_secret
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret
from nova.rpc.proofs import FIRST_CONTACT, Proofs
from tests.fakes.small_cloud import WRAP, SmallCloud


class Machine:
    """One that calls itself ``name``, with a folder of its own."""

    def __init__(self, cloud: SmallCloud, name: str, folder: Path, enrols_itself: bool = True) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(exist_ok=True)
        self.secret = HostSecret(folder, enrols_itself)
        self.conductor = cloud.bus.client(ConductorHostRPC, name, proofs=Proofs(self.secret))

    def register(self, binary: str = "nova-compute") -> Any:
        return self.secret.introduce(
            lambda said: self.conductor.register(self.name, said),
            Registration(host=self.name, binary=binary, topic=binary.removeprefix("nova-")),
            lambda fresh: self.conductor.change_secret(self.name, fresh))

    def speaks(self) -> bool:
        return self.conductor.may_proceed(self.name, ()) == ()


@pytest.fixture
def keys(cloud: SmallCloud) -> EnrolledKeys:
    """Of a conductor in upstream mode, which serves hosts."""
    cloud.cell.transact(lambda tx: tx.execute(sa.delete(enrolments_table)))
    cloud.cell.transact(lambda tx: security.record_first(tx, SecurityMode.UPSTREAM))
    made = EnrolledKeys(cloud.cell, WRAP, shared=True)
    cloud.bus.serve(ConductorHostRPC, HostService(cloud.deps, cloud.daemons, shared=True), proofs=Proofs(made))
    return made


@pytest.fixture
def host(cloud: SmallCloud, keys: EnrolledKeys, tmp_path: Path) -> Machine:
    made = Machine(cloud, "new", tmp_path / "new")
    made.register()
    return made


def test_host_when_nobody_knows_it_then_it_is_let_in_and_speaks_by_its_own_secret(
        cloud: SmallCloud, host: Machine) -> None:
    assert host.register().mode == "upstream" and host.speaks()
    with cloud.cell.reading() as tx:
        found = enrolments.keys(tx, "new")
        assert found.known and not found.isolated and enrolments.runs(tx, "new") == ("nova-compute",)
        assert WRAP.opened("new", found.secret) == host_secret.peek(host.folder) != found.secret


def test_host_when_it_runs_another_daemon_then_that_is_let_in_by_the_same_secret(
        cloud: SmallCloud, host: Machine) -> None:
    host.register("nova-network")
    with cloud.cell.reading() as tx:
        assert enrolments.runs(tx, "new") == ("nova-compute", "nova-network")
    with pytest.raises(errors.NovaError, match="nova-conductor"):
        host.register("nova-conductor")


def test_second_machine_when_it_claims_the_name_then_it_is_refused_and_the_first_goes_on(
        cloud: SmallCloud, host: Machine, tmp_path: Path) -> None:
    second = Machine(cloud, "new", tmp_path / "second")
    with pytest.raises(errors.Forbidden, match="nova-manage host readmit new"):
        second.register()
    with pytest.raises(errors.Forbidden):
        second.speaks()
    assert host.speaks()


def test_machines_when_they_come_at_once_in_one_name_then_one_has_it(
        cloud: SmallCloud, keys: EnrolledKeys, tmp_path: Path) -> None:
    machines = [Machine(cloud, "new", tmp_path / f"m{number}") for number in range(6)]

    def come(machine: Machine) -> bool:
        with context.entered(context.internal()):
            try:
                machine.register()
            except errors.Forbidden:
                return False
            return True
    with ThreadPoolExecutor(6) as pool:
        let_in = [machine for machine, ok in zip(machines, pool.map(come, machines), strict=True) if ok]
    assert len(let_in) == 1 and let_in[0].speaks()


def test_daemons_of_a_host_when_they_come_at_once_then_all_are_let_in(
        cloud: SmallCloud, keys: EnrolledKeys, tmp_path: Path) -> None:
    """They have one secret, and each may find the host unknown."""
    binaries = ("nova-compute", "nova-network", "nova-metadata") * 2
    daemons = [Machine(cloud, "new", tmp_path / "new") for _binary in binaries]

    def come(daemon: Machine, binary: str) -> Any:
        with context.entered(context.internal()):
            return daemon.register(binary)
    with ThreadPoolExecutor(6) as pool:
        assert all(answer.service_id for answer in pool.map(come, daemons, binaries))
    assert all(daemon.speaks() for daemon in daemons)


def test_machines_when_both_were_asked_for_their_secret_then_the_second_transaction_is_refused(
        cloud: SmallCloud, keys: EnrolledKeys) -> None:
    """Both came while nobody was known; the proof of either held."""
    service = HostService(cloud.deps, cloud.daemons, shared=True)

    def said(secret: str) -> Registration:
        return Registration(host="new", binary="nova-compute", topic="compute", secret=secret)
    service.register("new", said("a" * 64))
    with pytest.raises(errors.Forbidden, match="readmit"):
        service.register("new", said("b" * 64))
    assert service.register("new", said("a" * 64)).service_id  # its answer was lost


def test_answer_when_it_was_lost_then_the_host_comes_again_by_its_secret(
        cloud: SmallCloud, keys: EnrolledKeys, tmp_path: Path) -> None:
    machine = Machine(cloud, "new", tmp_path / "new")
    lost = [True]

    def register(said: Registration) -> Any:
        answer = machine.conductor.register("new", said)
        if lost.pop() if lost else False:
            raise errors.Unavailable("the answer was lost")
        return answer
    said = Registration(host="new", binary="nova-compute", topic="compute")
    with pytest.raises(errors.Unavailable, match="lost"):
        machine.secret.introduce(register, said, str)
    assert machine.secret.introduce(register, said, str).service_id and machine.speaks()
    told: list[str] = []

    def register_again(said: Registration) -> Any:
        told.append(said.secret)
        return machine.conductor.register("new", said)
    machine.secret.introduce(register_again, said, str)
    assert told == [""]  # who was let in once says who it is by the proof alone


def test_word_of_first_contact_when_the_host_is_known_then_it_proves_nothing(
        cloud: SmallCloud, host: Machine, keys: EnrolledKeys) -> None:
    assert FIRST_CONTACT in set(keys("stranger", True)) and FIRST_CONTACT not in set(keys("stranger"))
    assert FIRST_CONTACT not in set(keys("new", True))
    thief = cloud.bus.client(ConductorHostRPC, "new",
                             proofs=Proofs(lambda _host, introducing=False: (FIRST_CONTACT,)))
    for deed in (lambda: thief.heartbeat("new", Heartbeat(host="new", binary="nova-compute")),
                 lambda: thief.change_secret("new", "0" * 64),
                 lambda: thief.register("new", Registration(host="new", binary="nova-compute", topic="compute",
                                                            secret="0" * 64))):
        with pytest.raises(errors.Forbidden):
            deed()
    assert host.speaks()


def test_word_of_first_contact_when_another_call_bears_it_then_it_is_refused(
        cloud: SmallCloud, keys: EnrolledKeys) -> None:
    orphan = cloud.bus.client(ConductorHostRPC, "stranger",
                              proofs=Proofs(lambda _host, introducing=False: (FIRST_CONTACT,)))
    with pytest.raises(errors.NovaError, match="not enrolled"):
        orphan.may_proceed("stranger", ())


@pytest.mark.parametrize("gone", ["expelled", "bounded", "isolated"])
def test_host_when_it_may_not_come_by_itself_then_it_is_refused(
        cloud: SmallCloud, host: Machine, keys: EnrolledKeys, gone: str) -> None:
    def write(tx: Any) -> None:
        if gone == "expelled":
            enrolments.expel(tx, "new")
        elif gone == "isolated":
            enrolments.isolate(tx, "new", True)
        else:
            security.change_mode(tx, SecurityMode.BOUNDED)
    cloud.cell.transact(write)
    keys.hosts_if_changed()
    for deed in (host.register, host.speaks):
        with pytest.raises(errors.NovaError) as refused:
            deed()
        assert ("isolated" if gone != "expelled" else "not enrolled") in refused.value.message


def test_host_when_it_was_isolated_and_may_return_then_its_registration_brings_it_back(
        cloud: SmallCloud, host: Machine, keys: EnrolledKeys) -> None:
    cloud.cell.transact(lambda tx: enrolments.isolate(tx, "new", True))
    cloud.cell.transact(lambda tx: enrolments.let_return(tx, ("new",)))
    host.register()
    with cloud.cell.reading() as tx:
        found = enrolments.keys(tx, "new")
    assert not found.isolated and not found.may_return


@pytest.mark.parametrize("own_token", [True, False])
def test_name_when_it_is_readmitted_then_one_machine_takes_it_and_no_third(
        cloud: SmallCloud, host: Machine, keys: EnrolledKeys, tmp_path: Path, own_token: bool) -> None:
    token = "t" * 64 if own_token else FIRST_CONTACT
    assert cloud.cell.transact(lambda tx: enrolments.readmit(tx, "new", WRAP.wrapped("new", token)))
    keys.hosts_if_changed()
    second = Machine(cloud, "new", tmp_path / "second")
    if own_token:
        path = second.folder / host_secret.TOKEN
        path.touch(0o600)
        path.write_text(token)
    second.register()
    assert second.speaks()
    keys.hosts_if_changed()
    with pytest.raises(errors.Forbidden, match="readmit"):
        host.register()


def test_host_when_it_registers_before_conductors_forget_its_old_secret_then_it_comes_as_a_new_one(
        cloud: SmallCloud, host: Machine, keys: EnrolledKeys) -> None:
    """They remember secrets for two seconds. Registered by the old one, it would be refused for ever afterwards."""
    assert host.speaks()
    cloud.cell.transact(lambda tx: enrolments.readmit(tx, "new", WRAP.wrapped("new", FIRST_CONTACT)))
    host.register()
    keys.hosts_if_changed()
    assert host.speaks()


def test_readmission_when_the_host_is_unknown_then_nothing_is_made(cloud: SmallCloud, keys: EnrolledKeys) -> None:
    assert not cloud.cell.transact(lambda tx: enrolments.readmit(tx, "nowhere", "x"))
    with cloud.cell.reading() as tx:
        assert not enrolments.keys(tx, "nowhere").known
