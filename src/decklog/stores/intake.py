"""Records written as they are told, for those who take over what another product kept. Each still has its entry."""

from decklog.stores.base import Store


class Intake(Store):
    """The writing that stores keep to themselves, for importers: they know the whole record, and no verb would."""

    seek = Store._seek
    select = Store._select
    add = Store._add
    change_all = Store._change_all
    remove = Store._remove
