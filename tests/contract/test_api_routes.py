"""Every operation of the contract is served, or known to be absent; those served keep its versions and codes."""

from __future__ import annotations

from typing import Any

import pytest

from nova.api import versions
from nova.api.absent import GONE, NOT_YET
from nova.api.routes import ROUTES
from nova.api.routing import Route
from tests.contract import rows

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

#: Shown by the version documents, not by a row.
DOCUMENTS = {"GET /", "GET /versions/{api_version}"}


def served() -> dict[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for route in ROUTES:
        found.setdefault(route.id, []).append(route)
    return found


def at(routes: list[Route], version: int) -> list[Route]:
    return [route for route in routes if versions.within(version, route.since, route.until)]


def test_every_operation_of_the_contract_is_served_or_known_absent() -> None:
    absent = {*GONE, *(id for _, _, ids in NOT_YET for id in ids)}
    known = set(rows.operations()) - DOCUMENTS
    assert known - absent - set(served()) == set()
    assert absent - known == set()
    assert set(served()) - known == set()
    assert absent & set(served()) == set(), "these have a handler: take them out of absent.py"


def test_gone_operations_are_those_the_contract_calls_gone() -> None:
    assert set(GONE) == {id for id, entry in rows.operations().items() if entry["status"] == "gone"}


def test_operations_that_come_later_keep_the_contracts_versions() -> None:
    for since, until, ids in NOT_YET:
        for id in ids:
            entry = rows.operations()[id]
            assert (entry["min_version"], entry["max_version"]) == (since, until), id


@pytest.mark.parametrize("id", sorted(served()))
def test_route_at_every_version_exists_when_the_contract_says(id: str) -> None:
    entry = rows.operations()[id]
    first, last = rows.minor(entry["min_version"], 1), rows.minor(entry["max_version"], versions.MAX)
    for version in rows.VERSIONS:
        expected = 1 if first <= version <= last else 0
        assert len(at(served()[id], version)) == expected, f"{id} at 2.{version}"


@pytest.mark.parametrize("id", sorted(served()))
def test_route_at_every_version_has_the_contracts_success_code(id: str) -> None:
    entry = rows.operations()[id]
    for version in rows.VERSIONS:
        codes = {code["code"] for code in entry["success"] if rows.holds(code, version)}
        for route in at(served()[id], version):
            assert route.success(version) in codes, f"{id} at 2.{version}"


@pytest.mark.parametrize("id", sorted(served()))
def test_route_asks_the_contracts_first_policy(id: str) -> None:
    policies = rows.operations()[id]["policies"]
    first = [policy["rule"] for policy in policies if "when" not in policy][:1]
    for route in served()[id]:
        sometimes = [policy["rule"] for policy in policies]
        assert route.policy in (first or [None, *sometimes]), id


#: Published answers whose names don't say so.
ANSWERS = ("os-rescue/server-rescue.json",)


def request_samples() -> list[Any]:
    """(id, sample's name, version, body) of every request sample of what we serve."""
    found = []
    for id in sorted(served()):
        for name, version, content in rows.samples(rows.operations()[id]):
            if _is_request(id, name):
                found.append(pytest.param(id, version, content, id=name))
    return found


def _is_request(id: str, name: str) -> bool:
    if not id.startswith(("POST", "PUT")) or "resp" in name or name in ANSWERS:
        return False
    # an event named "test-event" is none of any version's
    if name == "os-server-external-events/event-create-req.json":
        return False
    # two create samples carry personality, which their versions refuse (the contract's README says so)
    return not ("server-create-req" in name and ("v2.90" in name or "v2.94" in name))


@pytest.mark.parametrize(("id", "version", "content"), request_samples())
def test_request_sample_passes_its_schema(id: str, version: int, content: Any) -> None:
    route = at(served()[id], max(version, rows.minor(rows.operations()[id]["min_version"], 1)))[0]
    assert route.body is not None
    route.body.check(content, version)
