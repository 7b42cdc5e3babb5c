"""The part of ``ConductorRPC`` that nova-consoleauth asks."""

from __future__ import annotations

from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleGrant, TokenCheck
from nova.rpc.interface import call


class ConsoleCalls:
    """Where consoles are, and what their tokens stand for. Of a token, only its hash is ever told."""

    @call(since="1.2")
    def keep_console(self, grant: ConsoleGrant) -> ConsoleAddress:
        """Ask the server's host where the console is, and keep the token's hash for it. NotFound, WrongState; Conflict:
        no host, or no running guest; Invalid, NotSupported: no such console; Unavailable: the host is away."""

    @call(since="1.2")
    def check_console(self, check: TokenCheck) -> ConsoleConnection:
        """What a token opens, if its server is still where it was, nothing has ended its consoles, and its host says
        that the console is there. NotFound, Conflict (used up), Invalid (another proxy's), Unavailable."""

    @call(since="1.2")
    def get_console(self, token_hash: str) -> ConsoleConnection:
        """The same for an administrator's proxy, which connects by itself: a used token is NotFound, too.
        Unavailable: its host does not answer."""
