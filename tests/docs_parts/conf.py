"""``etc/nova/nova.conf.sample`` and the page of options, from ``nova.conf``."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from oslo_config import cfg

from nova import conf
from nova.conf._span import TimeSpan
from nova.conf._urls import Url
from nova.conf._without_effect import EVERY, table
from tests.docs_parts import rst

KINDS: tuple[tuple[type[cfg.Opt], str], ...] = (
    (cfg.MultiStrOpt, "text, repeatable"), (cfg.PortOpt, "port"), (cfg.IntOpt, "integer"), (cfg.FloatOpt, "number"),
    (cfg.BoolOpt, "boolean"), (cfg.ListOpt, "list"), (cfg.HostDomainOpt, "host name"),
    (cfg.HostAddressOpt, "host address"), (cfg.URIOpt, "URI"), (cfg.StrOpt, "text"))


class Library(NamedTuple):
    """An option of a library. Libraries have many more; the listed ones are set by operators."""

    group: str
    name: str
    default: str
    help: str


LIBRARY = (
    Library("DEFAULT", "transport_url", "rabbit://",
            "The message broker: rabbit://USER:PASSWORD@HOST:5672/VHOST; several hosts are separated by commas. Every "
            "daemon needs it. Give each compute host a broker user of its own."),
    Library("DEFAULT", "rpc_response_timeout", "60",
            "Timeout, in seconds, of an RPC call that is neither very short nor work on a host."),
    Library("oslo_messaging_rabbit", "ssl", "false", "Use TLS for connections to the broker."),
    Library("oslo_messaging_rabbit", "rabbit_interval_max", "2",
            "The longest interval, in seconds, between two attempts to reconnect to the broker (the library's own "
            "default is 30)."),
    Library("keystone_authtoken", "auth_type", "<None>", "Authentication plug-in for Keystone: password."),
    Library("keystone_authtoken", "auth_url", "<None>", "URL of Keystone, for example http://controller:5000."),
    Library("keystone_authtoken", "www_authenticate_uri", "<None>",
            "Public URL of Keystone, returned to clients whose token is refused."),
    Library("keystone_authtoken", "username", "<None>", "User of this service: nova."),
    Library("keystone_authtoken", "password", "<None>", "Password of this user."),
    Library("keystone_authtoken", "user_domain_name", "<None>", "Domain of this user: Default."),
    Library("keystone_authtoken", "project_name", "<None>", "Project of this user: service."),
    Library("keystone_authtoken", "project_domain_name", "<None>", "Domain of this project: Default."),
    Library("keystone_authtoken", "memcached_servers", "<None>",
            "Cache of validated tokens: unix:/path of a socket that only the services' user may use, or HOST:PORT, "
            "which has no authentication (access to it is equal to administrator rights). Hosts do not need it. "
            "Needs the extra `memcached` of nova's package."),
    Library("oslo_policy", "policy_file", "policy.yaml", "Changes to the access rules; see policy.yaml.sample."),
    Library("oslo_policy", "enforce_new_defaults", "true",
            "Use the defaults for the roles reader, member and manager. false: the older ones, for admin or owner."),
    Library("oslo_middleware", "enable_proxy_headers_parsing", "false",
            "Trust X-Forwarded-* headers. Use it only behind a proxy that sets them itself."),
    Library("oslo_middleware", "max_request_body_size", "114688", "Maximum size of a request body, in bytes."),
    Library("cors", "allowed_origin", "<None>", "Origins (http://dashboard.example) of pages that may call the API."),
)


def kind_of(option: cfg.Opt) -> str:
    """Return an option's type and limits as text."""
    if isinstance(option.type, TimeSpan):
        return "days, or a number with s, m, h or d"
    if isinstance(option.type, Url):
        return "URL"
    name = next(name for kind, name in KINDS if isinstance(option, kind))
    low, high = getattr(option.type, "min", None), getattr(option.type, "max", None)
    if name == "port" or (low, high) == (None, None):
        return name
    if high is None:
        return f"{name}, at least {low}"
    return f"{name}, at most {high}" if low is None else f"{name}, {low} to {high}"


def defaults_of(option: cfg.Opt) -> list[str]:
    """Return the default as the lines of a file; it is the same on every machine."""
    value = option.default if option.sample_default is None else option.sample_default
    if value is None:
        return ["<None>"]
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(option, cfg.MultiStrOpt):
        return [str(one) for one in value] or ["<None>"]
    return [",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]


def choices_of(option: cfg.Opt) -> dict[Any, str]:
    """Return the choices of an option: value -> meaning (empty if the help has it)."""
    choices = getattr(option.type, "choices", None) or {}
    return {value: meaning or "" for value, meaning in dict(choices).items()}


def old_names(option: cfg.Opt, group: str) -> list[str]:
    return [f"[{old.group or group}]{old.name or option.dest}" for old in option.deprecated_opts]


def groups() -> Iterator[tuple[str, list[ModuleType]]]:
    """Yield the sections with their modules: [DEFAULT] first, the others by name."""
    found: dict[str, list[ModuleType]] = {}
    for module in conf.sections():
        found.setdefault(module.GROUP, []).append(module)
    for name in sorted(found, key=lambda name: (name != "DEFAULT", name)):
        yield name, found[name]


# -- nova.conf.sample

HEAD = """\
# All options of nova's daemons with their defaults. Generated from the code by `bin/test docs --write`.
# A working file is short: see nova.conf next to this one. Sections and names are the same as in older nova.conf files.
# Database URLs belong in nova-conductor.conf (mode 0600): other daemons do not start if they are given one.
"""


def sample() -> str:
    parts = [HEAD]
    written = set()
    for group, modules in groups():
        written.add(group)
        parts.append(f"\n[{group}]\n")
        parts += [_library(option) for option in LIBRARY if option.group == group]
        for module in modules:
            if len(modules) > 1:
                parts.append(f"\n# --- {_about(module)}\n")
            parts += [_option(option, group) for option in module.OPTS]
    for group in dict.fromkeys(option.group for option in LIBRARY if option.group not in written):
        parts.append(f"\n[{group}]\n# More options: the library's own documentation.\n")
        parts += [_library(option) for option in LIBRARY if option.group == group]
    return "".join(parts)


def _about(module: ModuleType) -> str:
    """Return the first sentence of the section's module, without its name."""
    return " ".join((module.__doc__ or "").split("\n\n")[0].split()).partition("]``")[2].strip(" :").replace("``", "")


def _comment(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False,
                         break_on_hyphens=False)


def _option(option: cfg.Opt, group: str) -> str:
    notes = [kind_of(option)]
    notes += ["can change while running (SIGHUP)"] * bool(option.mutable)
    notes += [f"old name {name}" for name in old_names(option, group)]
    lines = ["", _comment(option.help or ""), f"# ({'; '.join(notes)})"]
    lines += [f"#   {value}: {meaning}" if meaning else f"#   {value}" for value, meaning in choices_of(option).items()]
    lines += [f"#{option.dest} = {value}".rstrip() for value in defaults_of(option)]
    return "\n".join(lines) + "\n"


def _library(option: Library) -> str:
    return f"\n{_comment(option.help)}\n#{option.name} = {option.default}\n"


# -- doc/generated/options.rst

INTRO = """\
All options of nova, by section of ``nova.conf``. Libraries have more options; the important ones are marked *library*.
``<None>`` means that no value is set. `Operating <../operating.rst>`_ explains the defaults that differ from older Nova
releases.
"""


def page() -> str:
    parts = [rst.MARK, rst.heading("Options of nova.conf"), INTRO]
    written = set()
    for group, modules in groups():
        written.add(group)
        rows = [_library_row(option) for option in LIBRARY if option.group == group]
        rows += [_row(option, group) for module in modules for option in module.OPTS]
        parts.append(_section(group, rows))
    for group in dict.fromkeys(option.group for option in LIBRARY if option.group not in written):
        parts.append(_section(group, [_library_row(option) for option in LIBRARY if option.group == group]))
    return "\n".join([*parts, _without_effect()])


IDLE_INTRO = """\
Options of this and older Nova releases, and of libraries that they used. Daemons ignore them. ``nova-manage doctor
--check options`` lists the ones in your files. "Fails" means that this check fails, because you may rely on a missing
protection.
"""
WORDS = {EVERY: "all", "(adapter)": "keystoneauth's options of adapters, where this section does not read them",
         "(credentials)": "keystoneauth's credentials"}


def _without_effect() -> str:
    """Return the section of options without effect, with one row for each section and reason."""
    rows = []
    for (section, said), found in itertools.groupby(table(), key=lambda row: (row[0], row[2])):
        names = ", ".join(WORDS.get(name) or rst.literal(name) for _section, name, _said in found)
        fails = f" Fails with some values: {said.cure}." if said.unprotected else ""
        rows.append((rst.literal(f"[{section}]"), names, rst.plain(said.reason + fails)))
    return rst.heading("Options without effect", "-") + "\n" + IDLE_INTRO + "\n" + rst.table(
        ("Section", "Options", "Why"), rows, (20, 35, 45))


def _section(group: str, rows: list[tuple[str, ...]]) -> str:
    return rst.heading(f"[{group}]", "-") + "\n" + rst.table(("Option", "Type", "Default", "Meaning"), rows,
                                                            (20, 15, 20, 45))


def _row(option: cfg.Opt, group: str) -> tuple[str, ...]:
    default = ", ".join(rst.literal(value) if value else "(empty)" for value in defaults_of(option))
    meaning = rst.plain(option.help or "")
    if choices := choices_of(option):
        meaning += " One of " + ", ".join(rst.literal(str(value)) for value in choices) + "."
    if names := old_names(option, group):
        meaning += " Old names: " + ", ".join(map(rst.literal, names)) + "."
    return rst.literal(option.dest), kind_of(option), default, meaning


def _library_row(option: Library) -> tuple[str, ...]:
    return rst.literal(option.name), "*library*", rst.literal(option.default), rst.plain(option.help)
