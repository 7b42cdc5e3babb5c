"""The few things that root alone may do: small functions, argument lists only, never a shell.

As root they run where they are called. A daemon that is not root sends them to the helper: see
:mod:`nova.privileged.client` and :mod:`nova.privileged.helper`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """``sys_admin_pctxt``: the context of oslo.privsep, by the name that sudoers and filters of deployment tools have.
    The library is loaded for who asks for it alone."""
    if name != "sys_admin_pctxt":
        raise AttributeError(name)
    from nova.privileged import privsep

    return privsep.CONTEXT
