-- Unsharded tables: repositories, their branches, the files of each tree, jobs and segments.

CREATE TABLE flashgrep.shard (
    number smallint PRIMARY KEY,
    name text NOT NULL UNIQUE
);
CREATE TABLE flashgrep.repository (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    source text NOT NULL,
    branches text[] NOT NULL,
    head text NOT NULL DEFAULT '',
    next_text bigint NOT NULL DEFAULT 1,
    next_segment bigint NOT NULL DEFAULT 1,
    parsed_to bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    synced timestamptz,
    problem text NOT NULL DEFAULT ''
);
COMMENT ON COLUMN flashgrep.repository.branches IS 'the branches that are indexed; none: all';
COMMENT ON COLUMN flashgrep.repository.parsed_to IS 'texts up to this number have their symbols';

CREATE TABLE flashgrep.branch (
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    name text NOT NULL,
    commit bytea NOT NULL,
    PRIMARY KEY (repository, name)
);
CREATE TABLE flashgrep.revision (
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    commit bytea NOT NULL,
    tree bytea NOT NULL,
    seconds bigint NOT NULL,
    PRIMARY KEY (repository, commit)
);
CREATE TABLE flashgrep.listing (
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    tree bytea NOT NULL,
    files bytea NOT NULL,
    PRIMARY KEY (repository, tree)
);
CREATE TABLE flashgrep.content (
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    blob bytea NOT NULL,
    name_class text NOT NULL,
    text bigint NOT NULL,
    skip text NOT NULL,
    PRIMARY KEY (repository, blob, name_class)
);
COMMENT ON TABLE flashgrep.content IS 'a git blob and its text; 0: it has none, and skip says why';

CREATE TABLE flashgrep.segment (
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    id bigint NOT NULL,
    shard smallint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    bytes bigint NOT NULL,
    keys bytea NOT NULL,
    PRIMARY KEY (repository, id)
);
COMMENT ON TABLE flashgrep.segment IS 'blocks of postings are valid once their segment is here; keys: the first of each block';

CREATE TABLE flashgrep.turn (
    repository integer PRIMARY KEY REFERENCES flashgrep.repository ON DELETE CASCADE
);
COMMENT ON TABLE flashgrep.turn IS 'a worker locks a repository''s row while it works on it';
CREATE TABLE flashgrep.job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository integer NOT NULL REFERENCES flashgrep.repository ON DELETE CASCADE,
    due timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0
);

CREATE INDEX ON flashgrep.job (repository);

-- Sharded tables; a text's shard follows from its git blob hash.

CREATE TABLE flashgrep.text (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    id bigint NOT NULL,
    path bytea NOT NULL,
    data bytea NOT NULL
) PARTITION BY LIST (shard);
CREATE TABLE flashgrep.block (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    segment bigint NOT NULL,
    key bigint NOT NULL,
    data bytea NOT NULL
) PARTITION BY LIST (shard);
CREATE TABLE flashgrep.symbol (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    text bigint NOT NULL,
    packed bytea NOT NULL
) PARTITION BY LIST (shard);
CREATE TABLE flashgrep.symbol_name (
    repository integer NOT NULL,
    shard smallint NOT NULL,
    name bytea NOT NULL,
    text bigint NOT NULL
) PARTITION BY LIST (shard);
COMMENT ON COLUMN flashgrep.symbol_name.name IS 'a defined name, its ASCII letters in lower case';
