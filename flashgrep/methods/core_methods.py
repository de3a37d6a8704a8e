"""The core's methods in the order in which they are listed; parts add theirs (``api.part``)."""

from flashgrep.methods import bootstrap, indexing, listing, query, reading

CORE_HANDLERS = (
    *query.HANDLERS,
    *reading.HANDLERS,
    *listing.HANDLERS,
    *indexing.HANDLERS,
    *bootstrap.HANDLERS,
)
