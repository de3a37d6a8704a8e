"""A project's git repository, read from its objects: names of revisions, their files and texts."""
