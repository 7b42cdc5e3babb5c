"""Loader of the filters and weighers that the configuration names: nova's and operators' own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from nova import errors, failures
from nova.conf._options import Options
from nova.scheduler import filters, weighers, weights
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.weighers import Weigher

Plugin = TypeVar("Plugin", Filter, Weigher)

#: Paths of nova's own plug-ins in upstream's configuration files; the last part of such a path is the name here.
OUR_FILTERS, OUR_WEIGHERS = "nova.scheduler.filters.", "nova.scheduler.weights."
#: Filters of older releases, which may be enabled but only repeat mandatory checks or work of conductors.
OLD_FILTERS = ("RetryFilter", "AggregateCoreFilter", "AggregateDiskFilter", "AggregateRamFilter")


def load_filters(options: PluginOptions) -> tuple[Filter, ...]:
    """Return the enabled filters, in their order, without the mandatory ones.

    Raises daemon.SchedulerUnknownPlugin for a name that no available filter has, or a path that cannot be imported.
    """
    available: dict[str, type[Filter] | None] = dict.fromkeys(OLD_FILTERS)
    for number, path in enumerate(options.available_filters, 1):
        found = _classes(f"available_filters, entry {number},", path, Filter, OUR_FILTERS, filters.all_filters)
        available.update((cls.__name__, cls) for cls in found)
    enabled = []
    for number, path in enumerate(options.enabled_filters, 1):
        name = path.rpartition(".")[2]  # also for a class path
        if name not in available:
            known = sorted(name for name, cls in available.items() if cls is not None)
            raise errors.daemon.SchedulerUnknownPlugin(option=f"enabled_filters, entry {number},",
                                                       problem=f"is not a filter; available: {', '.join(known)}")
        enabled.append(available[name])
    return tuple(_made(cls, options) for cls in dict.fromkeys(enabled) if cls is not None and not cls.always_on)


def load_weighers(options: PluginOptions) -> tuple[Weigher, ...]:
    """Return the weighers of ``weight_classes``. Raises daemon.SchedulerUnknownPlugin for a path that cannot be
    imported."""
    found: dict[type[Weigher], None] = {}
    for number, path in enumerate(options.weight_classes, 1):
        found.update(dict.fromkeys(_classes(f"weight_classes, entry {number},", path, Weigher, OUR_WEIGHERS,
                                            weighers.all_weighers)))
    return tuple(_made(cls, options) for cls in found)


def check(options: Options) -> None:
    """Raise daemon.SchedulerUnknownPlugin if :func:`load_filters` or :func:`load_weighers` does not find a plug-in."""
    groups = PluginOptions.of_sections(options.filter_scheduler, options.metrics, options.scheduler)
    load_filters(groups)
    load_weighers(groups)


def _made(cls: type[Plugin], options: PluginOptions) -> Plugin:
    """Return an instance of the class; classes in OpenStack's form take no arguments."""
    if not issubclass(cls, (filters.BaseHostFilter, weights.BaseHostWeigher)):
        return cls(options)
    made = cls()
    made.options = options
    return made


def _classes(option: str, path: str, base: type[Plugin], ours: str,
             all_of_ours: Callable[[], list[type[Plugin]]]) -> list[type[Plugin]]:
    """Return the classes at a dotted path: one class, or a function that lists some. ``option``: its name and entry."""
    module, _, name = path.rpartition(".")
    if path.startswith(ours):
        known = {cls.__name__: [cls] for cls in all_of_ours()} | {all_of_ours.__name__: all_of_ours()}
        if name not in known:
            raise errors.daemon.SchedulerUnknownPlugin(option=option, problem="is not a plug-in of nova; available "
                                                       f"are: {', '.join(sorted(known))}")
        return known[name]
    with failures.translated((ImportError, AttributeError, ValueError),
            lambda error: errors.daemon.SchedulerUnknownPlugin(option=option, problem="cannot be "
                    f"imported{_within(path, error)}. Install its package for the Python that runs nova-scheduler, or "
                    "remove the entry")):
        found = getattr(importlib.import_module(module), name)
    listed: list[object] = [found] if isinstance(found, type) else _listed(option, found)
    classes = [cls for cls in listed if isinstance(cls, type) and issubclass(cls, base)]
    if len(classes) < len(listed):
        raise errors.daemon.SchedulerUnknownPlugin(option=option, problem=f"is, or lists, a class that does not extend "
                                                   f"{base.__module__}.{base.__name__}")
    return classes


def _within(path: str, error: Exception) -> str:
    """Return the missing module that the operator's own module imports, as text."""
    name = getattr(error, "name", None) or ""
    return "" if not isinstance(error, ImportError) or path.startswith(name) else f": it needs the module {name}"


def _listed(option: str, function: object) -> list[object]:
    found = function() if callable(function) else function
    if not isinstance(found, Iterable):
        raise errors.daemon.SchedulerUnknownPlugin(option=option, problem="is neither a class nor a function that "
                                                   "lists classes")
    return list(found)
