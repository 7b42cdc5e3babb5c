"""Fault injection for tests of clients: rare failures of a cloud happen on request.

For a single request: the header ``X-Nova-All-Fail: boot``, ``quota`` or ``rpc``. For later requests: an administrator's
``POST /nova-all/faults``. doc/nova-all.rst describes both for test authors.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import io
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from nova import context, errors
from nova.devel.fake.knobs import Block, Knobs
from nova.devel.nova_all.hosts import PretendedHost
from nova.devel.service import (
    LARGEST_BODY,
    FakeAnswer,
    FakeCall,
    FakeError,
    FakeRoute,
    FakeService,
    Identify,
    admin,
    authenticated,
)
from nova.rpc.bus import Asking, names_of
from nova.rpc.contracts.conductor import ConductorRPC

ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]  # as in sys.exc_info()

HEADER = "HTTP_X_NOVA_ALL_FAIL"
BOOT, QUOTA, RPC, HOST = "boot", "quota", "rpc", "host"
AT_ONCE = 1000  # limit of concurrent requests and boots
OF_REQUESTS = (BOOT, QUOTA, RPC)
STARTS = ("start_new",)  # driver calls that count as a boot
#: Conductor methods that a quota may refuse -> the exceeded resource.
COUNTED = {"create_servers": "instances", "resize": "cores", "unshelve": "instances", "create_keypair": "key_pairs",
           "create_server_group": "server_groups", "create_security_group": "security_groups",
           "allocate_floating_address": "floating_ips"}


@dataclass
class ArmedFault:
    """A fault that has not happened yet. ``name``: a pattern of servers' names, for boots. ``times``: remaining
    uses."""

    kind: str
    name: str = "*"
    times: int = 1

    def fits(self, name: str) -> bool:
        """Return whether the fault applies to a server of that name. fnmatchcase would cache the pattern, and each
        server may have its own."""
        return re.match(fnmatch.translate(self.name), name) is not None

    def shown(self) -> dict[str, object]:
        """Return the fault in the API's form."""
        return {"kind": self.kind, "name": self.name, "times": self.times}


class StoppedHost(NamedTuple):
    """The host that a fault stopped."""

    host: str

    def shown(self) -> dict[str, object]:
        """Return the fault in the API's form."""
        return {"kind": HOST, "host": self.host}


class Faults:
    """All active faults. Thread-safe."""

    def __init__(self, hosts: Mapping[str, PretendedHost]) -> None:
        self.hosts = hosts
        self._armed: list[ArmedFault] = []
        self._lost: deque[str] = deque(maxlen=AT_ONCE)  # requests whose calls get no answer
        self._doomed: deque[str] = deque(maxlen=AT_ONCE)  # servers whose boot fails on every host
        self._lock = threading.Lock()
        self._own: ContextVar[ArmedFault | None] = ContextVar("nova_all_fault", default=None)

    def arm(self, fault: ArmedFault) -> None:
        """Add a fault, which happens at the next occasion."""
        with self._lock:
            self._armed.append(fault)

    def _disarm(self, fault: ArmedFault) -> None:
        with self._lock:
            self._armed = [one for one in self._armed if one is not fault]

    def kill(self, name: str) -> None:
        """Stop a host immediately. Raises 404."""
        if name not in self.hosts:
            raise FakeError(404, f"Unknown host {name}; known are {', '.join(self.hosts)}.")
        self.hosts[name].die()

    def clear(self) -> None:
        """Remove all faults, and restart dead hosts."""
        with self._lock:
            self._armed.clear()
        for host in self.hosts.values():
            host.start()

    def shown(self) -> list[dict[str, object]]:
        """Return the active faults in the API's form."""
        with self._lock:
            armed = [fault.shown() for fault in self._armed]
        return armed + [StoppedHost(name).shown() for name, host in self.hosts.items() if host.dead]

    def around(self, application: WSGIApplication) -> WSGIApplication:
        """Return the application, extended by support for the header."""
        def call(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            kind = environ.get(HEADER)
            if kind is None:
                return application(environ, start_response)
            if kind not in OF_REQUESTS:
                return _refused(start_response, f"X-Nova-All-Fail: {kind!r} is not one of {', '.join(OF_REQUESTS)}.")
            fault = ArmedFault(kind, _name_of_server(environ)) if kind == BOOT else ArmedFault(kind)
            statuses: list[str] = []

            def start(status: str, headers: list[tuple[str, str]], exc_info: ExcInfo | None = None
                      ) -> Callable[[bytes], object]:
                statuses.append(status)
                return start_response(status, headers, exc_info)
            if kind == BOOT:
                self.arm(fault)
            token = self._own.set(fault)
            try:
                return application(environ, start)
            finally:
                self._own.reset(token)
                if not statuses or statuses[-1] >= "3":  # no server was created: later servers must not fail
                    self._disarm(fault)
        return call

    def intercept(self, asking: Asking) -> None:
        """Apply the faults to a message on the bus. Raises errors.quota.Exceeded or daemon.RpcNoAnswer."""
        if asking.contract is not ConductorRPC or not context.current().user_id:
            return
        over = COUNTED.get(asking.method.name)
        if over is not None and self._happens(QUOTA):
            raise errors.quota.Exceeded(over=over, requested=1, used=0, limit=0)
        if self._loses(context.current().request_id):
            raise errors.daemon.RpcNoAnswer(seconds=asking.seconds, **names_of(asking))

    def check_boot(self, names: tuple[str, ...]) -> None:
        """Fail a guest's first start if a fault applies. ``names``: its uuid, and its name. Raises
        guest.FakeInjected."""
        with self._lock:
            if names[0] not in self._doomed:
                found = next((fault for fault in self._armed if fault.kind == BOOT
                              and any(fault.fits(name) for name in names)), None)
                if found is None:
                    return
                self._use(found)
                self._doomed.append(names[0])
        raise errors.guest.FakeInjected(call=STARTS[0])

    def _loses(self, request_id: str) -> bool:
        """Return whether all calls of this request get no answer: read-only calls are retried, and lost again."""
        if request_id not in self._lost:
            if not self._happens(RPC):
                return False
            self._lost.append(request_id)
        return True

    def _happens(self, kind: str) -> bool:
        """Return whether the request or an active fault causes a failure of this kind, and use it up."""
        own = self._own.get()
        if own is not None and own.kind == kind and own.times:
            own.times = 0
            return True
        with self._lock:
            found = next((fault for fault in self._armed if fault.kind == kind), None)
            if found is not None:
                self._use(found)
        return found is not None

    def _use(self, fault: ArmedFault) -> None:
        fault.times -= 1
        if fault.times <= 0:
            self._armed.remove(fault)


class FaultKnobs(Knobs):
    """Knobs of a host, which include the cloud's faults. Calls on a dead host never end."""

    def __init__(self, state_path: Path, faults: Faults, is_dead: Callable[[], bool]) -> None:
        super().__init__(state_path)
        self._faults, self._is_dead = faults, is_dead

    def apply(self, call: str, when: str, names: tuple[str, ...]) -> None:
        if self._is_dead():
            Block().wait(threading.TIMEOUT_MAX)
        if call in STARTS and when == "before":
            self._faults.check_boot(names)
        super().apply(call, when, names)


def _name_of_server(environ: WSGIEnvironment) -> str:
    """Return the name of a new server in the request, as a pattern; the application can still read the body."""
    body = environ["wsgi.input"].read(min(int(environ.get("CONTENT_LENGTH") or 0), LARGEST_BODY))
    environ["wsgi.input"] = io.BytesIO(body)
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return glob.escape(str(json.loads(body)["server"]["name"]))
    return "*"


def _refused(start_response: StartResponse, message: str) -> list[bytes]:
    body = json.dumps({"badRequest": {"code": 400, "message": message}}).encode()
    start_response("400 Bad Request", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


# --- the resource for administrators


class FaultService(FakeService[Faults]):
    """WSGI application at ``/nova-all``."""

    def __init__(self, faults: Faults, identify: Identify) -> None:
        super().__init__("nova-all", faults, ROUTES, identify)

    def refused(self, http: object, error: FakeError) -> FakeAnswer:
        return FakeAnswer(error.status, {"error": {"code": error.status, "message": error.message}})


def show(faults: Faults, call: FakeCall) -> Mapping[str, object]:
    """GET /faults: list active faults."""
    return {"faults": faults.shown()}


def create(faults: Faults, call: FakeCall) -> Mapping[str, object]:
    """POST /faults: add a fault. Raises 400, which names the member, or 404 for an unknown host."""
    asked = call.member("fault")
    kind = asked.get("kind")
    allowed = {HOST: {"kind", "host"}, BOOT: {"kind", "name", "times"}}.get(str(kind), {"kind", "times"})
    if kind not in (*OF_REQUESTS, HOST):
        raise FakeError(400, f"'kind' must be one of {', '.join((*OF_REQUESTS, HOST))}.")
    if unknown := asked.keys() - allowed:
        raise FakeError(400, f"'{min(unknown)}' is not valid for the kind {kind}.")
    if kind == HOST:
        faults.kill(str(asked.get("host")))
        return {"fault": StoppedHost(str(asked["host"])).shown()}
    name, times = asked.get("name", "*"), asked.get("times", 1)
    if not isinstance(name, str):
        raise FakeError(400, "'name' must be a pattern of servers' names.")
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise FakeError(400, "'times' must be an integer from 1.")
    fault = ArmedFault(str(kind), name, times)
    shown = fault.shown()
    faults.arm(fault)
    return {"fault": shown}


def clear(faults: Faults, call: FakeCall) -> None:
    """DELETE /faults: remove all faults, and restart dead hosts."""
    faults.clear()


ROUTES: tuple[FakeRoute[Faults], ...] = (
    FakeRoute("GET", "/faults", show, authenticated),
    FakeRoute("POST", "/faults", create, admin, success=201),
    FakeRoute("DELETE", "/faults", clear, admin, success=204),
)
