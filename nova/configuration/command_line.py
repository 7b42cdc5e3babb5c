"""A daemon's command line as operators and start scripts write it: with dashes or underscores, current or deprecated
names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oslo_config import cfg

from nova import errors
from nova.configuration.value_descriptions import problem


def spelt(words: Sequence[str], options: Sequence[cfg.Opt]) -> list[str]:
    """Return the arguments with each option's name as declared."""
    names = dict(_spellings(options))
    made = []
    for word in words:
        name, equals, value = word.partition("=")
        made.append(f"{names.get(_plain(name), name)}{equals}{value}")
    return made


def names(option: cfg.Opt) -> list[str]:
    """Return the option's current and deprecated names, as declared."""
    return [option.name, *(old.name for old in option.deprecated_opts if old.name)]


def _spellings(options: Sequence[cfg.Opt]) -> Iterator[tuple[str, str]]:
    """Yield (``--some-name`` with dashes, the argument as declared), including deprecated names and ``--no...``."""
    for option in options:
        for name in names(option):
            yield _plain(f"--{name}"), f"--{name}"
            if isinstance(option, cfg.BoolOpt):
                yield _plain(f"--no{name}"), f"--no{name}"


def _plain(word: str) -> str:
    return word.replace("_", "-") if word.startswith("--") else word


def typed(words: Sequence[str], options: Sequence[cfg.Opt]) -> frozenset[str]:
    """Return the options (by attribute) to which the arguments give a value. Raises config.Unusable for an invalid
    value: the command line parser would print it."""
    by_word: Mapping[str, cfg.Opt] = {
        f"--{name}": option for option in options for name in names(option)}
    given = set()
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        option = by_word.get(name)
        if option is None or isinstance(option, cfg.BoolOpt) or not equals and index + 1 == len(words):
            continue
        given.add(option.dest)
        text = value if equals else words[index + 1]
        try:
            option.type(text)
        except ValueError:
            raise errors.config.Unusable(option=f"the command line's {name}", reason=problem(option, text)) from None
    return frozenset(given)
