"""Error kinds, and one catalogue of errors for each noun.

A row of a catalogue is an exception class with a stable ``code``, which has one meaning, and a ``message`` template:
``raise errors.host.NotFound(host=name)`` has the code ``host.not_found``. Between processes an error travels as (kind,
code, message, data). The receiver raises the *kind*; callers that must distinguish two errors of one kind compare
``code``. ``doc/generated/errors.rst`` lists all errors.
"""

from nova.errors import (
    aggregate,
    api,
    bundle,
    cell,
    cert,
    config,
    console,
    daemon,
    dns,
    flavor,
    floating,
    guest,
    host,
    image,
    metadata,
    move,
    network,
    orphan,
    placement,
    quota,
    security_group,
    server,
    service,
    volume,
)
from nova.errors.kinds import (
    KINDS,
    Bug,
    ClaimConflict,
    Conflict,
    Forbidden,
    Gone,
    HostRefused,
    Invalid,
    NotFound,
    NotSupported,
    NovaError,
    NoValidHost,
    OverQuota,
    Overtaken,
    PeerTooOld,
    Unavailable,
    WrongState,
    code_on_wire,
    from_wire,
)

__all__ = ["Bug", "ClaimConflict", "Conflict", "Forbidden", "Gone", "HostRefused", "Invalid", "KINDS", "NotFound",
           "NoValidHost", "NotSupported", "NovaError", "OverQuota", "Overtaken", "PeerTooOld", "Unavailable",
           "WrongState", "aggregate", "api", "bundle", "cell", "cert", "code_on_wire", "config", "console", "daemon",
           "dns", "flavor", "floating", "from_wire", "guest", "host", "image", "metadata", "move", "network", "orphan",
           "placement", "quota", "security_group", "server", "service", "volume"]
