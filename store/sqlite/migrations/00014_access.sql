-- +goose Up

-- Who may use a server. Times are Unix milliseconds.
CREATE TABLE access_token (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL UNIQUE, -- SHA-256 of the token, which is not kept
    user TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL, -- separated by blanks
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
);

-- Requests that clients may send again, by a keyed digest of who sent what with which
-- Idempotency-Key.
CREATE TABLE access_request (
    key BLOB PRIMARY KEY,
    user TEXT NOT NULL,
    digest BLOB NOT NULL, -- of the content
    result TEXT, -- the id of what it made
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX access_request_expires ON access_request (expires);

-- Secrets that all processes of a server share.
CREATE TABLE access_key (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
