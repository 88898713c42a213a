-- +goose Up

-- What a server keeps beside runs: flows that clients put, webhooks, answer links. Times are
-- Unix milliseconds.
CREATE TABLE document (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    user TEXT, -- with whom it is deleted
    run TEXT, -- run_row.id with which it is deleted
    version INTEGER NOT NULL,
    body TEXT NOT NULL, -- JSON
    due INTEGER, -- when there is something to do
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX document_due ON document (kind, due) WHERE due IS NOT NULL;
CREATE INDEX document_user ON document (user) WHERE user IS NOT NULL;
CREATE INDEX document_run ON document (run) WHERE run IS NOT NULL;

-- Commits that ended a run, or changed what it waits for, until the server has passed them on.
-- They are written while a document of kind webhook exists.
CREATE TABLE notice (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL, -- run_row.num
    seq INTEGER NOT NULL,
    status TEXT NOT NULL,
    waiting TEXT, -- the event that lists the open questions
    at INTEGER NOT NULL
);
CREATE INDEX notice_run ON notice (run);
