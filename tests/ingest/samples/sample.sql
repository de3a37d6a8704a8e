-- Accounts of people.
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS shop.orders (id INT, account INT REFERENCES accounts(id));
CREATE VIEW active AS SELECT id, upper(name) FROM accounts WHERE name = 'accounts';
CREATE UNIQUE INDEX by_name ON accounts (name);
CREATE FUNCTION total(x INT) RETURNS INT AS $$ SELECT sum(x) $$ LANGUAGE sql;
CREATE TYPE mood AS ENUM ('ok', 'bad');
CREATE OR REPLACE TRIGGER touch BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE PROCEDURE archive() LANGUAGE sql AS $$ DELETE FROM accounts $$;
SELECT total(id) FROM accounts;
