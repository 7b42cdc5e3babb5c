"""Schemathesis against our own OpenAPI document, on a live cloud: no 500, and no status that the document lacks.

``NOVA_FUZZ_SECONDS`` says for how long (``bin/test fuzz [SECONDS]``); CI runs a short one, the same cases for a day.
Requests go with a good token, and half of the ids are of things that are there, so that they get behind the checks.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import InvalidArgument

from nova.api import openapi
from tests.functional.client import IMAGE, Client, Refused
from tests.functional.cloud import Cloud, Plan
from tests.functional.whole import usually

pytestmark = pytest.mark.in_turn(7, 10)

schemathesis = pytest.importorskip("schemathesis")
GenerationMode = pytest.importorskip("schemathesis.generation").GenerationMode

SECONDS = int(os.environ.get("NOVA_FUZZ_SECONDS", "30"))
VERSIONS = (96, 104, 1, 36, 64)
LOOK_AGAIN = 25  # operations, after which the ids that there are are asked for anew
EXAMPLES = 8  # of an operation, one after the other
ANSWER_S = 60.0
PROJECT = "6f70656e737461636b20342065766572"
SHOWN = 12
SHORT = settings(max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
                 suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def cloud(make_cloud) -> Cloud:
    quota = {"instances": 20, "cores": 20, "ram": 20000}
    return make_cloud(usually(Plan(computes=1, consoles=True, options={"quota": quota}))).start()


class Fuzz:
    """Sends cases, and keeps what must not be: (operation, status) -> the first example."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.session = cloud, requests.Session()
        self.findings: dict[tuple[str, int], str] = {}
        self.answers: collections.Counter[int] = collections.Counter()
        self.ids: dict[str, list[str]] = {}
        self.api = Client(cloud.url, "admin", PROJECT, "2.104")

    def known(self) -> dict[str, list[str]]:
        """Ids that exist, by the name of the path's parameter; servers are made anew when the last one went."""
        servers = [one["id"] for one in self.api.get("/servers")["servers"]] or self.stand_again()
        found = {
            "server_id": servers,
            "flavor_id": [one["id"] for one in self.api.get("/flavors")["flavors"]],
            "hypervisor_id": [one["id"] for one in self.api.get("/os-hypervisors")["hypervisors"]],
            "service_id": [one["id"] for one in self.api.get("/os-services")["services"]] + ["enable", "disable"],
            "aggregate_id": [str(one["id"]) for one in self.api.get("/os-aggregates")["aggregates"]],
            "server_group_id": [one["id"] for one in self.api.get("/os-server-groups")["server_groups"]],
            "keypair_name": [one["keypair"]["name"] for one in self.api.get("/os-keypairs")["keypairs"]],
            "tenant_id": [PROJECT], "image_id": [IMAGE], "host_name": ["host1"], "quota_class": ["default"]}
        return {name: ids for name, ids in found.items() if ids}

    def stand_again(self) -> list[str]:
        """A server, and what it needs, put back after the cases deleted them; nothing while a quota forbids it."""
        self.cloud.glance.add(b"an image", id=IMAGE, name="tiny", protected=True)
        flavor = {"name": "m1.tiny", "id": "1", "ram": 512, "vcpus": 1, "disk": 1}
        with contextlib.suppress(Refused):
            self.api.call("POST", "/flavors", {"flavor": flavor})
        with contextlib.suppress(Refused):
            return [self.api.create("fuzzed")["id"]]
        return []

    def operation(self, operation: Any, version: int, number: int) -> None:
        """Some cases of one operation, chosen by ``number``: right ones, and every third time wrong ones."""
        if number % LOOK_AGAIN == 1 or not self.ids:
            self.ids = self.known()
        ids, chance = self.ids, random.Random(number)
        mode = GenerationMode.POSITIVE if number % 3 else GenerationMode.NEGATIVE
        try:
            cases = operation.as_strategy(generation_mode=mode)
            cases.validate()
        except InvalidArgument:
            return  # nothing of it can be wrong

        @seed(number)
        @SHORT
        @given(cases)
        def send(case: Any) -> None:
            for name in case.path_parameters or {}:
                if name in ids and chance.random() < 0.5:
                    case.path_parameters[name] = chance.choice(ids[name])
            self.send(operation, case, version)
        send()

    def send(self, operation: Any, case: Any, version: int) -> None:
        case.headers.update({"X-Auth-Token": f"admin:{PROJECT}", "OpenStack-API-Version": f"compute 2.{version}"})
        what = f"{operation.method.upper()} {operation.path}"
        try:
            answer = case.call(base_url=self.cloud.url, session=self.session, timeout=ANSWER_S)
        except requests.RequestException as error:
            self.findings.setdefault((what, 0), f"no answer: {error!r}")
            return
        self.answers[answer.status_code] += 1
        documented = {str(code) for code in operation.definition.raw["responses"]}
        if str(answer.status_code) not in documented:  # 500 never is
            self.findings.setdefault((what, answer.status_code), described(case, version, answer))


def described(case: Any, version: int, answer: Any) -> str:
    body = "" if isinstance(case.body, type(None)) else f" {str(case.body)[:300]}"
    return f"2.{version} {case.formatted_path} {str(case.query)[:200]}{body} -> {answer.text[:300]}"


def rounds(first: int) -> Iterator[tuple[int, int, Any]]:
    """(number, version, operation) for ever: each operation in turn, the versions in turns; documents made once."""
    documents: dict[int, list[Any]] = {}
    number = first
    while True:
        for version in VERSIONS:
            if version not in documents:
                schema = schemathesis.openapi.from_dict(openapi.document(version))
                documents[version] = [found.ok() for found in schema.get_all_operations()]
            for operation in random.Random(number).sample(documents[version], len(documents[version])):
                number += 1
                yield number, version, operation


def test_api_when_it_is_fuzzed_by_its_own_document_then_no_answer_is_undocumented(cloud: Cloud, seed: int, capsys
                                                                                  ) -> None:
    fuzz, until, operations = Fuzz(cloud), time.monotonic() + SECONDS, 0
    for number, version, operation in rounds(seed * 100000):
        if time.monotonic() > until:
            break
        operations += 1
        fuzz.operation(operation, version, number)
    with capsys.disabled():
        print(f"\nfuzzed {operations} times an operation, {fuzz.answers.total()} requests, seed {seed}: "
              f"{', '.join(f'{code} {times} times' for code, times in sorted(fuzz.answers.items()))}")
    dead = [name for name, daemon in cloud.daemons.items() if not daemon.running]
    assert not dead, f"these ended: {dead}"
    assert not fuzz.findings, "\n".join(f"{what} {status}: {example}"
                                        for (what, status), example in list(fuzz.findings.items())[:SHOWN])


def test_document_when_it_is_read_then_every_operation_names_its_success() -> None:
    for path, item in openapi.document(VERSIONS[0])["paths"].items():
        for method, operation in item.items():
            if method in ("get", "post", "put", "delete"):
                assert any(re.match("2", str(code)) for code in operation["responses"]), f"{method} {path}"
