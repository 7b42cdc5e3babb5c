"""Calls to nova-consoleauth. Only a new token is transmitted itself; all later calls use its hash."""

from __future__ import annotations

from nova.model.guest.consoles import Console, ConsoleConnection, ConsoleRequest, TokenCheck
from nova.rpc.interface import Contract, call


class ConsoleAuthRPC(Contract):
    """Creation and checks of console tokens. Stateless: several servers may run."""

    topic, version = "consoleauth", "1.0"

    @call(sensitive=True)
    def open_console(self, wish: ConsoleRequest) -> Console:
        """Create a token, and return the URL of the console with it. Raises NotFound for the server, WrongState, and
        Conflict if it has no host or no running guest. Raises Invalid if this cloud has no consoles of the type,
        NotSupported by the server's hypervisor, and Unavailable if its host does not answer."""

    @call()
    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """Return the console of a token, for the proxy that received it. The host has confirmed that the console still
        belongs to this server. Raises NotFound if the token is unknown or expired, or its server has left that host.
        Raises Conflict if it was used, Invalid if it is for another proxy, and Unavailable if the check is impossible
        now. The page shows each message to the user."""

    @call()
    def show_token(self, token_hash: str) -> ConsoleConnection:
        """Return the same for an administrator's own proxy, which connects to the returned address. The host has
        confirmed the console, and the token stays unused. Raises NotFound; Unavailable if the check is impossible
        now."""
