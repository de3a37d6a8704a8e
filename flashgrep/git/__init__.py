"""A project's git repository, read from its objects: names of revisions, what a revision's files are, their texts."""
