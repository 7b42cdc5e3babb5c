"""What the contract took away stays away: 410 where an operation is gone, 404 outside its versions. Every such
operation is asked for with each networking back end, with nova-cert and without, at every version, in each form of its
path.

Two tables put some back on purpose, and nothing else may: ``nova.api.legacy_networks`` where nova-network is in
service, and ``nova.api.legacy_v2`` below /v2.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
import webob

from nova.api import app, legacy_networks, legacy_v2, versions
from nova.legacy.api_extras import EXTRAS
from nova.model.security.certificates import SignedCertificate
from tests.contract import rows
from tests.fakes.api import ADMIN, configuration
from tests.fakes.whole_api import WholeApiClient

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

BACK_ENDS = ("neutron", legacy_networks.BACK_END)
LEGACY_PREFIXES = ("/v2", "/v1.1")
PROJECTS = ("", "/admin")  # the project may stand in the path
LAST_OLD = {row.id: rows.minor(row.until, versions.MAX) for row in (*legacy_networks.ROUTES, *EXTRAS.networks)}
BELOW_V2 = {row.id for row in legacy_v2.ROUTES}
#: Shown by the version documents, not by a row.
DOCUMENTS = ("GET /", "GET /versions/{api_version}")
GONE = sorted(id for id, entry in rows.operations().items() if entry["status"] == "gone")
BOUNDED = sorted(id for id, entry in rows.operations().items() if entry["status"] != "gone" and id not in DOCUMENTS
                 and (rows.minor(entry["min_version"], 1) > 1 or entry["max_version"]))


class Unasked:
    """Clients of other daemons. Whoever asks one gets a 500, and the test fails."""

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any) -> Any:
            raise AssertionError(f"another daemon was asked: {name}")
        return fail


@functools.cache
def client_of(networks: str) -> WholeApiClient:
    """An API whose other daemons must not be asked."""
    made = WholeApiClient(token=ADMIN)
    conf = configuration(use_neutron=networks == "neutron")
    made.application = app.from_conf(Unasked(), Unasked(), Unasked(), conf, extras=EXTRAS)  # type: ignore[arg-type]
    return made


def ask(client: WholeApiClient, id: str, prefix: str, version: int | None = None, **headers: str) -> webob.Response:
    """The operation's answer, with a 1 for every id of its path."""
    entry = rows.operations()[id]
    path = re.sub(r"\{\w+\}", "1", entry["path"])
    action = id.partition("#")[2]
    body = {action: None} if action else {} if entry["method"] in ("POST", "PUT") else None
    client.prefix = prefix
    asked = None if version is None else versions.text(version)
    return client.request(entry["method"], path, body, version=asked, headers=headers)


def codes(client: WholeApiClient, id: str, wanted: range | list[int]) -> dict[int, set[int]]:
    """What /v2.1 answers at each version, with the project in the path and without."""
    return {version: {ask(client, id, f"/v2.1{project}", version).status_int for project in PROJECTS}
            for version in wanted}


@pytest.mark.parametrize("networks", BACK_ENDS)
@pytest.mark.parametrize("id", GONE)
def test_gone_operation_when_asked_at_any_version_then_410_and_404_above_what_nova_network_has(
        id: str, networks: str) -> None:
    put_back = LAST_OLD.get(id, 0) if networks == legacy_networks.BACK_END else 0
    expected = 404 if put_back else 410
    every = range(put_back + 1, versions.MAX + 1)
    found = codes(client_of(networks), id, every)
    assert {version: got for version, got in found.items() if got != {expected}} == {}


@pytest.mark.parametrize("accept", ["application/json", "application/xml"])
@pytest.mark.parametrize("networks", BACK_ENDS)
@pytest.mark.parametrize("id", [id for id in GONE if id not in BELOW_V2])
def test_gone_operation_when_asked_below_v2_then_410_but_for_nova_networks_own(
        id: str, networks: str, accept: str) -> None:
    if networks == legacy_networks.BACK_END and id in LAST_OLD:
        return  # it works: tests/contract/test_legacy_network_samples.py
    for prefix in LEGACY_PREFIXES:
        for project in PROJECTS:
            answer = ask(client_of(networks), id, f"{prefix}{project}", Accept=accept)
            assert (answer.status_int, answer.content_type) == (410, accept), f"{prefix}{project}"


#: Operation put back below /v2 -> its code there without nova-cert, and with it. No certificate has the id 1.
PUT_BACK = {"POST /os-certificates": (503, 200), "GET /os-certificates/{id}": (501, 501)}


@pytest.mark.parametrize("networks", BACK_ENDS)
@pytest.mark.parametrize("id", sorted(BELOW_V2))
def test_operation_put_back_below_v2_when_nova_cert_is_there_or_not_then_v21_answers_410(
        id: str, networks: str) -> None:
    client = WholeApiClient(token=ADMIN, conf=configuration(use_neutron=networks == "neutron"))
    client.certs.given(generate_x509_cert=SignedCertificate(certificate="PEM", private_key="KEY"))
    assert id in GONE
    for away, code in zip((True, False), PUT_BACK[id], strict=True):
        client.certs.away = away
        found = codes(client, id, range(1, versions.MAX + 1))
        assert {version: got for version, got in found.items() if got != {410}} == {}
        assert [ask(client, id, prefix).status_int for prefix in LEGACY_PREFIXES] == [code, code]


@pytest.mark.parametrize("networks", BACK_ENDS)
@pytest.mark.parametrize("id", BOUNDED)
def test_operation_when_asked_outside_its_versions_then_404(id: str, networks: str) -> None:
    entry = rows.operations()[id]
    first, last = rows.minor(entry["min_version"], 1), rows.minor(entry["max_version"], versions.MAX)
    outside = [*range(1, first), *range(last + 1, versions.MAX + 1)]
    found = codes(client_of(networks), id, outside)
    assert {version: got for version, got in found.items() if got != {404}} == {}
