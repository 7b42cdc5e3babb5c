"""Volumes in guests, while what serves them dies or stands still: each deed happens or is refused, no data are hurt,
and each volume ends in use by the server that has it, or free. For tests of any back end."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import requests

from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.machine.server import Server
from tests.machine.stack import Sandbox

#: What a deed may end with while daemons die: an answer that says no, or none. (ssh's failures are AssertionErrors.)
UNDONE = (Refused, requests.RequestException, OSError)
PAUSES_S = (4.0, 12.0)  # a daemon that stands still: shorter, and longer, than callers wait for a first answer
BETWEEN_S = (1.0, 5.0)
SETTLED_S = 240.0  # a host that died is waited for, and Cinder waits a minute for its own
STEADY = ("available", "in-use")
LENGTH: Final = 32


class Volumes:
    """Cinder's side, as an owner sees it."""

    def __init__(self, cloud: Sandbox) -> None:
        self._session = cloud.api("demo").session
        self._url = cloud.layout.url("cinder", "/v3/volumes")

    def make(self) -> str:
        answer = self._session.post(self._url, json={"volume": {"size": 1, "name": "storm"}}, timeout=60)
        made = str(answer.json()["volume"]["id"])
        self.becomes(made, "available")
        return made

    def becomes(self, volume: str, status: str) -> None:
        """``status`` may be empty: it is gone."""
        wait_until(f"volume {volume} is {status or 'gone'}", lambda: self.show(volume)["status"] == status, 60, 0.5)

    def show(self, volume: str) -> dict[str, Any]:
        """Its status is empty while Cinder does not answer."""
        with contextlib.suppress(requests.RequestException, OSError, ValueError):
            return dict(self._session.get(f"{self._url}/{volume}", timeout=60).json().get("volume", {"status": ""}))
        return {"status": ""}

    def holders(self, volume: str) -> list[str]:
        return [one["server_id"] for one in self.show(volume).get("attachments", ())]

    def drop(self, volume: str) -> None:
        self._session.delete(f"{self._url}/{volume}", timeout=60)
        self.becomes(volume, "")


class Tenant:
    """A server and its volumes, to which something is done all the time. ``written``: what each volume may begin with;
    more than one text where nobody knows whether the last one was written."""

    def __init__(self, cloud: Sandbox, uuid: str, seed: str) -> None:
        self.cloud, self.api, self.admin = cloud, cloud.login("demo"), cloud.login("admin")
        self.server = Server(cloud, uuid, cloud.ready(self.api, uuid)["address"])
        self.cinder = Volumes(cloud)
        self.written: dict[str, set[str]] = {self.cinder.make(): {"\0" * LENGTH} for _ in range(2)}
        self.dice = random.Random(seed)
        self.story: list[str] = []
        self._path = f"/servers/{uuid}/os-volume_attachments"

    def attached(self) -> set[str]:
        return {one["volumeId"] for one in self.api.get(self._path)["volumeAttachments"]}

    # --- deeds

    def attach(self, volume: str) -> None:
        self.api.call("POST", self._path, {"volumeAttachment": {"volumeId": volume}})

    def detach(self, volume: str) -> None:
        self.api.call("DELETE", f"{self._path}/{volume}")

    def migrate(self, _volume: str) -> None:
        self.admin.act(self.server.uuid, "os-migrateLive", {"host": None, "block_migration": "auto"})

    def reboot(self, _volume: str) -> None:
        self.api.act(self.server.uuid, "reboot", {"type": "HARD"})

    def write(self, volume: str) -> None:
        """A text that nothing else writes."""
        text = "".join(self.dice.choices("abcdefghijklmnop", k=LENGTH))
        script = f"{self._device(volume)} && test -n \"$d\" && printf {text} > /dev/$d && sync && echo written"
        self.written[volume].add(text)
        if "written" in self.cloud.ssh(self.server.address, script, code=None):
            self.written[volume] = {text}

    def read(self, volume: str) -> str:
        return self.server.ssh(f"{self._device(volume)}; head -c {LENGTH} /dev/$d")

    @staticmethod
    def _device(volume: str) -> str:
        return f"d=$(grep -l {volume[:20]} /sys/block/*/serial | cut -d/ -f4)"

    DEEDS: tuple[Callable[[Tenant, str], None], ...] = (attach, attach, write, write, detach, migrate, reboot)

    def live(self, over: threading.Event) -> None:
        while not over.is_set():
            deed, volume = self.dice.choice(self.DEEDS), self.dice.choice(list(self.written))
            try:
                deed(self, volume)
                said = "taken"
            except UNDONE as error:
                said = str(error)[:200]
            self.story.append(f"{time.strftime('%X')} {deed.__name__} {volume[:8]}: {said}")
            self.settle()

    def settle(self) -> None:
        def settled() -> bool:
            with contextlib.suppress(*UNDONE):
                server = self.api.show(self.server.uuid)
                assert server["status"] != "ERROR", server
                return server["OS-EXT-STS:task_state"] is None and server["status"] == "ACTIVE"
            return False
        wait_until(f"{self.server.uuid} is settled after {self.story[-3:]}", settled, SETTLED_S, 0.5)

    # --- afterwards

    def is_agreed(self, volume: str) -> bool:
        """Cinder and we say the same of it, and nothing is under way."""
        status, holders = self.cinder.show(volume)["status"], self.cinder.holders(volume)
        here = volume in self.attached()
        return status in STEADY and holders == ([self.server.uuid] if here else []) and (status == "in-use") == here

    def agree(self) -> None:
        for volume in self.written:
            wait_until(f"all agree on volume {volume} of {self.server.uuid}", partial(self.is_agreed, volume),
                       SETTLED_S, 1)

    def check(self) -> None:
        """Each volume is agreed on, can be attached, and has what was written to it."""
        self.agree()
        for volume in self.written.keys() - self.attached():
            self.attach(volume)
        self.agree()
        assert self.attached() == self.written.keys()
        self.reboot("")
        self.settle()
        self.server.awake()
        for volume, texts in self.written.items():
            assert self.read(volume) in texts, f"{volume} has other data than {texts}"

    def remove(self) -> None:
        self.cloud.remove(self.api, self.server.uuid)
        for volume in self.written:
            self.cinder.becomes(volume, "available")
            self.cinder.drop(volume)


class Weather:
    """Kills daemons, or lets them stand still, one after the other."""

    def __init__(self, cloud: Sandbox, victims: Sequence[str], seed: str) -> None:
        self.cloud, self.victims, self.dice = cloud, victims, random.Random(seed)
        self.story: list[str] = []

    def blow(self, over: threading.Event) -> None:
        while not over.wait(self.dice.uniform(*BETWEEN_S)):
            victim, kills = self.dice.choice(self.victims), self.dice.random() < 0.6
            self.story.append(f"{time.strftime('%X')} {victim} {'is killed' if kills else 'stands still'}")
            if kills:
                self.cloud.kill(victim)
                self.cloud.wait_ready(victim, 120)
            else:
                self._send(victim, signal.SIGSTOP)
                over.wait(self.dice.uniform(*PAUSES_S))
                self._send(victim, signal.SIGCONT)

    def _send(self, victim: str, what: signal.Signals) -> None:
        self.cloud.control.ask(do="kill", name=victim, signal=what.value)


def storm(cloud: Sandbox, victims: Sequence[str], seconds: float, seed: int) -> None:
    """Two tenants live while daemons die; afterwards all is as it should be, and nothing is left."""
    api = cloud.api("demo")
    uuids = [api.create(f"storm{number}", key_name="demo")["id"] for number in range(2)]
    for uuid in uuids:
        api.settled(uuid, "ACTIVE", seconds=120)
    tenants = [Tenant(cloud, uuid, f"{seed} {number}") for number, uuid in enumerate(uuids)]
    weather, over, failed = Weather(cloud, victims, str(seed)), threading.Event(), list[BaseException]()

    def run(work: Callable[[threading.Event], None]) -> None:
        try:
            work(over)
        except BaseException as error:
            failed.append(error)
            over.set()
    threads = [threading.Thread(target=run, args=(work,)) for work in (weather.blow, *(one.live for one in tenants))]
    for thread in threads:
        thread.start()
    over.wait(seconds)
    over.set()
    for thread in threads:
        thread.join()
    print("\n".join(sorted(line for one in (weather, *tenants) for line in one.story)))
    if failed:
        raise failed[0]
    for one in tenants:
        one.settle()
        one.check()
        one.remove()
