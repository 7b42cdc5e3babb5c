"""Operations that require root: small functions with argument lists, never a shell.

If the process is root, they run in it. A daemon that is not root sends them to the helper: see
:mod:`nova.privileged.client` and :mod:`nova.privileged.helper`.
"""

from __future__ import annotations


def __getattr__(name: str) -> object:
    """Load ``sys_admin_pctxt``, the oslo.privsep context, under the name that sudoers files and filters of deployment
    tools use. The library is loaded only on access."""
    if name != "sys_admin_pctxt":
        raise AttributeError(name)
    from nova.privileged import privsep

    return privsep.CONTEXT
