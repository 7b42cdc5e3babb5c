"""The small Neutron and Cinder that clients' tests look for before they ask nova anything."""

from __future__ import annotations

import pytest
import requests
import webob

from nova.model.base import Json
from tests.clients.stand_ins import StandIns

NETWORKS = {"networks": [{"id": "n1", "label": "private", "project_id": None, "cidr": "10.0.0.0/24"},
                         {"id": "n2", "label": "own", "project_id": "p1", "cidr": "10.1.0.0/24"}]}


class Nova:
    """What the compute API answers, and with whose token it was asked."""

    status_code, asked = 200, ""

    def get(self, url: str, headers: dict[str, str], timeout: float) -> Nova:
        self.asked = f"{url} {headers['X-Auth-Token']}"
        return self

    def raise_for_status(self) -> None:
        """It is no failure."""

    def json(self) -> Json:
        return NETWORKS


@pytest.fixture
def nova(monkeypatch: pytest.MonkeyPatch) -> Nova:
    found = Nova()
    monkeypatch.setattr(requests, "get", found.get)
    return found


def ask(path: str, method: str = "GET") -> webob.Response:
    http = webob.Request.blank(path, method=method, headers={"X-Auth-Token": "t1"})
    return http.get_response(StandIns("http://nova/v2.1"))


def test_networks_when_listed_then_they_are_novas_own_as_the_caller_may_see_them(nova: Nova) -> None:
    found = ask("/network/v2.0/networks").json["networks"]
    assert [(one["id"], one["name"], one["shared"]) for one in found] == [("n1", "private", True), ("n2", "own", False)]
    assert nova.asked == "http://nova/v2.1/os-networks t1"


@pytest.mark.parametrize("path, names", [("networks?name=own", ["own"]), ("networks?id=n1", ["private"]),
                                         ("networks?name=none", [])])
def test_networks_when_filtered_then_only_those_are_listed(nova: Nova, path: str, names: list[str]) -> None:
    assert [one["name"] for one in ask(f"/network/v2.0/{path}").json["networks"]] == names


def test_network_when_asked_by_id_then_it_is_shown_or_404(nova: Nova) -> None:
    assert ask("/network/v2.0/networks/n2").json["network"]["name"] == "own"
    assert ask("/network/v2.0/networks/n3").status_int == 404


@pytest.mark.parametrize("path, collection", [
    ("/network/v2.0/ports", "ports"), ("/volume/v3/volumes/detail", "volumes"), ("/volume/v3/snapshots", "snapshots")])
def test_all_else_when_listed_then_there_is_nothing(nova: Nova, path: str, collection: str) -> None:
    assert ask(path).json == {collection: []}


@pytest.mark.parametrize("path", ["/volume/v3/volumes", "/network/v2.0/networks", "/network/v2.0/ports"])
def test_all_when_something_shall_be_made_then_there_is_no_room(nova: Nova, path: str) -> None:
    assert ask(path, "POST").status_int == 413


@pytest.mark.parametrize("path, id_, link", [
    ("/network/", "v2.0", "/network/v2.0/"), ("/volume/v3", "v3.0", "/volume/v3/")])
def test_versions_when_asked_then_clients_find_the_one_there_is(path: str, id_: str, link: str) -> None:
    [one] = ask(path).json["versions"]
    assert one["id"] == id_ and one["links"][0]["href"].endswith(link)


def test_service_when_it_is_neither_then_404() -> None:
    assert ask("/object/v1").status_int == 404
