"""nova-policy: check which policy rules a user passes, and print a sample policy file.

    nova-policy policy check [--api-name PART] [--target KEY=VALUE ...]     the rules that --os-roles ... pass
    nova-policy sample                                                      a commented policy.yaml

Exit codes: 0 all named rules pass (or none was named); 1 some do not; 2 invalid command line, configuration or policy
file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from nova import concurrency, configuration, context, errors
from nova.cmd import tool_ending, tool_log
from nova.conf._options import Options, oslo_conf
from nova.configuration.tool_arguments import add_common, words_of
from nova.policies import Policy, list_rules
from nova.policies.sample import sample

BINARY = "nova-policy"
SERVER = "instance_id"
TARGETS = ("project_id", "user_id", SERVER, "quota_class", "availability_zone")
BASE = {rule.name for rule in list_rules() if not getattr(rule, "operations", None)}

#: flags -> environment variables with their defaults, in order of precedence, and the help
CREDENTIALS = {("--os-roles",): (("OS_ROLES",), "comma-separated roles"),
               ("--os-user-id",): (("OS_USER_ID",), "id of the user"),
               ("--os-tenant-id", "--os-project-id"): (("OS_TENANT_ID", "OS_PROJECT_ID"), "id of the project"),
               ("--os-system-scope",): (("OS_SYSTEM_SCOPE",), "'all' for a token of the whole system")}


def allowed(policy: Policy, caller: context.RequestContext, part: str | None,
            target: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return (names of rules that pass, names of rules that fail) among rules whose name contains ``part``. Raises
    api.PolicyNoSuchRule."""
    names = sorted(rule.name for rule in list_rules()
                   if (part in rule.name if part else rule.name not in BASE))
    if not names:
        raise errors.api.PolicyNoSuchRule(part=part)
    passed = [name for name in names if policy.allows(caller, name, target)]
    return passed, [name for name in names if name not in passed]


def targets(words: Sequence[str]) -> dict[str, str]:
    """Parse ``["project_id=a", "user_id=b,..."]`` into a dict. Raises api.PolicyBadTarget."""
    found = {}
    for word in (one for group in words for one in group.split(",") if one):
        name, sign, value = word.partition("=")
        if not sign or not value or name not in TARGETS:
            raise errors.api.PolicyBadTarget(word=word, known=", ".join(TARGETS))
        found[name] = value
    return found


def caller_of(given: argparse.Namespace, policy: Policy) -> context.RequestContext:
    """Return the context of the command line's credentials. The policy decides whether it is an administrator."""
    roles = tuple(role.strip() for role in (given.os_roles or "").split(",") if role.strip())
    fields: dict[str, Any] = {"request_id": context.new_request_id(), "user_id": given.os_user_id, "roles": roles,
                              "project_id": given.os_tenant_id, "system_scope": given.os_system_scope}
    plain = context.RequestContext(**fields)
    return context.RequestContext(**fields, is_admin=policy.is_admin(plain))


def check(options: Options, given: argparse.Namespace) -> int:
    """Print the names of the rules that pass, one per line. Return 0; 1 if a rule that ``--api-name`` selects fails.

    Raises api.PolicyNoSuchRule, api.PolicyBadTarget; NotFound, Unavailable if the target is a server."""
    policy = Policy(oslo_conf(options))
    caller, target = caller_of(given, policy), targets([word for words in given.target or () for word in words])
    if SERVER in target:
        target = _of_server(options, target.pop(SERVER))
    passed, refused = allowed(policy, caller, given.api_name,
                              {"project_id": caller.project_id or "", "user_id": caller.user_id or "", **target})
    sys.stdout.writelines(f"{name}\n" for name in passed)
    return int(bool(given.api_name and refused))


def _of_server(options: Options, uuid: str) -> dict[str, str]:
    """Return the project and user of a server, from the conductor. Raises NotFound, Unavailable."""
    from nova.model.server.servers import ServerQuery
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    bus = Bus(options, options.host)
    try:
        with context.entered(context.internal()):
            server = bus.client(ConductorRPC).get_target(ServerQuery(uuid=uuid))
    finally:
        bus.close()
    return {"project_id": server.project_id, "user_id": server.user_id}


def show_sample(options: Options | None, given: argparse.Namespace) -> int:
    """Print a policy.yaml with every rule as a comment. The configuration is not read: ``options`` may be None."""
    sys.stdout.write(sample())
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. ``run`` is the command's function; missing if no command is given."""
    top = argparse.ArgumentParser(prog=BINARY, description=(__doc__ or "").split("\n\n")[0])
    add_common(top)
    _add_credentials(top)
    categories = top.add_subparsers(metavar="COMMAND")
    policy = categories.add_parser("policy", help="check rules").add_subparsers(metavar="ACTION")
    about = "print the rules that the credentials pass"
    one = policy.add_parser("check", help=about, description=about)
    one.add_argument("--config-file", action="append", default=argparse.SUPPRESS, metavar="FILE",
                     help="default: /etc/nova/nova.conf")
    _add_credentials(one, default=argparse.SUPPRESS)
    one.add_argument("--api-name", metavar="PART", help="only rules whose name contains this; exit code 1 if one of "
                                                        "them fails")
    one.add_argument("--target", metavar="KEY=VALUE", nargs="+", action="append",
                     help=f"owner of the resource: {', '.join(TARGETS)}. With {SERVER} (a server's UUID): the server's "
                          "project and user (default: the caller's own)")
    one.set_defaults(run=check)
    about = "print a commented policy.yaml of all rules"
    printed = categories.add_parser("sample", help=about, description=about)
    printed.set_defaults(run=show_sample)
    return top


def _add_credentials(parser: argparse.ArgumentParser, default: object = None) -> None:
    """Add the credential options, which may come before or after the command."""
    for flags, (variables, words) in CREDENTIALS.items():
        fallback = next((os.environ[name] for name in variables if os.environ.get(name)), None)
        parser.add_argument(*flags, default=default or fallback, metavar="VALUE", help=f"{words}; {variables[0]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run nova-policy and return its exit code. ``argv`` None: the command line."""
    top = parser()
    given = top.parse_args(argv)
    if not hasattr(given, "run"):
        top.print_help()
        return 2
    if given.run is show_sample:
        return show_sample(None, given)
    concurrency.patch("threads")
    options = configuration.load(BINARY, words_of(given))
    tool_log.set_up(options, BINARY, given.log_words)
    return tool_ending.status(options, BINARY, lambda: int(given.run(options, given)), failed=2,
                         post_mortem=given.post_mortem)


if __name__ == "__main__":
    raise SystemExit(main())
