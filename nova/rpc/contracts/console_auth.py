"""What may be asked of nova-consoleauth. No token but a new one crosses the wire: all else goes by hashes."""

from __future__ import annotations

from nova.model.guest.consoles import Console, ConsoleConnection, ConsoleRequest, TokenCheck
from nova.rpc.interface import Contract, call


class ConsoleAuthRPC(Contract):
    """Issues the tokens of consoles and checks them. Keeps nothing itself: several may run."""

    topic, version = "consoleauth", "1.0"

    @call(sensitive=True)
    def open_console(self, wish: ConsoleRequest) -> Console:
        """A new token, in the address where its user's program finds the console. NotFound: the server. Conflict: it
        has no host, or no running guest. WrongState. Invalid: this cloud has no consoles of the type. NotSupported: the
        server's hypervisor has none. Unavailable: its host does not answer."""

    @call()
    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """What the token opens, for the proxy that was shown it; the host has confirmed that it still is this server's.
        NotFound: unknown, expired, or its server has gone from there. Conflict: used up. Invalid: another proxy's.
        Unavailable: it cannot be told now. Each message is written for the user who looks at the page."""

    @call()
    def show_token(self, token_hash: str) -> ConsoleConnection:
        """The same for an administrator, whose proxy goes to what it is told: the host has confirmed it, and nothing is
        used up. NotFound; Unavailable: it cannot be told now."""
