"""The services that some clients' tests ask for before anything else: a Neutron and a Cinder with next to nothing.

Networks are nova-network's, shown as Neutron shows them; there are no ports, no volumes and no way to make any. So
those tests run that only want to find such a service, or its first network. Those that want more fail, as known/ says.
"""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import requests
import webob

from nova.model.base import Json

NETWORK, VOLUME = "/network", "/volume"
#: service type in the catalogue -> (its name, path of its endpoint)
SERVICES = {"network": ("neutron", NETWORK), "block-storage": ("cinder", f"{VOLUME}/v3")}
VERSIONS = {NETWORK: ("v2.0", "", ""), VOLUME: ("v3.0", "3.0", "3.71")}  # id, lowest and highest microversion
ASK_S = 30
SHOWN = {"status": "ACTIVE", "admin_state_up": True, "router:external": False, "subnets": [], "mtu": 1500,
         "availability_zones": ["nova"], "port_security_enabled": False}


class StandIns:
    """A WSGI application for both. ``compute``: address of the API that has the networks; it is asked with the caller's
    own token, so a caller sees what nova lets him see."""

    def __init__(self, compute: str) -> None:
        self.compute = compute

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        http = webob.Request(environ)
        status, body = self._answer(http)
        return webob.Response(status=status, json_body=body)(environ, start_response)

    def _answer(self, http: webob.Request) -> tuple[int, Json]:
        """Versions at the root; then ``/SERVICE/VERSION/[PROJECT/]COLLECTION[/ID]``."""
        service, *rest = http.path_info.strip("/").split("/")
        top = f"/{service}"
        if top not in VERSIONS:
            return 404, {"message": "There is no such service."}
        collection = next((word for word in rest if word.endswith("s")), None)
        if collection is None:
            return 200, versions(top, f"{http.host_url}{top}")
        if http.method != "GET":
            return 413, {"overLimit": {"code": 413, "message": "This service has nothing, and makes nothing."}}
        found = self._networks(http) if (top, collection) == (NETWORK, "networks") else []
        if rest[-1] in (collection, "detail"):
            return 200, {collection: list(found)}
        one = next((item for item in found if item["id"] == rest[-1]), None)
        return (200, {collection[:-1]: one}) if one else (404, {"message": "It could not be found."})

    def _networks(self, http: webob.Request) -> list[dict[str, Json]]:
        token = http.headers.get("X-Auth-Token", "")
        answer = requests.get(f"{self.compute}/os-networks", headers={"X-Auth-Token": token}, timeout=ASK_S)
        answer.raise_for_status()
        found = [{**SHOWN, "id": one["id"], "name": one["label"], "shared": one.get("project_id") is None,
                  "project_id": one.get("project_id")} for one in answer.json()["networks"]]
        wanted = {name: value for name, value in http.GET.items() if name in ("id", "name")}
        return [one for one in found if all(one[name] == value for name, value in wanted.items())]


def versions(top: str, address: str) -> Json:
    name, lowest, highest = VERSIONS[top]
    one: dict[str, Json] = {"id": name, "status": "CURRENT", "links": [
        {"rel": "self", "href": f"{address}/{name.partition('.')[0] if top == VOLUME else name}/"}]}
    if highest:
        one |= {"version": highest, "min_version": lowest}
    return {"versions": [one]}
