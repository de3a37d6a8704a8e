-- Postings survive an upgrade: those of an older format are recognised and rebuilt.

ALTER TABLE flashgrep.segment ADD format smallint NOT NULL DEFAULT 1;
COMMENT ON COLUMN flashgrep.segment.format IS 'format of its postings; versions of flashgrep before this column write 1';
