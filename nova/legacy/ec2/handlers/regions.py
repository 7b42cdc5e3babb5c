"""Actions on the cloud's offering: regions, availability zones, instance types, and an account's limits."""

from __future__ import annotations

from collections.abc import Sequence

from nova.legacy.ec2 import lists
from nova.legacy.ec2.faults import Ec2Error, invalid
from nova.legacy.ec2.parameters import Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views.instances import architecture
from nova.legacy.ec2.xml import Tree
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery
from nova.model.host.services import Zone

USUAL_REGION = "nova"
VERBOSE = "verbose"
ZONE_DETAIL = "os_compute_api:os-availability-zone:detail"

REGION_FILTERS: lists.FilterPaths = {"region-name": "regionName", "endpoint": "regionEndpoint"}
ZONE_FILTERS: lists.FilterPaths = {"zone-name": "zoneName", "state": "zoneState", "region-name": "regionName"}
TYPE_FILTERS: lists.FilterPaths = {
    "instance-type": "instanceType", "vcpu-info.default-vcpus": "vCpuInfo.defaultVCpus",
    "memory-info.size-in-mib": "memoryInfo.sizeInMiB", "bare-metal": "bareMetal",
    "current-generation": "currentGeneration", "instance-storage-supported": "instanceStorageSupported",
    "processor-info.supported-architecture": "processorInfo.supportedArchitectures"}


class DescribeRegions(Ec2Listing, frozen=True, kw_only=True):
    region_name: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    all_regions: bool = False


def describe_regions(req: Ec2Request, args: DescribeRegions) -> Tree:
    """List the regions of ``region_list``, or this region if the option is empty."""
    options = req.options
    found: list[Tree] = [
        {"regionName": name, "regionEndpoint": f"{options.scheme}://{host}:{options.port}{options.path}"}
        for name, host in options.regions.items()] or [
        {"regionName": USUAL_REGION, "regionEndpoint": options.endpoint}]
    if args.region_name and not req.is_old:
        found = [one for one in found if one["regionName"] in args.region_name]
    test = lists.tester(args.filter, REGION_FILTERS)
    return {"regionInfo": [one for one in found if test(one)]}


class DescribeAvailabilityZones(Ec2Listing, frozen=True, kw_only=True):
    zone_name: tuple[str, ...] = ()
    zone_id: tuple[str, ...] = ()
    all_availability_zones: bool = False


def describe_availability_zones(req: Ec2Request, args: DescribeAvailabilityZones) -> Tree:
    """List the zones of compute hosts. The zone name ``verbose``, for administrators, adds hosts and services."""
    is_verbose = VERBOSE in args.zone_name
    if is_verbose:
        req.authorize(ZONE_DETAIL)
    zones: Sequence[Zone] = req.conductor.list_zones(is_verbose)
    shown: list[Tree] = []
    named = [name for name in args.zone_name if name != VERBOSE]
    for zone in zones:
        if zone.internal and not is_verbose or (named and not req.is_old and zone.name not in named):
            continue
        shown.append(_zone(req, zone))
        if is_verbose:
            shown += _services(zone)
    if named and not shown and not req.is_old:
        raise invalid("ZoneName", named[0], "The availability zone does not exist.")
    test = lists.tester(args.filter, ZONE_FILTERS)
    return {"availabilityZoneInfo": [one for one in shown if test(one)]}


def _zone(req: Ec2Request, zone: Zone) -> Tree:
    if req.is_old:
        return {"zoneName": zone.name, "zoneState": "available" if zone.available else "not available"}
    return {"zoneName": zone.name, "zoneState": "available" if zone.available else "unavailable",
            "regionName": next(iter(req.options.regions), USUAL_REGION), "zoneId": zone.name,
            "zoneType": "availability-zone", "optInStatus": "opt-in-not-required"}


def _services(zone: Zone) -> list[Tree]:
    """Return one row per host, each followed by one row per service of the host."""
    hosts: dict[str, list[Tree]] = {}
    for one in zone.services:
        mark = ":-)" if one.up else "XXX"
        word = "disabled" if one.disabled else "enabled"
        hosts.setdefault(one.host, []).append({
            "zoneName": f"| |- {one.binary}", "zoneState": f"{word} {mark} {one.last_seen_at or ''}".rstrip()})
    return [line for host, rows in sorted(hosts.items()) for line in ({"zoneName": f"|- {host}", "zoneState": ""},
                                                                      *rows)]


class DescribeInstanceTypes(Ec2Listing, frozen=True, kw_only=True):
    instance_type: tuple[str, ...] = ()
    include_unsupported_in_region: bool = False


def describe_instance_types(req: Ec2Request, args: DescribeInstanceTypes) -> Tree:
    """List the flavors, sorted by name. Raises InvalidInstanceType if a requested name does not exist."""
    flavors: Sequence[Flavor] = req.conductor.list_flavors(FlavorQuery(
        scope=Scope(project_id=req.project_id), is_public=None, sort_key="name"))
    found = [_type(one) for one in flavors if not one.disabled]
    known = {one["instanceType"] for one in found}
    for name in args.instance_type:
        if name not in known:
            raise Ec2Error("InvalidInstanceType", f"The following supplied instance types do not exist: [{name[:100]}]")
    wanted = [one for one in found if not args.instance_type or one["instanceType"] in args.instance_type]
    page = lists.chosen(wanted, args, TYPE_FILTERS, "instanceType")
    return {"instanceTypeSet": page.items, "nextToken": page.next_token}


def _type(one: Flavor) -> Tree:
    has_disk = one.root_gb + one.ephemeral_gb > 0
    return {"instanceType": one.name, "currentGeneration": True, "vCpuInfo": {"defaultVCpus": one.vcpus},
            "memoryInfo": {"sizeInMiB": one.memory_mb}, "instanceStorageSupported": has_disk,
            "instanceStorageInfo": {"totalSizeInGB": one.root_gb + one.ephemeral_gb} if has_disk else None,
            "bareMetal": False, "processorInfo": {"supportedArchitectures": [architecture(one.extra_specs)]}}


class DescribeAccountAttributes(Ec2Listing, frozen=True, kw_only=True):
    attribute_name: tuple[str, ...] = ()


def describe_account_attributes(req: Ec2Request, args: DescribeAccountAttributes) -> Tree:
    """List the supported network platforms and the project's quotas, which scripts query first."""
    limits = req.conductor.get_quotas(req.project_id, None, False).limits
    values = {"supported-platforms": ["EC2", "VPC"] if req.options.has_neutron else ["EC2"],
              "max-instances": [str(limits.get("instances", -1))],
              "max-elastic-ips": [str(limits.get("floating_ips", -1))], "default-vpc": ["none"]}
    return {"accountAttributeSet": [
        {"attributeName": name, "attributeValueSet": [{"attributeValue": value} for value in found]}
        for name, found in values.items() if not args.attribute_name or name in args.attribute_name]}
