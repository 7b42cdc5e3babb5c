"""Errors as EC2's clients are told them: codes of today and of the first years, statuses, and no internals."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil

import pytest

from nova import errors
from nova.errors import kinds
from nova.legacy.ec2 import faults
from nova.legacy.ec2.faults import CODES, KINDS, OLD, Ec2Error, described
from nova.model.ec2 import KINDS as PREFIXES
from tests.fakes.ec2 import OLD as OLD_VERSION
from tests.fakes.ec2 import Ec2Client


def house() -> dict[str, type[errors.NovaError]]:
    """Code -> error, of all modules of errors."""
    modules = [importlib.import_module(f"nova.errors.{one.name}") for one in pkgutil.iter_modules(errors.__path__)]
    return {one.code: one for module in modules for one in vars(module).values()
            if inspect.isclass(one) and issubclass(one, errors.NovaError)}


def test_codes_when_ec2_has_a_word_for_them_then_the_house_has_them() -> None:
    assert set(CODES) - set(house()) == set()


def test_kinds_when_an_error_is_foreseen_then_ec2_has_a_word_for_it() -> None:
    foreseen = {kind for kind, cls in kinds.KINDS.items() if cls.status != 500}
    assert set(KINDS) == foreseen


def test_old_codes_when_they_stand_for_one_of_today_then_that_is_told_today() -> None:
    told = {fault.code for fault in (*CODES.values(), *KINDS.values())} | {
        row.not_found for row in faults.ABSENT.values()} | {"InvalidAction", "UnknownParameter"}
    assert set(OLD) - told == set()


#: What a client may try again.
AGAIN = ((503, "Unavailable"), (503, "RequestLimitExceeded"))


@pytest.mark.parametrize("code", sorted(code for code, one in house().items()
                                        if one.kind in KINDS or one.status == 500))
def test_error_when_it_is_the_houses_then_old_clients_never_see_a_5xx_of_what_was_foreseen(code: str) -> None:
    error = kinds.from_wire(house()[code].kind, code, "said", {})
    status, told, message = described(error, is_old=True)
    if error.status == 500:
        assert (status, told, message) == (500, "InternalError", faults.UNEXPECTED)
    else:
        assert 400 <= status < 500 and told not in OLD and message == "said"
        status, told, _ = described(error, is_old=False)
        assert (400 <= status < 500 or (status, told) in AGAIN) and told != "InternalError", code


@pytest.mark.parametrize(("code", "today", "old"), [
    ("keypair.taken", (400, "InvalidKeyPair.Duplicate"), (400, "InvalidKeyPair.Duplicate")),
    ("keypair.bad_key", (400, "InvalidKeyPair.Format"), (400, "InvalidKeyPair.Format")),
    ("security_group.not_found", (404, "InvalidGroup.NotFound"), (404, "SecurityGroupNotFound")),
    ("security_group.in_use", (400, "InvalidGroup.InUse"), (400, "InvalidGroup")),
    ("quota.exceeded", (413, "InstanceLimitExceeded"), (413, "ResourceLimitExceeded")),
    ("server.wrong_state", (400, "IncorrectInstanceState"), (400, "IncorrectState")),
    ("volume.snapshot_not_found", (404, "InvalidSnapshot.NotFound"), (404, "InvalidSnapshot.NotFound")),
    ("volume.away", (503, "Unavailable"), (400, "InternalError"))])
def test_error_when_ec2_has_a_code_for_it_then_both_ages_have_theirs(code: str, today: tuple[int, str],
                                                                     old: tuple[int, str]) -> None:
    error = kinds.from_wire(house()[code].kind, code, "said", {})
    assert described(error, False)[:2] == today and described(error, True)[:2] == old


@pytest.mark.parametrize("version", ["2016-11-15", OLD_VERSION])
def test_bug_when_a_handler_meets_it_then_the_client_is_told_nothing_and_the_log_all(
        version: str, caplog: pytest.LogCaptureFixture) -> None:
    client = Ec2Client()
    client.conductor.given(list_servers=ValueError("SELECT secret FROM passwords"))
    with caplog.at_level(logging.ERROR):
        answer = client.ask("DescribeInstances", version=version)
    assert answer.refusal == (500, "InternalError") and answer.message == faults.UNEXPECTED
    assert answer.text("RequestID") == answer.headers["x-openstack-request-id"]
    assert any("EC2 DescribeInstances" in record.getMessage() for record in caplog.records)


def test_message_when_it_names_what_the_client_named_then_it_has_ec2s_id() -> None:
    client = Ec2Client()
    server = client.conductor.add_server()
    id = client.conductor.number("i", server.uuid)
    client.conductor.given(get_console_output=errors.Conflict(f"Instance {server.uuid} is not ready."))
    answer = client.ask("GetConsoleOutput", {"InstanceId": id, "Latest": "true"})
    assert answer.message == f"Instance {id} is not ready."


def test_absent_when_ids_have_a_kind_then_it_has_codes_of_its_own() -> None:
    assert set(faults.ABSENT) == set(PREFIXES.values())
    assert isinstance(faults.absent("instance", "i-1"), Ec2Error) and faults.absent("instance", "i-1").status == 404
