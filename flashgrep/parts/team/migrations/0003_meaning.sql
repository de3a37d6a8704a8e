-- Segments list their texts, so that they can be merged and deleted texts dropped; tables of chunks and vectors.

ALTER TABLE flashgrep.segment
    ADD kind smallint NOT NULL DEFAULT 0,
    ADD texts bytea NOT NULL DEFAULT '',
    ADD counts bytea NOT NULL DEFAULT '';
UPDATE flashgrep.segment SET texts = (
    SELECT coalesce(string_agg(int8send(number), ''::bytea ORDER BY number), '')
    FROM generate_series(first, last) AS number
);
ALTER TABLE flashgrep.segment DROP first, DROP last;
COMMENT ON COLUMN flashgrep.segment.kind IS '0: grams by text; 1: words by chunk';
COMMENT ON COLUMN flashgrep.segment.texts IS 'numbers of its texts (int8), in the order of their postings';
COMMENT ON COLUMN flashgrep.segment.counts IS 'in segments of words: the number of chunks of each text (int4)';

ALTER TABLE flashgrep.repository ADD cut_by text NOT NULL DEFAULT '', ADD embedder text NOT NULL DEFAULT '';
COMMENT ON COLUMN flashgrep.repository.cut_by IS 'the version of the code that made the chunks';
COMMENT ON COLUMN flashgrep.repository.embedder IS 'name of the embedder that made their vectors';

CREATE TABLE flashgrep.leftover (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    due timestamptz NOT NULL DEFAULT now(),
    tables text[] NOT NULL,
    texts bigint[] NOT NULL,
    segments bigint[] NOT NULL
);
CREATE INDEX ON flashgrep.leftover (repository);
COMMENT ON TABLE flashgrep.leftover IS 'unreferenced rows in shards: being written, left by dead workers, or replaced';

CREATE TABLE flashgrep.chunk (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    text bigint NOT NULL,
    packed bytea NOT NULL,
    whole bytea NOT NULL
) PARTITION BY LIST (shard);
COMMENT ON COLUMN flashgrep.chunk.whole IS 'the sum of its chunks'' vectors (float16)';
CREATE TABLE flashgrep.vector (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    chunk bigint NOT NULL,
    components bytea NOT NULL
) PARTITION BY LIST (shard);
COMMENT ON COLUMN flashgrep.vector.chunk IS 'the text''s number times 4096, plus the place in the text';
CREATE TABLE flashgrep.signs (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    segment bigint NOT NULL,
    data bytea NOT NULL
) PARTITION BY LIST (shard);
COMMENT ON TABLE flashgrep.signs IS 'signs of the vectors of a segment of words, 64 per word; compared before the vectors';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['chunk', 'vector', 'signs'] LOOP
        EXECUTE format('ALTER TABLE flashgrep.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('GRANT SELECT ON flashgrep.%I TO flashgrep_reader', name);
        EXECUTE format(
            'CREATE POLICY seen ON flashgrep.%I FOR SELECT TO flashgrep_reader USING (repository = ANY ((SELECT flashgrep.visible())::integer[]))',
            name
        );
    END LOOP;
END $$;
