"""Operators' own filters and applications in api-paste.ini, around the compute API and the metadata service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import webob

from nova import errors
from nova.api import app
from nova.web.api_paste import UPSTREAM, PasteConfig, surroundings
from tests.contract import rows
from tests.fakes.api import ApiClient, configuration
from tests.fakes.paste_filters import SEEN

TOP = Path(__file__).resolve().parents[3]
OURS = (TOP / "etc/nova/api-paste.ini").read_text()
FACTORY = "paste.filter_factory = tests.fakes.paste_filters"
LIMIT = f"[filter:limit]\n{FACTORY}:noting\nname = limit\n"
AUDIT = f"[filter:audit]\n{FACTORY}:noting\nname = audit\n"


def conf(folder: Path, text: str | None, **api: Any) -> Any:
    """A configuration whose nova.conf has such an api-paste.ini beside it."""
    made = configuration(**api)
    (folder / "nova.conf").write_text("")
    if text is not None:
        (folder / "api-paste.ini").write_text(text)
    made([], project="nova", default_config_files=[str(folder / "nova.conf")], default_config_dirs=[])
    made.set_override("auth_strategy", "noauth2", group="api")
    return made


def edited(text: str, *sections: str, **lines: str) -> str:
    """Our file with these sections more, and with names added to its pipelines: before or after authentication."""
    line = " ".join(("noauth2 =", *lines.get("outside", "").split(), "noauth2", *lines.get("inside", "").split()))
    return "\n".join((text.replace("noauth2 = noauth2", line), *sections))


def asked(client: ApiClient, path: str) -> webob.Request:
    """A request as that of a user, to be looked at afterwards."""
    request = webob.Request.blank(path, headers={"X-Auth-Token": "demo:demo"})
    request.response = request.get_response(client.application)
    return request


def seen(folder: Path, text: str, path: str = "/v2.1/servers") -> list[str]:
    """Which filters saw such a request, in order."""
    request = asked(ApiClient(conf=conf(folder, text)), path)
    assert request.response.status_int == 200
    return request.environ.get(SEEN, [])


def test_file_when_it_is_as_we_ship_it_then_nothing_is_around_the_api(tmp_path: Path) -> None:
    found = surroundings(conf(tmp_path, OURS), app.API)
    assert not found.beside and not any(one.outside or one.inside for one in found.versions.values())
    assert {"", "v2", "v2.1"} == set(found.versions)
    assert set(surroundings(conf(tmp_path, OURS), "metadata").versions) == {""}


def test_file_when_there_is_none_then_nothing_is_around_the_api(tmp_path: Path) -> None:
    assert surroundings(conf(tmp_path, None), app.API) == PasteConfig()


def test_filters_when_before_and_after_authentication_then_each_sees_requests_in_order_and_the_latter_the_user(
        tmp_path: Path) -> None:
    text = edited(OURS, LIMIT, AUDIT, outside="limit", inside="audit")
    for path in ("/v2.1/servers", "/v2/servers"):
        assert seen(tmp_path, text, path) == ["limit", "audit:demo"]


def test_filter_when_it_is_before_the_version_documents_then_it_sees_those_alone(tmp_path: Path) -> None:
    text = edited(OURS.replace("pipeline = oscomputeversionapp", "pipeline = limit oscomputeversionapp"), LIMIT)
    request = asked(ApiClient(conf=conf(tmp_path, text)), "/")
    assert request.response.status_int == 300 or request.response.status_int == 200
    assert request.environ[SEEN] == ["limit"]
    assert seen(tmp_path, text) == []


def test_filter_when_it_refuses_then_its_answer_is_the_answer_and_has_a_request_id(tmp_path: Path) -> None:
    text = edited(OURS, LIMIT + "refuses = 429 Too Many Requests\n", outside="limit")
    answer = asked(ApiClient(conf=conf(tmp_path, text)), "/v2.1/servers").response
    assert (answer.status_int, answer.body) == (429, b"sorry") and answer.headers["x-openstack-request-id"]


def test_application_when_the_operator_mounts_one_then_it_is_served_there_and_nowhere_else(tmp_path: Path) -> None:
    text = edited(OURS.replace("[composite:osapi_compute]", "[composite:osapi_compute]\n/hello: greeting"),
                  "[app:greeting]\npaste.app_factory = tests.fakes.paste_filters:greeting")
    client = ApiClient(conf=conf(tmp_path, text))
    assert asked(client, "/hello").response.body == b"hello"
    assert asked(client, "/v2.1/servers").response.status_int == 200


def test_health_check_when_it_is_oslos_own_then_a_load_balancer_is_answered(tmp_path: Path) -> None:
    text = edited(OURS.replace("[composite:osapi_compute]", "[composite:osapi_compute]\n/alive: alive"),
                  "[app:alive]\npaste.app_factory = oslo_middleware:Healthcheck.app_factory")
    request = webob.Request.blank("/alive", headers={"Accept": "text/plain"})
    answer = request.get_response(ApiClient(conf=conf(tmp_path, text)).application)
    assert answer.status_int == 200 and answer.content_type == "text/plain"


def test_audit_when_it_is_keystonemiddlewares_then_a_request_becomes_a_cadf_event(tmp_path: Path) -> None:
    """As kolla-ansible, openstack-helm and nova-operator render it."""
    event = pytest.importorskip("pycadf.event")
    audited = tmp_path / "api_audit_map.conf"
    audited.write_text("[DEFAULT]\ntarget_endpoint_type = None\n[path_keywords]\nservers = server\n"
                       "[service_endpoints]\ncompute = service/compute\n[custom_actions]\n")
    text = edited(OURS, "[filter:audit]\npaste.filter_factory = keystonemiddleware.audit:filter_factory\n"
                        f"audit_map_file = {audited}", inside="audit")
    request = asked(ApiClient(conf=conf(tmp_path, text)), "/v2.1/servers")
    assert request.response.status_int == 200 and isinstance(request.environ["cadf_event"], event.Event)


def test_metadata_when_its_pipeline_has_a_filter_then_that_stands_before_it(tmp_path: Path) -> None:
    text = edited(OURS.replace("pipeline = metaapp", "pipeline = limit metaapp"), LIMIT)
    [pipeline] = surroundings(conf(tmp_path, text), "metadata").versions.values()
    assert len(pipeline.outside) == 1 and not pipeline.inside


@pytest.mark.parametrize("factory", sorted(UPSTREAM))
def test_factory_when_it_is_upstreams_then_it_is_skipped(tmp_path: Path, factory: str) -> None:
    text = edited(OURS, f"[filter:limit]\npaste.filter_factory = {factory}", outside="limit")
    assert seen(tmp_path, text) == []


@pytest.mark.parametrize(("section", "words"), [
    (f"{FACTORY}:failing", ("ValueError: the audit map is not readable",)),
    ("paste.filter_factory = nova.api.openstack:Unheard.factory", ("nova.api.openstack",)),
    ("paste.filter_factory = no_such_package:factory", ("no_such_package",)),
    ("use = egg:NoSuchDistribution#limit", ("NoSuchDistribution",)),
    ("name = limit", ()),
])
def test_filter_when_it_cannot_be_loaded_then_one_line_names_option_section_and_file(
        tmp_path: Path, section: str, words: tuple[str, ...]) -> None:
    text = edited(OURS, f"[filter:limit]\n{section}", outside="limit")
    with pytest.raises(errors.config.Unusable) as caught:
        surroundings(conf(tmp_path, text), app.API)
    told = caught.value.message
    assert all(word in told for word in ("[wsgi]api_paste_config", "limit", str(tmp_path / "api-paste.ini"), *words))
    assert "\n" not in told


@pytest.mark.parametrize("text", [
    OURS.replace("keystone = authtoken", "keystone = nobody authtoken").replace("noauth2 = ", "noauth2 = nobody "),
    OURS.replace("/v2.1/+: openstack_compute_api_v21", "/v2.1/+: nowhere"),
    "this is no INI file",
])
def test_file_when_it_is_wrong_then_one_line_says_so(tmp_path: Path, text: str) -> None:
    with pytest.raises(errors.config.Unusable) as caught:
        surroundings(conf(tmp_path, text), app.API)
    assert str(tmp_path / "api-paste.ini") in caught.value.message and "\n" not in caught.value.message


def test_file_when_the_option_names_one_that_is_not_there_then_it_is_missed(tmp_path: Path) -> None:
    made = conf(tmp_path, None)
    made.set_override("api_paste_config", "/nowhere/api-paste.ini", group="wsgi")
    with pytest.raises(errors.config.Unusable, match="no such file: /nowhere/api-paste.ini"):
        surroundings(made, app.API)


@pytest.mark.skipif(not rows.SHARED.is_dir(), reason="the contract's files are not beside the checkout")
def test_file_when_deployment_tools_take_it_then_it_is_where_they_look(tmp_path: Path) -> None:
    import yaml

    table = yaml.safe_load((rows.SHARED / "installers.yaml").read_text())
    wanted = [row for row in table["files"] if row["p"] == "/etc/nova/api-paste.ini"]
    assert wanted and "filter:authtoken" in wanted[0]["what"]
    assert "[filter:authtoken]" in OURS, "puppet's ini type edits it"
