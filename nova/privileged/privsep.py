"""The helper by sudo: oslo.privsep's daemon, which ``sudo nova-rootwrap /etc/nova/rootwrap.conf privsep-helper ...``
starts at the first call, and which ends with this process. Its only entrypoint is the table of
:mod:`nova.privileged.helper`.

An operation that it began runs to its end: oslo.privsep does not tell its daemon that the caller stopped waiting.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_privsep import capabilities as caps
from oslo_privsep import priv_context

from nova import errors
from nova.conf._options import Options, oslo_conf

if TYPE_CHECKING:
    from nova.privileged.helper.settings import HelperSettings

LOG = logging.getLogger(__name__)

SECTION, PLAIN_SECTION = "nova_sys_admin", "privsep_entrypoint"
MOST_CALLS = 64  # concurrent, including copies of disks
#: For bridges and filters; disks of other users; the sandbox's namespaces, and its change to nobody; mounts of the
#: host.
CAPABILITIES = (caps.CAP_CHOWN, caps.CAP_DAC_OVERRIDE, caps.CAP_DAC_READ_SEARCH, caps.CAP_FOWNER, caps.CAP_KILL,
                caps.CAP_SETGID, caps.CAP_SETUID, caps.CAP_SETPCAP, caps.CAP_NET_BIND_SERVICE, caps.CAP_NET_ADMIN,
                caps.CAP_NET_RAW, caps.CAP_SYS_ADMIN, caps.CAP_SYS_CHROOT, caps.CAP_SYS_PTRACE, caps.CAP_IPC_LOCK)

CONTEXT = priv_context.PrivContext("nova", cfg_section=SECTION, pypath="nova.privileged.sys_admin_pctxt",
                                   capabilities=CAPABILITIES)
cfg.CONF.set_default("thread_pool_size", MOST_CALLS, group=SECTION)


@CONTEXT.entrypoint
def dispatch(request: bytes) -> bytes:
    """Return the answer of the table; runs in the daemon."""
    from nova.privileged.helper import table

    return table.dispatch(bytes(request), _settings())


@functools.cache
def _settings() -> HelperSettings:
    """Return settings from the daemon's own reading of the files that its command names; oslo.privsep has not read
    nova's options."""
    from nova import conf
    from nova.privileged.helper.settings import settings_of

    os.umask(0o022)  # the library sets none
    own = conf.register(cfg.ConfigOpts())
    own([word for file in cfg.CONF.config_file or () for word in ("--config-file", file)], project="nova")
    return settings_of(Options.of(own))


class PrivsepHelper:
    """Client of the privsep daemon. ``conf``: the process's configuration, which the library reads too."""

    name = "sudo and oslo.privsep"

    def __init__(self, conf: Options) -> None:
        priv_context.init(["sudo", "nova-rootwrap", conf.rootwrap_config])
        plain = _plain_command(oslo_conf(conf))
        if plain:
            oslo_conf(conf).set_default("helper_command", plain, group=SECTION)

    def ask(self, request: bytes, call: str) -> bytes:
        try:
            return bytes(dispatch(request))
        except errors.NovaError:
            raise
        except Exception as error:  # the library raises arbitrary exceptions: its daemon's end, or sudo's refusal
            reason = " ".join(f"{error}".split())[:300] or type(error).__name__
            if CONTEXT.channel is None:
                raise errors.host.NoHelper(reason=f"sudo did not start privsep-helper ({reason})") from error
            raise errors.host.HelperDied(call=call, reason=reason) from error


def can_be_started(conf: Options) -> str:
    """Return why privsep cannot be started; empty if it probably can."""
    source = oslo_conf(conf)
    source.register_opts(priv_context.OPTS, group=SECTION)
    if source.nova_sys_admin.helper_command or _plain_command(source):
        return ""
    if shutil.which("sudo") is None:
        return "sudo is not installed"
    return "" if Path(conf.rootwrap_config).exists() else f"{conf.rootwrap_config} does not exist"


def _plain_command(conf: cfg.ConfigOpts) -> str:
    """Return the command that some tools configure for all contexts."""
    conf.register_opts(priv_context.OPTS, group=PLAIN_SECTION)
    return conf[PLAIN_SECTION].helper_command or ""


__all__ = ["CONTEXT", "PrivsepHelper", "can_be_started", "dispatch"]
