"""nova-novncproxy as it is, in a process of its own; a stand-in here answers for nova-consoleauth.

    python -m tests.bench.consoles.proxy_process TOKEN=PORT[,TOKEN=PORT ...] --config-file FILE
"""

from __future__ import annotations

import sys
import time
from typing import Any

from nova import concurrency, configuration, errors, logs, service
from nova.cmd import console_proxy
from nova.conf import proxies
from nova.service_start import DaemonService

BINARY = "nova-novncproxy"


class Auth:
    """Knows tokens, and at which port of this machine, which is ``host``, the console of each is."""

    def __init__(self, ports: dict[str, int], host: str) -> None:
        from nova.model.guest.consoles import token_hash

        self.host = host
        self.ports = {token_hash(token): port for token, port in ports.items()}

    def check_token(self, check: Any) -> Any:
        from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleType

        if check.token_hash not in self.ports:
            raise errors.NotFound("There is no such token.")
        address = ConsoleAddress(access_url_base="http://127.0.0.1/", host="127.0.0.1",
                                 port=self.ports[check.token_hash])
        return ConsoleConnection(type=ConsoleType.NOVNC, server_uuid="bench", user_id="bench", project_id="bench",
                                 address=address, expires_at=int(time.time()) + 3600, host=self.host)


def main(tokens: str, *arguments: str) -> int:
    from nova.console.kinds import KINDS

    ports = {name: int(port) for name, _, port in (pair.partition("=") for pair in tokens.split(","))}
    options = configuration.read(BINARY, list(arguments), [*proxies.CLI_OPTS, *proxies.CLI_ONLY])
    concurrency.patch()
    logs.set_up(options, BINARY)
    from nova.rpc import local
    from nova.rpc.contracts.console_auth import ConsoleAuthRPC

    parts = console_proxy.ProxyParts(options, KINDS[BINARY])
    sock = console_proxy.bind(options, parts.kind)
    console_proxy.more_files(options.console.max_sessions)

    def make(_index: int) -> DaemonService:
        bus = local.LocalBus()
        bus.serve(ConsoleAuthRPC, _Whole(ports, options.host))
        proxy = console_proxy.Proxy(options, parts, sock)
        proxy.access.auth = bus.client(ConsoleAuthRPC)
        return proxy

    return service.run(options, BINARY, make)


class _Whole(Auth):
    """All of the contract: what a proxy never asks is refused."""

    def open_console(self, wish: Any) -> Any:
        raise errors.Invalid("No proxy asks this.")

    def show_token(self, token_hash: str) -> Any:
        raise errors.Invalid("No proxy asks this.")


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
