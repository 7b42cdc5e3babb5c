"""The mapper that finds rows by a path, for every API."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from nova.web.routing import Router, parameters


class Row(NamedTuple):
    method: str
    path: str


ROWS = (Row("GET", "/things"), Row("GET", "/things/{id}"), Row("PUT", "/things/{id}"), Row("GET", "/things/detail"),
        Row("GET", "/things/{id}/parts/{name}"))


@pytest.fixture(scope="module")
def router() -> Router[Row]:
    return Router(ROWS)


def test_literal_stands_before_a_parameter_where_it_has_the_method(router: Router[Row]) -> None:
    assert router.match("GET", "/things/detail") == ([Row("GET", "/things/detail")], {})
    assert router.match("PUT", "/things/detail") == ([Row("PUT", "/things/{id}")], {"id": "detail"})


@pytest.mark.parametrize(("path", "values"), [
    ("/things/7", {"id": "7"}), ("/things/7/parts/x", {"id": "7", "name": "x"}),
    ("/things/detail/parts/x", {"id": "detail", "name": "x"}), ("/things/7/", {"id": "7"}),
    ("/things/7.json", {"id": "7.json"}), ("/things/7\n", {"id": "7\n"}), ("/things/ü", {"id": "ü"})])
def test_parameters_have_their_values(router: Router[Row], path: str, values: dict[str, str]) -> None:
    found = router.match("GET", path)
    assert found is not None and found[1] == values


@pytest.mark.parametrize("path", ["/other", "/things/7/parts", "/things/", "/", "/things\n", "/things/detail/\n",
                                  "/things/7//", "//things", "/things/7/parts/", "/things.json", "/THINGS"])
def test_path_that_has_no_row_is_none(router: Router[Row], path: str) -> None:
    assert router.match("GET", path) is None and router.rows(path) == []


def test_rows_of_a_path_are_of_all_methods(router: Router[Row]) -> None:
    assert {row.method for row in router.rows("/things/7")} == {"GET", "PUT"}


def test_parameters_of_a_path_are_what_stands_in_braces() -> None:
    assert parameters("/things/{id}/parts/{name}") == ("id", "name")


def test_slash_at_the_end_is_nothing_where_no_name_may_stand(router: Router[Row]) -> None:
    assert router.match("GET", "/things/detail/") == ([Row("GET", "/things/detail")], {})


def test_rows_that_name_one_parameter_differently_are_refused() -> None:
    with pytest.raises(ValueError, match="names of their parameters"):
        Router((Row("GET", "/things/{id}"), Row("PUT", "/things/{thing}")))
