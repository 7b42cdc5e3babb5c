"""``[notifications]``: event notifications: which events, and in which form. The destination is in
``[oslo_messaging_notifications]``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "notifications"

OPTS = [
    cfg.StrOpt("notification_format", default="unversioned", choices=("unversioned", "versioned", "both"),
               deprecated_group="DEFAULT",
               help="Form of the events that are sent if [oslo_messaging_notifications]driver is set (messagingv2, "
                    "for RabbitMQ). unversioned: the older form, which most billing and inventory tools read. "
                    "versioned: payloads with a schema and a version, for more kinds of events. both: each event in "
                    "both forms. While no driver is set, no data is read and no event is built."),
    cfg.ListOpt("versioned_notifications_topics", default=["versioned_notifications"],
                help="Topics of versioned events; each gets every event, for one consumer. Queues are named "
                     "TOPIC.PRIORITY: versioned_notifications.info. Topics of unversioned events are "
                     "[oslo_messaging_notifications]topics."),
    cfg.StrOpt("default_level", default="INFO", choices=("DEBUG", "INFO", "WARN", "ERROR", "CRITICAL"),
               deprecated_group="DEFAULT", deprecated_name="default_notification_level",
               help="Priority of events that report no error. It is part of the queue's name."),
    cfg.StrOpt("notify_on_state_change", choices=("", "vm_state", "vm_and_task_state"), deprecated_group="DEFAULT",
               help="Send instance.update (compute.instance.update) when a server's state changes. vm_state: only "
                    "for changes of vm_state; vm_and_task_state: also of task_state, which changes several times in "
                    "an operation. Unset: never."),
    cfg.StrOpt("default_publisher_id", deprecated_group="DEFAULT",
               help="Host part of the publisher id of events without a compute host as publisher (nova-api:HOST). "
                    "Unset: [DEFAULT]host of the conductor."),
    cfg.BoolOpt("bdms_in_notifications", default=False,
                help="Include a server's volumes in versioned events (block_devices; null while this is off)."),
]


class NotificationsOptions(Section, frozen=True, kw_only=True):
    """Values of ``[notifications]``."""

    notification_format: str
    versioned_notifications_topics: list[str]
    default_level: str
    notify_on_state_change: str | None
    default_publisher_id: str | None
    bdms_in_notifications: bool
