-- +goose Up

-- What many runs have alike: the flow and its fingerprint.
CREATE TABLE program (
    num INTEGER PRIMARY KEY,
    flow TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    UNIQUE (fingerprint, flow)
);

-- What the table run was is run_row, which keeps what follows from elsewhere
-- nowhere twice; the view run shows a run in full.
ALTER TABLE run RENAME TO run_row;
ALTER TABLE run_row ADD COLUMN program INTEGER; -- where set, flow and fingerprint are empty
-- What a round has no rows of its own for: 1 its context main, which goes on with
-- the session's history from first on; 2 the message that began it, which had the
-- run's id, was the session's user's and is in the first commit.
ALTER TABLE run_row ADD COLUMN folded INTEGER;
-- A round whose user is NULL has its session's, one whose origin is NULL has
-- 'session:' and its session's id.
UPDATE run_row SET user = coalesce(user, ''), origin = coalesce(origin, '') WHERE session IS NOT NULL;

-- A key that begins with / is written with another, since one / stands for the
-- number of a message's round and where that begins.
UPDATE message SET key = '/' || key WHERE key LIKE '/%';

-- status is 'c' for completed; usage is a list of calls, input, cached, output,
-- reasoning and cost, or the event of old.
DROP VIEW session_message;
DROP VIEW message_text;
CREATE VIEW run AS
SELECT r.num, r.id, r.root, r.salt,
    iif(r.program IS NULL, r.flow, (SELECT p.flow FROM program p WHERE p.num = r.program)) AS flow,
    iif(r.program IS NULL, r.fingerprint, (SELECT p.fingerprint FROM program p WHERE p.num = r.program)) AS fingerprint,
    nullif(coalesce(r.user, (SELECT s.user FROM session s WHERE s.num = r.session)), '') AS user,
    r.parent,
    nullif(coalesce(r.origin, (SELECT 'session:' || s.id FROM session s WHERE s.num = r.session)), '') AS origin,
    r.created, r.owner, r.until, r.fence,
    iif(r.status = 'c', 'completed', r.status) AS status,
    r.waiting, r.due,
    iif(r.usage IS NULL OR r.usage ->> '$[0].type' IS NOT NULL, r.usage, '[{"type":"effect.completed","usage":' || (
        SELECT json_group_object(k.value, u.value)
        FROM json_each('["calls","input","cached","output","reasoning","cost"]') k
        JOIN json_each(r.usage) u ON u.key = k.key WHERE u.value <> 0) || '}]') AS usage,
    r.error, r.session, r.round, r.first, r.base, r.base_seq, r.base_last
FROM run_row r;

-- Messages for people with the sqlite3 shell, each where it was said.
CREATE VIEW message_text (run, context, position, role, content) AS
SELECT r.id, c.name, m.id & 0xffffffff,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value))
FROM run_row r
JOIN context c ON c.run = r.num
JOIN message m ON m.id >= (iif(c.kind IS 'session', c.source, c.id) << 32) + c.start AND m.id < coalesce(
    (SELECT (c.source << 32) + n.first FROM run_row n WHERE c.kind IS 'session'
        AND n.session = r.session AND (n.first, n.num) > (r.first, r.num) ORDER BY n.first, n.num LIMIT 1),
    (iif(c.kind IS 'session', c.source, c.id) + 1) << 32)
UNION ALL
SELECT r.id, 'main', m.id & 0xffffffff,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value))
FROM run_row r
JOIN session s ON s.num = r.session
JOIN message m ON m.id >= (s.context << 32) + r.first AND m.id < coalesce(
    (SELECT (s.context << 32) + n.first FROM run_row n
        WHERE n.session = r.session AND (n.first, n.num) > (r.first, r.num) ORDER BY n.first, n.num LIMIT 1),
    (s.context + 1) << 32)
WHERE r.folded & 1;

-- The history of sessions for people with the sqlite3 shell. What a session was
-- forked with is in that session's. A key that begins with / goes on from the number
-- of its round and where that begins; one that begins with // is the rest of it.
CREATE VIEW session_message (id, session, run, role, content, token_count, created_at, position, round, status) AS
SELECT CASE WHEN m.key NOT LIKE '/%' THEN m.key WHEN m.key LIKE '//%' THEN substr(m.key, 2)
        ELSE r.round || '.' || r.first || m.key END, s.id, r.id,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value)),
    m.tokens,
    r.created + c.at, m.id & 0xffffffff, r.round, iif(r.status = 'c', 'completed', r.status)
FROM session s
JOIN message m ON m.id >= s.context << 32 AND m.id < (s.context + 1) << 32
JOIN run_row r ON r.num = (SELECT n.num FROM run_row n
    WHERE n.session = s.num AND n.first <= m.id & 0xffffffff ORDER BY n.first DESC, n.num DESC LIMIT 1)
JOIN run_commit c ON c.id = (r.num << 32) + m.seq;

-- Commits for people with the sqlite3 shell: events in full. What a round's differs
-- from may be of an earlier round: base is less than 0 then, and -base how many runs
-- before this one, times 16, with the number of the commit; or, of old, its id.
-- messages of two numbers are how far from where the round begins, in the history of
-- its session, and how many.
DROP VIEW journal;
CREATE VIEW journal (run, seq, at, events) AS
SELECT r.id, c.id & 0xffffffff, r.created + c.at,
    CASE WHEN c.base IS NULL THEN c.events ELSE (
        WITH RECURSIVE
        leaf (path, i, atom, type) AS (
            SELECT t.fullkey, row_number() OVER (ORDER BY t.id) - 1, t.atom, t.type
            FROM run_commit b, json_tree(b.events) t
            WHERE b.id = CASE WHEN c.base < 0 THEN ((c.id >> 32) - (-c.base >> 4) << 32) + (-c.base & 15)
                WHEN c.base >> 32 THEN c.base ELSE (c.id >> 32 << 32) + c.base END AND t.type NOT IN ('object', 'array')
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
            SELECT 0, b.events FROM run_commit b WHERE b.id = CASE WHEN c.base < 0 THEN ((c.id >> 32) - (-c.base >> 4) << 32) + (-c.base & 15)
                WHEN c.base >> 32 THEN c.base ELSE (c.id >> 32 << 32) + c.base END
            UNION ALL
            SELECT s.n + 1, CASE WHEN h.quoted THEN json_set(s.doc, h.path, h.atom)
                ELSE json_set(s.doc, h.path, json(h.atom)) END
            FROM step s JOIN change h ON h.n = s.n + 1
        )
        SELECT doc FROM step ORDER BY n DESC LIMIT 1
    ) END
FROM run_commit c
JOIN run_row r ON r.num = c.id >> 32;
