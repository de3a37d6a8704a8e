-- A server and its workers outlive an upgrade, and so do postings: those of an older format are told apart, and made anew.

ALTER TABLE flashgrep.segment ADD format smallint NOT NULL DEFAULT 1;
COMMENT ON COLUMN flashgrep.segment.format IS 'of its postings; versions of flashgrep that know of none write 1';
