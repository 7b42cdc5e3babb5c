"""The fake conductor's part for users and projects: keypairs and quotas."""

from __future__ import annotations

from nova import errors
from nova.model.base import utcnow
from nova.model.keypairs import Keypair, KeypairQuery, NewKeypair
from nova.model.quotas import NETWORK_RESOURCES, RESOURCES, QuotaClass, QuotaSet, QuotaUpdate


class Keypairs:
    """``most_keypairs``: the quota."""

    def __init__(self) -> None:
        super().__init__()
        self.keypairs: dict[tuple[str, str], Keypair] = {}
        self.most_keypairs = 100

    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        held = [keypair for (user, _), keypair in sorted(self.keypairs.items()) if user == query.user_id]
        names = [keypair.name for keypair in held]
        if query.marker is not None:
            if query.marker not in names:
                raise errors.Invalid(f"marker [{query.marker}] not found")
            held = held[names.index(query.marker) + 1:]
        return tuple(held[:query.limit])

    def get_keypair(self, user_id: str, name: str) -> Keypair:
        if (user_id, name) not in self.keypairs:
            raise errors.NotFound(f"Keypair {name} not found for user {user_id}")
        return self.keypairs[(user_id, name)]

    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        if (keypair.user_id, keypair.name) in self.keypairs:
            raise errors.Conflict(f"Key pair '{keypair.name}' already exists.")
        if len(self.keypairs) >= self.most_keypairs:
            raise errors.OverQuota("Quota exceeded, too many key pairs.")
        made = Keypair(id=len(self.keypairs) + 1, created_at=utcnow(),
                       **{name: getattr(keypair, name) for name in NewKeypair.__struct_fields__
                          if name in Keypair.__struct_fields__})
        self.keypairs[(made.user_id, made.name)] = made
        return made

    def delete_keypair(self, user_id: str, name: str) -> None:
        self.get_keypair(user_id, name)
        del self.keypairs[(user_id, name)]


class Quotas:
    """Limits by (project, user); ``used`` by resource, the same for everybody."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: dict[tuple[str, str | None], dict[str, int]] = {}
        self.used: dict[str, int] = {}
        self.classes: dict[str, dict[str, int]] = {}
        self.defaults = {**dict.fromkeys(NETWORK_RESOURCES, -1),
                         **{name: 10 + index for index, name in enumerate(RESOURCES)}}

    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        limits = {**self.defaults, **self.limits.get((project_id, None), {}),
                  **self.limits.get((project_id, user_id), {})}
        return QuotaSet(project_id=project_id, user_id=user_id, limits=limits, in_use=self.used if usage else {})

    def get_default_quotas(self) -> QuotaSet:
        return QuotaSet(limits=self.defaults)

    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        for name, limit in update.limits.items():
            if 0 <= limit < self.used.get(name, 0) and not update.force:
                raise errors.Invalid(f"Quota limit {limit} for {name} must be at least {self.used[name]}.")
        self.limits.setdefault((update.project_id, update.user_id), {}).update(update.limits)
        return self.get_quotas(update.project_id, update.user_id, False)

    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        for owner in [owner for owner in self.limits if owner[0] == project_id and user_id in (None, owner[1])]:
            del self.limits[owner]

    def get_quota_class(self, class_name: str) -> QuotaClass:
        return QuotaClass(class_name=class_name, limits={**self.defaults, **self.classes.get(class_name, {})})

    def update_quota_class(self, update: QuotaClass) -> QuotaClass:
        self.classes.setdefault(update.class_name, {}).update(update.limits)
        return self.get_quota_class(update.class_name)
