-- +goose Up

-- A conversation over many runs, its rounds.
CREATE TABLE session (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    flow TEXT NOT NULL,
    thread TEXT NOT NULL,
    parent INTEGER, -- num of the session that the first messages are read from
    parent_round INTEGER NOT NULL DEFAULT 0,
    salt BLOB NOT NULL, -- of the digests in value, of all its rounds
    context INTEGER NOT NULL UNIQUE, -- context.id of its history
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL, -- when it was made or its last round began
    active INTEGER NOT NULL, -- the highest of (user, flow) is the active one
    rounds INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    holder INTEGER, -- num of the run that is the current round
    usage TEXT, -- of the rounds that have ended
    main BLOB, -- what the last round left of its main context
    expires INTEGER,
    UNIQUE (user, flow, thread)
);
CREATE INDEX session_active ON session (user, flow, active);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;
CREATE INDEX session_expires ON session (expires) WHERE expires IS NOT NULL;

-- Messages to sessions. Once a round has taken one, run is that round, and its
-- value is gone with the round's first commit, which has it.
CREATE TABLE queue (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL, -- session.num
    value TEXT, -- JSON
    sender TEXT,
    at INTEGER NOT NULL,
    run INTEGER -- run.num
);
CREATE INDEX queue_waiting ON queue (session, num) WHERE run IS NULL;
CREATE INDEX queue_taken ON queue (run) WHERE run IS NOT NULL;

-- A round: its session, its number and the position of its first message in the
-- session's history. A root of -session.num is that of all rounds of a session.
ALTER TABLE run ADD COLUMN session INTEGER;
ALTER TABLE run ADD COLUMN round INTEGER;
ALTER TABLE run ADD COLUMN first INTEGER;
-- A run whose first commits are those of another: its num, their number and that
-- of their last event.
ALTER TABLE run ADD COLUMN base INTEGER;
ALTER TABLE run ADD COLUMN base_seq INTEGER;
ALTER TABLE run ADD COLUMN base_last INTEGER;
CREATE INDEX run_session ON run (session, first) WHERE session IS NOT NULL;
CREATE INDEX run_base ON run (base) WHERE base IS NOT NULL;

-- Numbers that were given out and must not be again, though their rows are gone; and
-- 'traces' while the file may still hold bytes of deleted rows.
CREATE TABLE gone (
    name TEXT PRIMARY KEY,
    num INTEGER NOT NULL
) WITHOUT ROWID;

-- Which commit of its run appended a message.
ALTER TABLE message ADD COLUMN seq INTEGER;
-- How many tokens it has, of messages of sessions that were counted.
ALTER TABLE message ADD COLUMN tokens INTEGER;
CREATE TABLE span_of (lo INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
INSERT INTO span_of (lo, seq)
SELECT (x.value << 32) + p.value, c.id & 0xffffffff
FROM run_commit c, json_each('[' || c.messages || ']') x, json_each('[' || c.messages || ']') p
WHERE c.messages IS NOT NULL AND x.key % 3 = 0 AND p.key = x.key + 1;
UPDATE message SET seq = (SELECT seq FROM span_of WHERE lo <= message.id ORDER BY lo DESC LIMIT 1);
DROP TABLE span_of;

-- A context may go on with another's messages: those before start are read from
-- source. Its kind is then 'lane' (forked inside its run), 'base' (its run shares
-- the past of the source's), 'run' (of another run) or 'session': so are the ones
-- after start then, up to where the next round of that session begins, since they
-- are in its history, which is a context without a run.
DROP VIEW message_text;
CREATE TABLE context_with_source (
    id INTEGER PRIMARY KEY,
    run INTEGER REFERENCES run (num),
    name TEXT NOT NULL,
    start INTEGER NOT NULL, -- position of its first own message
    source INTEGER, -- context.id
    kind TEXT,
    UNIQUE (run, name)
);
INSERT INTO context_with_source (id, run, name, start) SELECT id, run, name, start FROM context;
DROP TABLE context;
ALTER TABLE context_with_source RENAME TO context;

-- Messages for people with the sqlite3 shell, each where it was said.
CREATE VIEW message_text (run, context, position, role, content) AS
SELECT r.id, c.name, m.id & 0xffffffff,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value))
FROM run r
JOIN context c ON c.run = r.num
JOIN message m ON m.id >= (iif(c.kind IS 'session', c.source, c.id) << 32) + c.start AND m.id < coalesce(
    (SELECT (c.source << 32) + n.first FROM run n WHERE c.kind IS 'session'
        AND n.session = r.session AND (n.first, n.num) > (r.first, r.num) ORDER BY n.first, n.num LIMIT 1),
    (iif(c.kind IS 'session', c.source, c.id) + 1) << 32);

-- The history of sessions for people with the sqlite3 shell. What a session was
-- forked with is in that session's.
CREATE VIEW session_message (id, session, run, role, content, token_count, created_at, position, round, status) AS
SELECT m.key, s.id, r.id,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value)),
    m.tokens,
    r.created + c.at, m.id & 0xffffffff, r.round, r.status
FROM session s
JOIN message m ON m.id >= s.context << 32 AND m.id < (s.context + 1) << 32
JOIN run r ON r.num = (SELECT n.num FROM run n
    WHERE n.session = s.num AND n.first <= m.id & 0xffffffff ORDER BY n.first DESC, n.num DESC LIMIT 1)
JOIN run_commit c ON c.id = (r.num << 32) + m.seq;

-- Commits for people with the sqlite3 shell: events in full. What a round's differs
-- from may be of an earlier round: base is the id then. Those that a run shares with
-- its base are the base's.
DROP VIEW journal;
CREATE VIEW journal (run, seq, at, events) AS
SELECT r.id, c.id & 0xffffffff, r.created + c.at,
    CASE WHEN c.base IS NULL THEN c.events ELSE (
        WITH RECURSIVE
        leaf (path, i, atom, type) AS (
            SELECT t.fullkey, row_number() OVER (ORDER BY t.id) - 1, t.atom, t.type
            FROM run_commit b, json_tree(b.events) t
            WHERE b.id = iif(c.base >> 32, c.base, (c.id >> 32 << 32) + c.base) AND t.type NOT IN ('object', 'array')
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
            SELECT 0, b.events FROM run_commit b WHERE b.id = iif(c.base >> 32, c.base, (c.id >> 32 << 32) + c.base)
            UNION ALL
            SELECT s.n + 1, CASE WHEN h.quoted THEN json_set(s.doc, h.path, h.atom)
                ELSE json_set(s.doc, h.path, json(h.atom)) END
            FROM step s JOIN change h ON h.n = s.n + 1
        )
        SELECT doc FROM step ORDER BY n DESC LIMIT 1
    ) END
FROM run_commit c
JOIN run r ON r.num = c.id >> 32;
