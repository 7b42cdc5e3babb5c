"""Check of the generated documentation against the code.

    python -m tests.docs            check; lists files that are out of date, with exit status 1
    python -m tests.docs --write    write them

The tables in ``nova`` are the source; the texts are for readers who do not read Python. They do not depend on the
machine (no host name, CPU count or path: an option whose default depends on those has a sample_default).
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from tests.docs_parts import (
    api,
    command_reference,
    completion,
    conf,
    devices,
    errors,
    man,
    notifications,
    policies,
    rpc,
    states,
)

TOP = Path(__file__).resolve().parent.parent
SHOWN = 12  # lines of difference for each file

#: file -> function that writes its text
PAGES: dict[str, Callable[[], str]] = {
    "etc/completion/nova-manage": completion.script,
    "etc/nova/nova.conf.sample": conf.sample,
    "etc/nova/policy.yaml.sample": policies.sample,
    "doc/generated/api.rst": api.page,
    "doc/generated/commands.rst": command_reference.page,
    "doc/generated/devices.rst": devices.page,
    "doc/generated/errors.rst": errors.page,
    "doc/generated/notifications.rst": notifications.page,
    "doc/generated/options.rst": conf.page,
    "doc/generated/rpc.rst": rpc.page,
    "doc/generated/states.rst": states.page,
    **man.pages(),
}


def stale(top: Path = TOP) -> dict[str, str]:
    """Return the files that are missing or differ from the code: name -> the beginning of the difference."""
    found = {}
    for name, make in PAGES.items():
        path, wanted = top / name, make()
        have = path.read_text() if path.exists() else ""
        if have != wanted:
            both = have.splitlines(), wanted.splitlines()
            lines = difflib.unified_diff(*both, "on disk", "should be", lineterm="", n=0)
            found[name] = "\n".join(list(lines)[:SHOWN])
    return found


def write(top: Path = TOP) -> list[str]:
    """Write the stale files and return their names."""
    names = list(stale(top))
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGES[name]())
    return names


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files that are out of date")
    if parser.parse_args(argv).write:
        names = write()
        print("\n".join(f"wrote {name}" for name in names) or f"all {len(PAGES)} generated files were up to date")
        return 0
    found = stale()
    for name, difference in found.items():
        print(f"{name} is out of date: run `bin/test docs --write`\n{difference}")
    if not found:
        print(f"all {len(PAGES)} generated files are up to date")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
