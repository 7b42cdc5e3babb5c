"""The operator's policy files: find, read and validate them before use.

A file is YAML (or JSON): rule name -> check. The main file is ``[oslo_policy]policy_file``; files in ``policy_dirs``
add to it, in the order of their names, and later ones override earlier ones.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_policy import policy

from nova import errors

LOG = logging.getLogger(__name__)

NOBODY = "!"  # a check that always fails: as in files, and as the library shows a check that it could not parse
Signature = tuple[tuple[str, int, int], ...]


def require(conf: cfg.ConfigOpts) -> None:
    """Raise api.PolicyMissingFile for a missing file or directory that the operator configured: without its rules the
    cloud would admit users whom they exclude. The default ones may be missing."""
    for name in ("policy_file", "policy_dirs"):
        location = conf.get_location(name, "oslo_policy")
        if location is None or not location.location.is_user_controlled:
            continue
        given = conf.oslo_policy[name]
        if any(conf.find_file(path) is None for path in ([given] if isinstance(given, str) else given)):
            raise errors.api.PolicyMissingFile(option=f"[oslo_policy]{name}")


def gone(before: Iterable[Path], now: Iterable[Path], conf: cfg.ConfigOpts) -> list[Path]:
    """Return the main file or directories that disappeared. A file removed from a directory is not reported: that is
    the operator's way to remove its rules."""
    folders = {Path(path) for folder in conf.oslo_policy.policy_dirs if (path := conf.find_file(folder))}
    return [path for path in before if path not in set(now) and path.parent not in folders]


def found(conf: cfg.ConfigOpts) -> list[Path]:
    """Return the present files, the main file first, then each directory's by name. A missing file is not an error."""
    main = conf.find_file(conf.oslo_policy.policy_file)
    files = [Path(main)] if main and os.path.isfile(main) else []
    for folder in conf.oslo_policy.policy_dirs:
        path = conf.find_file(folder)
        if path and os.path.isdir(path):
            files += sorted(one for one in Path(path).iterdir() if one.is_file() and not one.name.startswith("."))
    return files


def signature(files: Iterable[Path]) -> Signature:
    """Return a value that differs after a file was changed, added or removed."""
    marks = []
    for path in files:
        try:
            stat = path.stat()
        except OSError:
            continue
        marks.append((str(path), stat.st_mtime_ns, stat.st_size))
    return tuple(marks)


def check(files: Iterable[Path], known: Mapping[str, str]) -> None:
    """Validate the files: raise api.PolicyBadFile for errors, and log a warning for unused names.

    ``known``: the names of nova's rules, and their former names, each with its check.
    """
    given: dict[str, tuple[str, Path]] = {}
    for path in files:
        for name, check in _read(path).items():
            given[name] = (check, path)
    named: set[str] = set()
    named_by = {name: _references(path, name, check) for name, (check, path) in given.items()}
    for name, (_check, path) in given.items():
        references = named_by[name]
        missing = references - set(known) - set(given)
        if missing:
            raise errors.api.PolicyBadFile(path=path, reason=f'"{name}" refers to rule:{min(missing)}, which does not '
                                           f"exist{_near(min(missing), known)}")
        named |= references
    _check_circles(given, named_by, known)
    for name, (_check, path) in given.items():
        if name not in known and name not in named:
            LOG.warning('%s: "%s" is not a rule of this release, and no rule refers to it: the line has no effect%s',
                        path, name, _near(name, known))


def _check_circles(given: Mapping[str, tuple[str, Path]], named_by: Mapping[str, set[str]],
                   known: Mapping[str, str]) -> None:
    """Raise api.PolicyBadFile for a circular rule, for which the library would load no rules at all."""
    nexts = dict(named_by)

    def next_of(name: str, path: Path) -> set[str]:
        if name not in nexts:
            nexts[name] = _references(path, name, known[name])
        return nexts[name]
    for name, (_check, path) in given.items():
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            for following in next_of(waiting.pop(), path) - seen:
                if following == name:
                    raise errors.api.PolicyBadFile(path=path,
                                                   reason=f'"{name}" refers to itself, possibly through other rules')
                seen.add(following)
                waiting.append(following)


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.8)
    return f'; "{close[0]}" is a similar rule' if close else ""


def _read(path: Path) -> dict[str, str]:
    try:
        rules = policy.parse_file_contents(path.read_text())
    except OSError as error:
        raise errors.api.PolicyBadFile(path=path, reason=f"it cannot be read: {error.strerror}") from None
    except ValueError as error:  # also for text that is not valid UTF-8
        raise errors.api.PolicyBadFile(path=path, reason=" ".join(str(error).split())) from None
    if not isinstance(rules, dict):
        raise errors.api.PolicyBadFile(path=path, reason='it must contain lines of the form "rule": "check"')
    for name, check in rules.items():
        if not isinstance(name, str) or not isinstance(check, (str, list)):
            raise errors.api.PolicyBadFile(path=path,
                                           reason=f'the check of "{name}" must be a text, such as "role:admin"')
    return rules


def _references(path: Path, name: str, text: str) -> set[str]:
    """Return the rules that a check refers to by ``rule:``. Raises api.PolicyBadFile if it cannot be parsed."""
    quiet = logging.getLogger("oslo_policy")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)  # the library logs a traceback and parses the rule as always failing
    try:
        check = policy.Rules.from_dict({name: text})[name]
    finally:
        quiet.setLevel(level)
    if str(check) == NOBODY and text != NOBODY:
        raise errors.api.PolicyBadFile(path=path, reason=f'the check of "{name}" cannot be parsed: {text}')
    return set(_rules_of(check))


def _rules_of(check: object) -> Iterable[str]:
    if isinstance(check, policy.RuleCheck):
        yield check.match
    for inner in [*getattr(check, "rules", ()), *filter(None, [getattr(check, "rule", None)])]:
        yield from _rules_of(inner)
