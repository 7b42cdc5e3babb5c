"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="everything: tests marked 'long', and matrices unsampled")
    parser.addoption("--nova-seed", type=int, default=0, metavar="N",
                     help="chooses what a sampled matrix runs (0: the day's number)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes: runs with --long"))
