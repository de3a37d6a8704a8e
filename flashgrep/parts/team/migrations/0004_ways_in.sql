-- Further ways to authenticate: a browser's sign-in, and a proxy that names the person it has signed in.

ALTER TABLE flashgrep.token ADD COLUMN kind text NOT NULL DEFAULT 'own' CHECK (kind IN ('own', 'browser', 'proxy'));
COMMENT ON COLUMN flashgrep.token.kind IS 'browser: made by a sign-in, expires; proxy: acts for the person it names';

-- The person named by a proxy is a setting of the session, ignored without a proxy's token. A person with the name of
-- a group, or with the prefix of proxies' groups, would get that group's repositories, so such names are no subjects.
CREATE OR REPLACE FUNCTION flashgrep.subject() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT CASE WHEN kind <> 'proxy' THEN subject ELSE (
        SELECT name FROM nullif(current_setting('flashgrep.person', true), '') AS name
        WHERE name NOT LIKE 'group:%' AND NOT EXISTS (SELECT FROM flashgrep.member WHERE team = name)
    ) END
    FROM flashgrep.token
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND (expires IS NULL OR expires > now())
$$;
CREATE FUNCTION flashgrep.names() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT flashgrep.subject()
    UNION ALL SELECT team FROM flashgrep.member WHERE member.subject = flashgrep.subject()
    UNION ALL SELECT 'group:' || one
    FROM flashgrep.token, jsonb_array_elements_text(nullif(current_setting('flashgrep.groups', true), '')::jsonb) AS one
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND kind = 'proxy'
        AND flashgrep.subject() IS NOT NULL
$$;
CREATE OR REPLACE FUNCTION flashgrep.visible() RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    WITH names AS (SELECT name FROM flashgrep.names() AS name)
    SELECT coalesce(array_agg(id), '{}') FROM flashgrep.repository WHERE EXISTS (
        SELECT 1 FROM flashgrep.permission JOIN names ON permission.subject = names.name
        WHERE permission.repository = repository.id OR permission.repository IS NULL
    )
$$;

-- A browser's token expires no later than the token it was made from, and cannot be used to make another.
CREATE FUNCTION flashgrep.sign_in(browser bytea, seconds integer, most integer) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    who text;
BEGIN
    INSERT INTO flashgrep.token (hash, subject, expires, kind)
    SELECT browser, subject, least(expires, now() + make_interval(secs => seconds)), 'browser' FROM flashgrep.token
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND (expires IS NULL OR expires > now())
        AND kind = 'own'
    RETURNING subject INTO who;
    DELETE FROM flashgrep.token WHERE hash IN (
        SELECT hash FROM flashgrep.token WHERE subject = who AND kind = 'browser' AND hash <> browser
        ORDER BY expires > now() DESC, created DESC OFFSET most - 1
    ) OR (subject = who AND expires <= now());
    RETURN who;
END $$;
CREATE FUNCTION flashgrep.sign_out() RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
    DELETE FROM flashgrep.token
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND kind = 'browser'
$$;
REVOKE ALL ON FUNCTION flashgrep.names(), flashgrep.sign_in(bytea, integer, integer), flashgrep.sign_out() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flashgrep.names(), flashgrep.sign_in(bytea, integer, integer), flashgrep.sign_out()
    TO flashgrep_reader;
