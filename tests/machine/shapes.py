"""Compares two JSON values by shape: the same keys, and values of the same kind. What they say does not matter."""

from __future__ import annotations

from typing import Any

from tests.contract.answers import FREE

#: Objects whose keys are users' or a machine's; objects whose keys are names: one entry stands for all.
THEIRS = (*FREE, "meta", "cpu_info", "properties",
          "scheduler_hints")
NAMED = ("addresses", "image_quota_set")
#: Fields that admins see: some samples show what others do.
ADMINS = ("OS-EXT-SRV-ATTR:", "host_status")
#: Fields that answers have only sometimes: a fault when there is one, links when there is a next page.
SOMETIMES = ("fault", "next", "flavors_links", "servers_links", "hypervisors_links", "keypairs_links", "links",
             "progress")


def differences(sample: Any, ours: Any, beyond: tuple[str, ...], where: str = "") -> list[str]:
    """What our answer lacks or has more than the sample; ``beyond``: paths of the sample that are not asked of us."""
    if where in beyond or None in (sample, ours) and where:
        return []
    if kind(sample) != kind(ours):
        return [f"{where}: {ours!r} is no {kind(sample)}"]
    if isinstance(sample, dict):
        return _of_objects(sample, ours, beyond, where)
    if isinstance(sample, list) and sample:
        return [found for item in ours for found in _best(sample, item, beyond, f"{where}[]")]
    return []


def kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


def _of_objects(sample: dict[str, Any], ours: dict[str, Any], beyond: tuple[str, ...], where: str) -> list[str]:
    name = where.rpartition(".")[2].removesuffix("[]")
    if name in THEIRS:
        return []
    if name in NAMED:
        example = next(iter(sample.values()), None)
        return [found for key, value in ours.items() for found in differences(example, value, beyond, f"{where}.{key}")]
    paths = {key: f"{where}.{key}".lstrip(".") for key in sample.keys() | ours.keys()}
    missing = [f"{paths[key]} is missing" for key in sample if key not in ours and key not in SOMETIMES
               and paths[key] not in beyond]
    more = [f"{paths[key]} is not in the sample" for key in ours if key not in sample and key not in SOMETIMES
            and not key.startswith(ADMINS)]
    both = [found for key in sample.keys() & ours.keys()
            for found in differences(sample[key], ours[key], beyond, paths[key])]
    return missing + more + both


def _best(samples: list[Any], item: Any, beyond: tuple[str, ...], where: str) -> list[str]:
    """A list's items may be of several kinds: ours must be as one of the sample's."""
    return min((differences(sample, item, beyond, where) for sample in samples), key=len)
