"""A client of a machine that has nothing but Python: boots a server with the OS_* variables of its environment.

    python3 tests/fresh/boots.py boot NAME      until it is ACTIVE; prints its id
    python3 tests/fresh/boots.py show NAME      its status; exit status 1 where there is none
    python3 tests/fresh/boots.py console NAME TYPE
                                                the first letters of the page at which its console opens
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any

TIMEOUT_S = 60


class Client:
    def __init__(self) -> None:
        self.token = ""
        user = {"name": os.environ["OS_USERNAME"], "password": os.environ["OS_PASSWORD"],
                "domain": {"name": os.environ["OS_USER_DOMAIN_NAME"]}}
        scope = {"project": {"name": os.environ["OS_PROJECT_NAME"],
                             "domain": {"name": os.environ["OS_PROJECT_DOMAIN_NAME"]}}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
        with self.ask("POST", f"{os.environ['OS_AUTH_URL']}/auth/tokens", body) as answer:
            self.token = answer.headers["X-Subject-Token"]
            catalog = json.load(answer)["token"]["catalog"]
        self.urls = {service["type"]: service["endpoints"][0]["url"] for service in catalog}

    def ask(self, method: str, url: str, body: object = None) -> Any:
        headers = {"Content-Type": "application/json", "X-Auth-Token": self.token,
                   "OpenStack-API-Version": "compute 2.79"}
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30)

    def compute(self, method: str, path: str, body: object = None) -> Any:
        with self.ask(method, f"{self.urls['compute']}{path}", body) as answer:
            return json.load(answer)

    def named(self, name: str) -> dict[str, Any]:
        [server] = [one for one in self.compute("GET", "/servers/detail")["servers"] if one["name"] == name]
        return server


def boot(client: Client, name: str) -> None:
    with client.ask("GET", f"{client.urls['image']}/v2/images") as answer:
        image = json.load(answer)["images"][0]["id"]
    flavor = client.compute("GET", "/flavors")["flavors"][0]["id"]
    body = {"server": {"name": name, "imageRef": image, "flavorRef": flavor, "networks": "auto"}}
    made = client.compute("POST", "/servers", body)["server"]["id"]
    until = time.monotonic() + TIMEOUT_S
    while (status := client.compute("GET", f"/servers/{made}")["server"]["status"]) == "BUILD":
        assert time.monotonic() < until, f"{made} is in BUILD after {TIMEOUT_S} s"
        time.sleep(0.1)
    assert status == "ACTIVE", f"{made} is in {status}"
    print(made)


def show(client: Client, name: str) -> None:
    print(client.named(name)["status"])


def console(client: Client, name: str, kind: str) -> None:
    protocol = {"novnc": "vnc", "serial": "serial"}[kind]
    body = {"remote_console": {"protocol": protocol, "type": kind}}
    path = f"/servers/{client.named(name)['id']}/remote-consoles"
    url = client.compute("POST", path, body)["remote_console"]["url"].replace("ws://", "http://")
    with urllib.request.urlopen(url, timeout=30) as answer:
        print(answer.status, answer.read(4096).decode())


if __name__ == "__main__":
    {"boot": boot, "show": show, "console": console}[sys.argv[1]](Client(), *sys.argv[2:])
