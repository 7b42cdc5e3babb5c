"""The same cloud in one process: nova-all, one more back end of the tests that kill no single daemon."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tests import sampling, turns
from tests.functional.backends import Backends
from tests.functional.client import IMAGE
from tests.functional.cloud import ADMIN, Cloud, Plan, render
from tests.functional.daemons import Daemon

TURNS = 5  # runs in which each file has its turn
DAEMONS_EVERY = 5  # of a file's turns, so many have one with all daemons: in the first round of all files
turns.rotating(TURNS * DAEMONS_EVERY, range(TURNS))
#: Of a plan's sections, those that nova-all itself must have as every test cloud.
ALWAYS: dict[str, dict[str, Any]] = {"api": {"auth_strategy": "noauth2"},
          "glance": {"num_retries": 0, "read_timeout": 5},
          "DEFAULT": {"flat_network_bridge": "br100", "shutdown_timeout": 5},
          "fake": {"vcpus": 1000, "memory_mb": 800000, "local_gb": 600000},
          "quota": {"instances": -1, "cores": -1, "ram": -1}}


def usually(plan: Plan) -> Plan:
    """The plan in one process, which costs a run less; in one of five of a file's turns, and in a long run, with all
    daemons."""
    daemons = sampling.LONG or sampling.SEED // TURNS % DAEMONS_EVERY == 0
    return plan if daemons else dataclasses.replace(plan, whole=True, cells=0)


class WholeDaemon(Daemon):
    """``nova-all`` with these words."""

    def __init__(self, config: Path, log: Path, words: tuple[str, ...]) -> None:
        super().__init__("all", config, log)
        self.words = words


class WholeCloud(Cloud):
    """All daemons are the process ``daemons["all"]``; hosts are in it, and files where other clouds have them."""

    def __init__(self, backends: Backends, root: Path, plan: Plan) -> None:
        super().__init__(backends, root, dataclasses.replace(plan, database="sqlite"))
        self.database_urls = {"api_database": f"sqlite:///{root}/state/nova_api.db",
                              "database": f"sqlite:///{root}/state/nova.db"}

    def prepare(self) -> Cloud:
        self._exit.enter_context(self.glance)
        self.glance.add(b"an image", id=IMAGE, name="tiny")
        self.hosts = [f"host{number}" for number in range(1, self.plan.computes + 1)]
        for folder in ("etc", "log", "state"):
            (self.root / folder).mkdir(exist_ok=True)
        sections: dict[str, dict[str, Any]] = {name: dict(options) for name, options in ALWAYS.items()}
        sections["glance"]["api_servers"] = self.glance.url
        for section, options in self.plan.options.items():
            sections.setdefault(section, {}).update(options)
        config = self.root / "etc" / "test.conf"
        config.write_text(render(sections))
        self.placement_url = f"http://127.0.0.1:{self.port}/placement"
        self.daemons["all"] = WholeDaemon(config, self.root / "log" / "all.log", (
            "--verbose", "--port", str(self.port), "--state", str(self.root / "state"), "--hosts",
            str(self.plan.computes)))
        return self

    def fault(self, method: str, **fault: str) -> None:
        """Order one (POST) or undo all (DELETE), as nova-all's own administrator."""
        root = self.url.removesuffix("/v2.1")
        auth = v3.Password(f"{root}/identity/v3", username="admin", project_name="admin", user_domain_id="default",
                           project_domain_id="default", password=(self.root / "state" / "password").read_text())
        session.Session(auth).request(f"{root}/nova-all/faults", method, json={"fault": fault} if fault else None)

    def compute(self, host: str) -> Daemon:
        return self.daemons["all"]

    def wait_up(self) -> None:
        self.daemons["all"].ready()

    def create_sample_data(self) -> None:
        """nova-all has made the network, and more flavors than other test clouds have."""
        admin = self.api(ADMIN)
        for flavor in admin.get("/flavors")["flavors"]:
            if flavor["name"] != "m1.tiny":
                admin.call("DELETE", f"/flavors/{flavor['id']}")
