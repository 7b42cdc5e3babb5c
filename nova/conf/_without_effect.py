"""Options of other Nova releases, and of libraries, that have no effect here: the table ``without_effect.toml``."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import resources
from typing import NamedTuple

EVERY, MORE = "*", "*"  # every option of a section; any suffix of a section's name
_SEPARATOR = ", "


class WithoutEffect(NamedTuple):
    """An option without effect. ``reason``: why, in one sentence. ``unprotected``: matches the values with which the
    operator relies on a protection that does not exist; ``cure``: what to do then."""

    reason: str
    unprotected: re.Pattern[str] | None = None
    cure: str = ""

    def removes_protection(self, values: Iterable[str]) -> bool:
        """Return whether one of the values relies on a protection that does not exist."""
        return self.unprotected is not None and any(self.unprotected.fullmatch(value.strip()) for value in values)


#: The names used here for option groups of keystoneauth -> the options' names.
Groups = Mapping[str, Callable[[], Iterable[str]]]


@functools.cache
def _adapter() -> set[str]:
    from keystoneauth1 import loading

    return _names(loading.get_adapter_conf_options())


@functools.cache
def _credentials() -> set[str]:
    from keystoneauth1 import loading

    of_plugins = [option for name in loading.get_available_plugin_names()
                  for option in loading.get_auth_plugin_conf_options(name)]
    return _names([*loading.get_auth_common_conf_options(), *loading.get_session_conf_options(), *of_plugins])


def _names(options: Iterable[object]) -> set[str]:
    """Return current and deprecated names, as written in files."""
    return {name.replace("-", "_") for option in options
            for name in (option.dest, *(old.name for old in option.deprecated_opts))  # type: ignore[attr-defined]
            if name}


KEYSTONEAUTH: Groups = {"(adapter)": _adapter, "(credentials)": _credentials}


class WithoutEffectTable:
    """The options by section and name."""

    def __init__(self, text: str, groups: Groups = KEYSTONEAUTH) -> None:
        self._rows: dict[str, dict[str, WithoutEffect]] = {}
        self._groups = groups
        for sections, options in tomllib.loads(text).items():
            for section in sections.split(_SEPARATOR):
                for names, said in options.items():
                    self._rows.setdefault(section, {}).update(dict.fromkeys(names.split(_SEPARATOR), _row(said)))

    def find(self, section: str, name: str) -> WithoutEffect | None:
        """Return the entry for the option, or None."""
        options = self._rows.get(section) or self._family(section)
        if (found := options.get(name) or options.get(EVERY)) is not None:
            return found
        return next((said for group, said in options.items()
                     if group in self._groups and name in self._groups[group]()), None)

    def _family(self, section: str) -> Mapping[str, WithoutEffect]:
        return next((options for family, options in self._rows.items()
                     if family.endswith(MORE) and section.startswith(family.removesuffix(MORE))), {})

    def __iter__(self) -> Iterator[tuple[str, str, WithoutEffect]]:
        """Yield section, option and entry, as written."""
        return ((section, name, said) for section, options in self._rows.items() for name, said in options.items())


def _row(said: str | Mapping[str, str]) -> WithoutEffect:
    if isinstance(said, str):
        return WithoutEffect(said)
    return WithoutEffect(said["reason"], re.compile(said["unprotected"]), said["cure"])


@functools.cache
def table() -> WithoutEffectTable:
    """Return the table of this release."""
    return WithoutEffectTable(resources.files(__package__).joinpath("without_effect.toml").read_text())


__all__ = ["EVERY", "MORE", "WithoutEffect", "WithoutEffectTable", "table"]
