"""Delivery with oslo.messaging's notifier, one for each format, as configured in ``[oslo_messaging_notifications]``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.metadata import entry_points

import oslo_messaging

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.notifications.facts import Who
from nova.notifications.message import NotificationMessage
from nova.notifications.notifier import FORMS, DisabledNotifier, Notifier, NotifierOptions

LOG = logging.getLogger(__name__)

GROUP = "oslo_messaging_notifications"
NONE = {"noop", ""}


def make(conf: Options, host: str) -> DisabledNotifier:
    """Return the process's notifier; a disabled one if no driver is configured. It connects at the first event. Raises
    daemon.NotificationsNoSuchDriver: the library would only log a warning, and drop every event."""
    oslo_messaging.set_transport_defaults("nova")  # the exchange that consumers bind to
    source = oslo_conf(conf)
    transport = oslo_messaging.get_notification_transport(source)  # also registers the options
    drivers = [name for name in source[GROUP].driver if name not in NONE]
    if not drivers:
        return DisabledNotifier()
    _check(drivers)
    group = conf.notifications
    options = NotifierOptions(host=group.default_publisher_id or host, forms=FORMS[group.notification_format],
                              level=group.default_level, state_changes=group.notify_on_state_change or "",
                              shows_disks=group.bdms_in_notifications)
    topics = {"unversioned": source[GROUP].topics, "versioned": group.versioned_notifications_topics}
    LOG.info("notifications are sent (%s) by %s", group.notification_format, ", ".join(drivers))
    return Notifier(OsloOutlet(transport, {form: topics[form] for form in options.forms}), options)


def _check(drivers: list[str]) -> None:
    known = {one.name for one in entry_points(group="oslo.messaging.notify.drivers")}
    if not known.issuperset(drivers):
        raise errors.daemon.NotificationsNoSuchDriver(known=", ".join(sorted(known)))


class _Plain(oslo_messaging.NoOpSerializer):
    """Serializer: payloads are plain data already; the context is converted."""

    def serialize_context(self, context: Who) -> dict[str, object]:
        return context.as_dict()


class OsloOutlet:
    """The outlet to oslo.messaging: messages of each format go to the topics of that format."""

    def __init__(self, transport: object, topics: Mapping[str, list[str]]) -> None:
        self._notifiers = {form: oslo_messaging.Notifier(transport, serializer=_Plain(), topics=names)
                           for form, names in topics.items()}

    def send(self, form: str, message: NotificationMessage) -> None:
        """Send with oslo.messaging's notifier of the format. May wait for the broker, depending on its driver."""
        notifier = self._notifiers[form].prepare(publisher_id=message.publisher)
        getattr(notifier, message.priority.lower())(message.who, message.type, dict(message.payload))
