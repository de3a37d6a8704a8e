-- Tags are asked by name as branches are; one is a row of `branch` by its whole name, refs/tags/v1.

ALTER TABLE flashgrep.repository ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN flashgrep.repository.tags IS 'the tags that are indexed, as wildcards; none: none';
