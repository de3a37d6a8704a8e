-- Access control: a token belongs to a subject, a subject to groups; both may be given repositories.

CREATE TABLE flashgrep.token (
    hash bytea PRIMARY KEY,
    subject text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    expires timestamptz
);
COMMENT ON COLUMN flashgrep.token.hash IS 'SHA-256 of the token, which has 256 random bits and is not stored';
CREATE TABLE flashgrep.member (
    subject text NOT NULL,
    team text NOT NULL,
    PRIMARY KEY (subject, team)
);
CREATE TABLE flashgrep.permission (
    subject text NOT NULL,
    repository integer REFERENCES flashgrep.repository ON DELETE CASCADE,
    UNIQUE NULLS NOT DISTINCT (subject, repository)
);
COMMENT ON TABLE flashgrep.permission IS 'subject: a token''s subject or a group''s name; repository NULL: all';
CREATE TABLE flashgrep.audit (
    at timestamptz NOT NULL DEFAULT now(),
    subject text NOT NULL,
    method text NOT NULL,
    asked text NOT NULL,
    outcome text NOT NULL,
    took_ms real NOT NULL
);
CREATE INDEX ON flashgrep.audit (at);

-- The subject of this session's token. The setting can be changed by the client, but a token's hash is as hard to
-- guess as the token.
CREATE FUNCTION flashgrep.subject() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT subject FROM flashgrep.token
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND (expires IS NULL OR expires > now())
$$;
CREATE FUNCTION flashgrep.visible() RETURNS integer[] LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    WITH names AS (
        SELECT flashgrep.subject() AS subject
        UNION ALL SELECT team FROM flashgrep.member WHERE member.subject = flashgrep.subject()
    )
    SELECT coalesce(array_agg(id), '{}') FROM flashgrep.repository WHERE EXISTS (
        SELECT 1 FROM flashgrep.permission JOIN names USING (subject)
        WHERE permission.repository = repository.id OR permission.repository IS NULL
    )
$$;
CREATE FUNCTION flashgrep.note(method text, asked text, outcome text, took_ms real) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
    INSERT INTO flashgrep.audit (subject, method, asked, outcome, took_ms)
    SELECT coalesce(flashgrep.subject(), ''), method, asked, outcome, took_ms
$$;
CREATE FUNCTION flashgrep.request(wanted text) RETURNS integer
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
    INSERT INTO flashgrep.job (repository)
    SELECT id FROM flashgrep.repository WHERE name = wanted AND id = ANY (flashgrep.visible()) RETURNING repository
$$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA flashgrep FROM PUBLIC;

DO $$
DECLARE
    name text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'flashgrep_reader') THEN
        CREATE ROLE flashgrep_reader NOLOGIN;
    END IF;
    GRANT USAGE ON SCHEMA flashgrep TO flashgrep_reader;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA flashgrep TO flashgrep_reader;
    GRANT SELECT ON flashgrep.migration, flashgrep.shard TO flashgrep_reader;
    FOREACH name IN ARRAY ARRAY[
        'repository', 'branch', 'revision', 'listing', 'segment', 'text', 'block', 'symbol', 'symbol_name'
    ] LOOP
        EXECUTE format('ALTER TABLE flashgrep.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('GRANT SELECT ON flashgrep.%I TO flashgrep_reader', name);
        EXECUTE format(
            'CREATE POLICY seen ON flashgrep.%I FOR SELECT TO flashgrep_reader USING (%I = ANY ((SELECT flashgrep.visible())::integer[]))',
            name, CASE name WHEN 'repository' THEN 'id' ELSE 'repository' END
        );
    END LOOP;
    GRANT flashgrep_reader TO CURRENT_USER;
END $$;
