"""All rules as a commented policy file, from which operators copy lines."""

from __future__ import annotations

import textwrap

from nova.policies.base import BASE_RULES, BaseRule, Rule
from nova.policies.registry import ALL_RULES

HEAD = """\
# Policy rules. Generated from the rules in the code; `nova-policy sample` prints this file.
# These are the defaults: copy only the lines that you change to policy.yaml next to nova.conf, without the leading #.
# Changes take effect within a second, without a restart of services. The compute API and Placement's API read the file.
# Every rule is checked in a project: tokens for the whole system or for a domain are refused.

# --- Rules that other rules refer to
"""


def sample() -> str:
    """Return the file as text. Every rule is a comment, so the unchanged file has no effect."""
    return "\n".join([HEAD, *map(_base, BASE_RULES), "# --- Rules of operations\n", *map(_rule, ALL_RULES)])


def _comment(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False,
                         break_on_hyphens=False)


def _base(rule: BaseRule) -> str:
    note = " Only for older policy files." if rule.deprecated else ""
    return f'{_comment(rule.description + note)}\n#"{rule.name}": "{rule.check}"\n'


def _rule(rule: Rule) -> str:
    lines = [_comment(f"{rule.when[0].upper()}{rule.when[1:]}.")] if rule.when else []
    lines += [f"#   {operation}" for operation in rule.operations]
    if rule.old is not None and rule.old.name != rule.name:
        lines.append(f'# Former name: "{rule.old.name}"; a line with that name in your file applies to this rule, too.')
    return "\n".join([*lines, f'#"{rule.name}": "{rule.check}"']) + "\n"
