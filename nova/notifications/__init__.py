"""Notifications: events for consumers of the notification topics.

``kinds`` is the table of events; ``payloads`` the tables of their contents; ``versioned`` and ``legacy`` create
messages of both formats; ``notifier`` sends them from a separate thread. Only the conductor emits events, because only
it sees every operation from begin to end, in any process. Source: the notification reference of the Compute API
(https://docs.openstack.org/nova/latest/reference/notifications.html).
"""
