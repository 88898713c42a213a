-- +goose Up

-- Whose memory there is: a user's, or that of a session with nobody in particular;
-- one of user and session is ''.
CREATE TABLE recall_scope (
    num INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL, -- session.id
    UNIQUE (namespace, user, session)
);
CREATE INDEX recall_scope_user ON recall_scope (user) WHERE user <> '';

-- What is remembered, each in its newest version. Times are Unix milliseconds.
CREATE TABLE recall_item (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES recall_scope (num),
    kind TEXT NOT NULL, -- fact, episode, procedure
    key TEXT, -- a later one of the same replaces it
    created INTEGER NOT NULL,
    words INTEGER NOT NULL, -- terms in recall_index
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    tags TEXT, -- JSON
    at INTEGER NOT NULL,
    written INTEGER NOT NULL,
    run TEXT, -- these say where the version came from
    flow TEXT,
    session TEXT,
    round INTEGER,
    author TEXT
);
CREATE UNIQUE INDEX recall_item_key ON recall_item (scope, kind, key) WHERE key IS NOT NULL;
CREATE INDEX recall_item_newest ON recall_item (scope, at, num, words);
CREATE INDEX recall_item_length ON recall_item (scope, kind, length(text));

-- What items said before.
CREATE TABLE recall_past (
    item INTEGER NOT NULL REFERENCES recall_item (num),
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    tags TEXT,
    at INTEGER NOT NULL,
    written INTEGER NOT NULL,
    run TEXT,
    flow TEXT,
    session TEXT,
    round INTEGER,
    author TEXT,
    PRIMARY KEY (item, version)
);

-- What came of the calls that wrote or forgot, so that a call that is made again
-- after a crash changes nothing. An item that was forgotten may be in it.
CREATE TABLE recall_call (
    digest BLOB PRIMARY KEY, -- of the call's key
    scope INTEGER NOT NULL REFERENCES recall_scope (num),
    item TEXT NOT NULL,
    version INTEGER NOT NULL, -- 0 where it forgot
    known INTEGER NOT NULL -- nothing was written; where it forgot, nothing was there
) WITHOUT ROWID;

-- The terms of items by recall_item.num, each behind the number of its scope: what
-- is looked for in one scope meets no term of another. Package recall makes them.
CREATE VIRTUAL TABLE recall_index USING fts5(terms, tokenize = 'ascii');
INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1);

-- For people.
CREATE VIEW remembered (id, namespace, user, session, kind, key, text, tags, at, written, version, run) AS
SELECT i.id, s.namespace, s.user, s.session, i.kind, i.key, i.text, i.tags, i.at, i.written, i.version, i.run
FROM recall_item i JOIN recall_scope s ON s.num = i.scope;
