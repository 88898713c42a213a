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

-- Numbers that were given out and must not be again, though their rows are gone.
CREATE TABLE gone (
    name TEXT PRIMARY KEY,
    num INTEGER NOT NULL
) WITHOUT ROWID;

-- Which commit of its run appended a message.
ALTER TABLE message ADD COLUMN seq INTEGER;
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
    coalesce(m.rest ->> '$.metadata.tokens', m.rest ->> '$.metadata.token_count'),
    r.created + c.at, m.id & 0xffffffff, r.round, r.status
FROM session s
JOIN message m ON m.id >= s.context << 32 AND m.id < (s.context + 1) << 32
JOIN run r ON r.num = (SELECT n.num FROM run n
    WHERE n.session = s.num AND n.first <= m.id & 0xffffffff ORDER BY n.first DESC, n.num DESC LIMIT 1)
JOIN run_commit c ON c.id = (r.num << 32) + m.seq;
