"""Each declared option has a typed field, and each field is a declared option."""

from __future__ import annotations

import datetime
import itertools
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from oslo_config import cfg, types

from nova import conf
from nova.conf._options import Options, oslo_conf
from nova.conf._section import Section
from nova.conf._span import TimeSpan
from nova.conf._urls import Url

#: oslo.config's types -> the type of their values; the first that fits.
VALUES: tuple[tuple[type | tuple[type, ...], type], ...] = (
    (types.Boolean, bool), (types.Integer, int), (types.Float, float), (TimeSpan, datetime.timedelta),
    ((types.String, types.URI, types.HostAddress, types.HostDomain, Url), str))

Fields = list[tuple[str, Any]]


def type_of(declared: types.ConfigType) -> Any:
    if isinstance(declared, types.List):
        return list[type_of(declared.item_type)]  # type: ignore[misc]
    return next(value for kinds, value in VALUES if isinstance(declared, kinds))


def declared(options: Iterable[cfg.Opt]) -> Fields:
    found = []
    for option in options:
        value = list[type_of(option.type)] if option.multi else type_of(option.type)  # type: ignore[misc]
        found.append((option.dest, value | None if option.default is None else value))
    return found


def typed(section: type[msgspec.Struct]) -> Fields:
    hints = typing.get_type_hints(section)
    return [(name, hints[name]) for name in section.__struct_fields__]


def is_section(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Section)


def by_group() -> dict[str, list[cfg.Opt]]:
    return dict(conf.list_opts())


SECTIONS: dict[str, type[Section]] = {name: hint for name, hint in typed(Options) if is_section(hint)}


@pytest.mark.parametrize("group", sorted({*by_group(), *SECTIONS} - {"DEFAULT"}))
def test_section_when_compared_with_its_options_then_names_order_and_types_are_theirs(group: str) -> None:
    assert typed(SECTIONS[group]) == declared(by_group()[group])


def test_options_when_compared_with_the_default_section_then_names_order_and_types_are_its() -> None:
    plain = list(itertools.takewhile(lambda field: not is_section(field[1]), typed(Options)))

    assert plain == declared(by_group()["DEFAULT"])
    assert [name for name, _ in typed(Options)[len(plain):]] == [*sorted(SECTIONS), "source"]


def test_options_when_made_then_they_have_the_values_of_then_and_cannot_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\ndebug = true\nhost = a\n[libvirt]\nrbd_user = cinder\n")
    source = conf.register(cfg.ConfigOpts())
    source([], default_config_files=[str(file)], default_config_dirs=[])
    options = Options.of(source)
    file.write_text("[DEFAULT]\ndebug = false\n")
    source.mutate_config_files()
    assert (options.debug, options.host, options.libvirt.rbd_user, options.source) == (True, "a", "cinder", source)
    assert source.debug is False and oslo_conf(options) is source
    with pytest.raises(AttributeError):
        options.libvirt.rbd_user = "other"  # type: ignore[misc]


def test_options_when_made_from_defaults_then_each_value_has_its_fields_type() -> None:
    source = conf.register(cfg.ConfigOpts())
    source([], default_config_files=[], default_config_dirs=[])
    options = Options.of(source)
    for name, kind in SECTIONS.items():
        assert msgspec.convert(getattr(options, name), kind, from_attributes=True) == getattr(options, name)


class Example(Section, frozen=True, kw_only=True):
    """Values of a section with two options."""

    size: int
    names: list[str]


SIZE, NAMES = cfg.IntOpt("size", default=1), cfg.ListOpt("names", default=[])


@pytest.mark.parametrize(("options", "same"), [
    ((SIZE, NAMES), True),
    ((SIZE, NAMES, cfg.StrOpt("more")), False),
    ((SIZE,), False),
    ((NAMES, SIZE), False),
    ((cfg.IntOpt("size"), NAMES), False),
    ((cfg.FloatOpt("size", default=1.0), NAMES), False),
    ((SIZE, cfg.MultiStrOpt("names", default=[])), True),
    ((SIZE, cfg.ListOpt("names", default=[], item_type=types.Integer())), False)])
def test_comparison_when_an_option_and_a_field_differ_then_they_are_not_equal(options: tuple[cfg.Opt, ...], same: bool
                                                                              ) -> None:
    assert (typed(Example) == declared(options)) is same


def test_repr_when_values_are_secret_then_it_has_none() -> None:
    assert repr(Example(size=1, names=["secret"])) == "<Example>"
