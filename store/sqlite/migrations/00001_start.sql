-- +goose Up
PRAGMA application_id = 0x57454952;

-- A run. The journal is run_commit; status and what follows it repeat what a
-- listing needs of it.
CREATE TABLE run (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root INTEGER NOT NULL, -- num of the run that began the tree of runs
    salt BLOB,             -- of the digests in value; roots only
    flow TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    user TEXT,
    parent TEXT, -- run id
    origin TEXT,
    created INTEGER NOT NULL, -- Unix milliseconds, like all times here
    owner TEXT,               -- who holds the lease
    until INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'pending',
    waiting TEXT, -- open interrupts, JSON
    due INTEGER NOT NULL DEFAULT 0,
    usage TEXT,
    error TEXT
);
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_due ON run (due) WHERE due > 0;

-- A commit of a run; id is run.num * 2^32 + sequence number. events is JSON,
-- or, where base is set, how it differs from the events of the commit of the
-- same run with that sequence number; the view journal shows it in full.
CREATE TABLE run_commit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,   -- milliseconds after run.created
    last INTEGER NOT NULL, -- number of its last event in the run
    base INTEGER,
    messages TEXT, -- context.id,position,count,... of what it appended
    events TEXT NOT NULL
);

-- A conversation context that has messages of its own or began as a fork.
CREATE TABLE context (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (num),
    name TEXT NOT NULL,
    start INTEGER NOT NULL, -- position of its first own message
    UNIQUE (run, name)
);

-- A message; id is context.id * 2^32 + position. A content that was stored
-- before as a value is only referred to. The view message_text shows it all.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    role NOT NULL, -- 0 user, 1 assistant, 2 tool, 3 system, or a text
    content TEXT,
    value INTEGER REFERENCES value (id),
    key TEXT, -- the message's own id
    rest TEXT -- its other fields, JSON
);

-- Values that events and messages refer to. Those with a digest, salted per
-- tree of runs, are found again for ever, the others only shortly after.
CREATE TABLE value (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    digest BLOB,
    body TEXT -- JSON; NULL where it is in value_part
);
CREATE UNIQUE INDEX value_digest ON value (root, digest) WHERE digest IS NOT NULL;

-- A value whose row would leave much of a page empty, in pieces; id is
-- value.id * 2^20 + number of the piece.
CREATE TABLE value_part (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE VIEW value_json (id, body) AS
SELECT v.id, coalesce(v.body, (SELECT group_concat(body, '') FROM (
    SELECT body FROM value_part WHERE id >= v.id << 20 AND id < (v.id + 1) << 20 ORDER BY id)))
FROM value v;

CREATE TABLE flow (
    fingerprint TEXT PRIMARY KEY,
    normal BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE checkpoint (
    run INTEGER PRIMARY KEY REFERENCES run (num),
    seq INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (num),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL, -- JSON
    sender TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX inbox_run ON inbox (run);

CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL, -- JSON
    expires INTEGER      -- NULL: never
) WITHOUT ROWID;

-- Messages for people with the sqlite3 shell.
CREATE VIEW message_text (run, context, position, role, content) AS
SELECT r.id, c.name, m.id & 0xffffffff,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value))
FROM message m
JOIN context c ON c.id = m.id >> 32
JOIN run r ON r.num = c.run;

-- Commits for people with the sqlite3 shell: events in full.
CREATE VIEW journal (run, seq, at, events) AS
SELECT r.id, c.id & 0xffffffff, r.created + c.at,
    CASE WHEN c.base IS NULL THEN c.events ELSE (
        WITH RECURSIVE
        leaf (path, i, atom, type) AS (
            SELECT t.fullkey, row_number() OVER (ORDER BY t.id) - 1, t.atom, t.type
            FROM run_commit b, json_tree(b.events) t
            WHERE b.id = (c.id >> 32 << 32) + c.base AND t.type NOT IN ('object', 'array')
        ),
        pair (k, was, now) AS (
            SELECT f.key, f.value, iif(f.type = 'text' AND t.type = 'integer', rtrim(f.value, '0123456789') || t.value, t.value)
            FROM json_each(c.events, '$[0]') f, json_each(c.events, '$[0]') t
            WHERE f.key % 2 = 0 AND t.key = f.key + 1
        ),
        change (n, path, atom, quoted) AS (
            SELECT row_number() OVER (ORDER BY i), path, atom, quoted FROM (
                SELECT l.i, l.path, iif(l.type = 'text', p.now || substr(l.atom, length(p.was) + 1), p.now) AS atom,
                    l.type = 'text' AS quoted, min(p.k)
                FROM leaf l JOIN pair p ON typeof(p.was) = typeof(l.atom) AND (l.atom = p.was OR l.type = 'text'
                    AND substr(l.atom, 1, length(p.was)) = p.was
                    AND substr(l.atom, length(p.was) + 1, 1) IN ('/', ':'))
                WHERE l.i NOT IN (SELECT value FROM json_each(c.events) WHERE key % 2 = 1)
                GROUP BY l.i
                UNION ALL
                SELECT l.i, l.path, x.value, x.type = 'text', 0
                FROM json_each(c.events) k
                JOIN json_each(c.events) x ON x.key = k.key + 1
                JOIN leaf l ON l.i = k.value
                WHERE k.key % 2 = 1
            )
        ),
        step (n, doc) AS (
            SELECT 0, b.events FROM run_commit b WHERE b.id = (c.id >> 32 << 32) + c.base
            UNION ALL
            SELECT s.n + 1, CASE WHEN h.quoted THEN json_set(s.doc, h.path, h.atom)
                ELSE json_set(s.doc, h.path, json(h.atom)) END
            FROM step s JOIN change h ON h.n = s.n + 1
        )
        SELECT doc FROM step ORDER BY n DESC LIMIT 1
    ) END
FROM run_commit c
JOIN run r ON r.num = c.id >> 32;
