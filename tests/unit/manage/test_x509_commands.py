"""nova-manage x509: whose certificates it asks nova-cert to revoke, and what it says."""

from __future__ import annotations

import argparse

import pytest

from nova import context, errors
from nova.manage import main, x509_commands
from nova.rpc.contracts.cert import CertRPC
from tests.fakes.contract import ContractFake


@pytest.fixture
def certs() -> ContractFake:
    return ContractFake(CertRPC, revoke_certs_by_user=3, revoke_certs_by_project=2, revoke_certs_by_user_and_project=1)


def revoke(certs: ContractFake, user: str | None = None, project: str | None = None) -> tuple[int, list[str]]:
    lines: list[str] = []
    with context.entered(context.internal()):
        return x509_commands.revoke(certs.client(), argparse.Namespace(user=user, project=project),
                                    lines.append), lines


@pytest.mark.parametrize(("whose", "asked", "count"), [
    ({"user": "joe"}, ("revoke_certs_by_user", "joe"), 3),
    ({"project": "demo"}, ("revoke_certs_by_project", "demo"), 2),
    ({"user": "joe", "project": "demo"}, ("revoke_certs_by_user_and_project", ("joe", "demo")), 1)])
def test_revoke_when_told_whose_then_these_are_revoked(certs, whose, asked, count):
    status, [line] = revoke(certs, **whose)
    assert status == 0 and line.startswith(f"Certificates revoked: {count}.")
    assert [(call.name, call.said) for call in certs.calls] == [asked]


def test_revoke_when_nobody_is_named_then_nothing_is_asked(certs):
    status, lines = revoke(certs)
    assert status == 2 and "--user" in lines[0] and certs.calls == []


def test_revoke_when_there_is_none_then_it_says_so(certs):
    certs.given(revoke_certs_by_user=0)
    assert revoke(certs, "joe") == (3, ["No certificates to revoke."])


def test_revoke_when_nova_cert_is_away_then_the_error_names_it(certs):
    certs.away = True
    with pytest.raises(errors.Unavailable, match="nova-cert"):
        revoke(certs, "joe")


def test_table_then_it_has_the_command():
    assert [one.flags for one in main.COMMANDS["x509"]()["revoke"].arguments] == [("--user",), ("--project",)]
