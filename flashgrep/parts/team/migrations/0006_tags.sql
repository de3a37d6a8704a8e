-- Tags are revisions like branches; each is a row of `branch` with its full ref name, refs/tags/v1.

ALTER TABLE flashgrep.repository ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN flashgrep.repository.tags IS 'the tags that are indexed, as wildcards; none: none';
