"""Write the golden files of contracts and wire values that are new.

    python tests/golden/regenerate.py [--same-version]

A contract that changed needs a new version first (see the docstring of ``nova.rpc.contracts``). Of a new minor version
the file takes the place of the one before it, whose methods are kept as hashes; that of a new major version is written
beside it. ``--same-version`` writes over what was never released.
"""

from __future__ import annotations

import json
import pathlib
import sys

import msgspec

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from nova.rpc.interface import Contract, parse_version  # noqa: E402
from tests.golden import minors, shapes  # noqa: E402


def write_contracts(same_version: bool) -> list[str]:
    """The complaints about contracts that changed without a new version, or too much for the version they have."""
    return [line for contract in shapes.contracts() for line in _write_contract(contract, same_version)]


def _write_contract(contract: type[Contract], same_version: bool) -> list[str]:
    name, shape = contract.__name__, shapes.shape_of_contract(contract)
    files = shapes.contract_files(name)
    before = [path for version, path in files.items() if _major(version) == _major(contract.version)]
    old = shapes.read_contract(before[0]) if before else {**shape, "added": {}}
    changed = shapes.differences({**old, "added": None}, {**shape, "added": None})
    if old["version"] == shape["version"] and changed and not same_version:
        return [f"{name} changed: bump the version, which is {contract.version}", *(f"  {line}" for line in changed)]
    if old["version"] != shape["version"]:
        broken = shapes.breaks(old, shape)
        if broken:
            return [f"{name}: {old['version']} to {contract.version} needs a new major version",
                    *(f"  {line}" for line in broken)]
        kept = shapes.older()
        kept.setdefault(name, {})[old["version"]] = minors.hashes(old, old["version"])
        _write(shapes.CONTRACTS / shapes.OLDER, shapes.to_json(kept))
        before[0].unlink()
    _write(shapes.CONTRACTS / f"{name}-{contract.version}.json",
           shapes.to_json({**shape, "added": minors.added(old, shape)}))
    return []


def _major(version: str) -> int:
    return parse_version(version)[0]


def write_values(same_version: bool) -> None:
    for kind in shapes.values():
        text = shapes.to_json(json.loads(msgspec.json.encode(shapes.example(kind))))
        files = shapes.value_files(kind.__name__)
        if files and (same_version or files[-1].read_text() == text):
            _write(files[-1], text)
        else:
            _write(shapes.VALUES / kind.__name__ / f"{len(files) + 1}.json", text)


def _write(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(shapes.HERE)}")


def main(arguments: list[str]) -> int:
    if set(arguments) - {"--same-version"}:
        print(__doc__)
        return 2
    same_version = bool(arguments)
    complaints = write_contracts(same_version)
    if complaints:
        print("\n".join(complaints))
        return 1
    write_values(same_version)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
