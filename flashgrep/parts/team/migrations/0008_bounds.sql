-- The server calls these functions, but any reader may run them with arguments of its own: they bound them themselves.

CREATE INDEX ON flashgrep.audit (subject, at);
CREATE OR REPLACE FUNCTION flashgrep.note(method text, asked text, outcome text, took_ms real) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    who text := flashgrep.subject();
BEGIN
    IF who IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'the token is unknown or has expired';
    END IF;
    IF 6000 <= (SELECT count(*) FROM (
        SELECT FROM flashgrep.audit WHERE subject = who AND at > now() - interval '1 minute' LIMIT 6000
    ) AS latest) THEN
        RAISE program_limit_exceeded USING MESSAGE = 'too many calls within a minute; try again later';
    END IF;
    INSERT INTO flashgrep.audit (subject, method, asked, outcome, took_ms)
    VALUES (who, left(method, 100), left(asked, 500), left(outcome, 100), took_ms);
END $$;

-- Twelve hours and 32 browsers are the most, whatever is asked. A smaller number of browsers would sign out the others.
CREATE OR REPLACE FUNCTION flashgrep.sign_in(browser bytea, seconds integer, most integer) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    who text;
BEGIN
    IF octet_length(browser) <> 32 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'a browser''s token is stored as a SHA-256';
    END IF;
    INSERT INTO flashgrep.token (hash, subject, expires, kind)
    SELECT browser, subject, least(expires, now() + make_interval(secs => least(seconds, 12 * 3600))), 'browser'
    FROM flashgrep.token
    WHERE hash = decode(current_setting('flashgrep.token', true), 'hex') AND (expires IS NULL OR expires > now())
        AND kind = 'own'
    RETURNING subject INTO who;
    DELETE FROM flashgrep.token WHERE hash IN (
        SELECT hash FROM flashgrep.token WHERE subject = who AND kind = 'browser' AND hash <> browser
        ORDER BY expires > now() DESC, created DESC OFFSET 31
    ) OR (subject = who AND expires <= now());
    RETURN who;
END $$;

-- A worker fulfils all due requests of a repository at once, so more of them only fill the table.
CREATE OR REPLACE FUNCTION flashgrep.request(wanted text) RETURNS integer
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = '' AS $$
    WITH visible AS (
        SELECT id FROM flashgrep.repository WHERE name = wanted AND id = ANY (flashgrep.visible())
    ), queued AS (
        INSERT INTO flashgrep.job (repository) SELECT id FROM visible
        WHERE 16 > (SELECT count(*) FROM flashgrep.job WHERE repository = visible.id AND due <= now())
    )
    SELECT id FROM visible
$$;
