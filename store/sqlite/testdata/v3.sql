BEGIN TRANSACTION;
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO goose_db_version VALUES(1,0,1,'2026-11-21 04:02:19');
INSERT INTO goose_db_version VALUES(2,1,1,'2026-11-21 04:02:19');
INSERT INTO goose_db_version VALUES(3,2,1,'2026-11-21 04:02:19');
INSERT INTO goose_db_version VALUES(4,3,1,'2026-11-21 04:02:19');
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
, session INTEGER, round INTEGER, first INTEGER, base INTEGER, base_seq INTEGER, base_last INTEGER);
INSERT INTO run VALUES(1,'run-of-s-01hzx000001',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,1,0,NULL,NULL,NULL);
INSERT INTO run VALUES(2,'run-of-s-01hzx000002',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,2,2,NULL,NULL,NULL);
INSERT INTO run VALUES(3,'run-of-s-01hzx000003',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,3,4,NULL,NULL,NULL);
INSERT INTO run VALUES(4,'run-of-s-01hzx000004',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,4,6,NULL,NULL,NULL);
INSERT INTO run VALUES(5,'run-of-s-01hzx000005',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,5,8,NULL,NULL,NULL);
INSERT INTO run VALUES(6,'run-of-s-01hzx000006',-1,NULL,'chat','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff','u',NULL,'cli',1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":1,"input":100,"output":10}}]',NULL,1,6,10,NULL,NULL,NULL);
INSERT INTO run VALUES(7,'fork',7,X'ffe7c2703342274553cd56094dc0da57','chat','f',NULL,NULL,NULL,1,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":2,"input":30,"cost":7}}]',NULL,NULL,NULL,NULL,4,1,3);
INSERT INTO run VALUES(8,'plain',8,X'c86337efbdc886306d8ef32b2262da42','other','g','me',NULL,'cli',2,NULL,0,2,'completed',NULL,0,'[{"type":"effect.completed","usage":{"calls":2,"input":30,"cost":7}}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE run_commit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,   -- milliseconds after run.created
    last INTEGER NOT NULL, -- number of its last event in the run
    base INTEGER,
    messages TEXT, -- context.id,position,count,... of what it appended
    events TEXT NOT NULL
);
INSERT INTO run_commit VALUES(4294967297,999,3,NULL,'1,0,1','[{"type":"run.started","flow":"chat","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","inputs":{"message":{"$m":0}},"user":"u","origin":"cli","parallel":8,"contexts":[{"context":"main","create":true,"session":"s","body":{"create":true,"kind":"main","settings":{"model":"gpt-5-mini","provider":"openai","system":"You are kind."}}}],"session":"s","round":1},{"type":"node.completed","node":"ask","contexts":[{"context":"main","adds":1,"body":{"append":1}}]},{"type":"node.started","node":"reply","grants":["main"]}]');
INSERT INTO run_commit VALUES(4294967298,1999,6,NULL,'1,1,1','[{"type":"effect.completed","key":"reply/model#1","digest":"0123456789abcdef","result":{"message":{"role":"assistant","text":{"$m":0}},"stop":"end"},"usage":{"calls":1,"input":100,"output":10},"us":500000},{"type":"node.completed","node":"reply","outputs":{"text":{"$m":0}},"contexts":[{"context":"main","adds":1,"body":{"append":1}}],"us":500000},{"type":"run.completed","outputs":{"answer":{"$m":0}}}]');
INSERT INTO run_commit VALUES(8589934593,999,3,NULL,'1,2,1','[{"type":"run.started","flow":"chat","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","inputs":{"message":{"$m":0}},"user":"u","origin":"cli","parallel":8,"contexts":[{"context":"main","create":true,"at":2,"session":"s","body":{"create":true,"kind":"main","settings":{"model":"gpt-5-mini","provider":"openai","system":"You are kind."}}}],"session":"s","round":2},{"type":"node.completed","node":"ask","contexts":[{"context":"main","adds":1,"body":{"append":1}}]},{"type":"node.started","node":"reply","grants":["main"]}]');
INSERT INTO run_commit VALUES(8589934594,1999,6,4294967298,'1,3,1','[[]]');
INSERT INTO run_commit VALUES(12884901889,999,3,8589934593,'1,4,1','[[],9,4,17,3]');
INSERT INTO run_commit VALUES(12884901890,1999,6,4294967298,'1,5,1','[[]]');
INSERT INTO run_commit VALUES(17179869185,999,3,8589934593,'1,6,1','[[],9,6,17,4]');
INSERT INTO run_commit VALUES(17179869186,1999,6,4294967298,'1,7,1','[[]]');
INSERT INTO run_commit VALUES(21474836481,999,3,8589934593,'1,8,1','[[],9,8,17,5]');
INSERT INTO run_commit VALUES(21474836482,1999,6,4294967298,'1,9,1','[[]]');
INSERT INTO run_commit VALUES(25769803777,999,3,8589934593,'1,10,1','[[],9,10,17,6]');
INSERT INTO run_commit VALUES(25769803778,1999,6,4294967298,'1,11,1','[[]]');
INSERT INTO run_commit VALUES(30064771074,4,4,NULL,'8,7,1','[{"type":"node.completed","node":"x","contexts":[{"context":"main","adds":1,"body":{"append":1}}]}]');
INSERT INTO run_commit VALUES(34359738369,3,1,NULL,'9,0,1','[{"type":"node.completed","node":"x","contexts":[{"context":"main","adds":1,"body":{"append":1}}]}]');
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    role NOT NULL, -- 0 user, 1 assistant, 2 tool, 3 system, or a text
    content TEXT,
    value INTEGER REFERENCES value (id),
    key TEXT, -- the message's own id
    rest TEXT -- its other fields, JSON
, seq INTEGER, tokens INTEGER);
INSERT INTO message VALUES(4294967296,0,'question 0 that is longer than what is kept inline',NULL,'1/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967297,1,'answer 0, which is as long as answers are',NULL,'1/reply',NULL,2,NULL);
INSERT INTO message VALUES(4294967298,0,'question 1 that is longer than what is kept inline',NULL,'2/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967299,1,'answer 1, which is as long as answers are',NULL,'2/reply',NULL,2,NULL);
INSERT INTO message VALUES(4294967300,0,'question 2 that is longer than what is kept inline',NULL,'3/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967301,1,'answer 2, which is as long as answers are',NULL,'3/reply',NULL,2,NULL);
INSERT INTO message VALUES(4294967302,0,'question 3 that is longer than what is kept inline',NULL,'4/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967303,1,'answer 3, which is as long as answers are',NULL,'4/reply',NULL,2,NULL);
INSERT INTO message VALUES(4294967304,0,'question 4 that is longer than what is kept inline',NULL,'5/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967305,1,'answer 4, which is as long as answers are',NULL,'5/reply',NULL,2,NULL);
INSERT INTO message VALUES(4294967306,0,'question 5 that is longer than what is kept inline',NULL,'6/ask',NULL,1,NULL);
INSERT INTO message VALUES(4294967307,1,'answer 5, which is as long as answers are',NULL,'6/reply',NULL,2,NULL);
INSERT INTO message VALUES(34359738375,0,'said in fork',NULL,'/slash',NULL,2,NULL);
INSERT INTO message VALUES(38654705664,0,'said in plain',NULL,'/slash',NULL,1,NULL);
CREATE TABLE value (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    digest BLOB,
    body TEXT -- JSON; NULL where it is in value_part
);
CREATE TABLE value_part (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
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
CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL, -- JSON
    expires INTEGER      -- NULL: never
) WITHOUT ROWID;
CREATE TABLE message_page (
    id INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL
);
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
INSERT INTO session VALUES(1,'s','u','chat','s',NULL,0,X'7c37f4962eaafdda63030976ba82f5de',1,1,1,1,6,6,NULL,'[{"type":"effect.completed","usage":{"calls":6,"input":600,"output":60}}]',NULL,NULL);
INSERT INTO session VALUES(2,'aside','u','chat','aside',1,6,X'0acc8b4ac4540cb4cdf9d361b6c1424c',10,9,9,2,0,0,NULL,NULL,NULL,NULL);
CREATE TABLE queue (
    num INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL, -- session.num
    value TEXT, -- JSON
    sender TEXT,
    at INTEGER NOT NULL,
    run INTEGER -- run.num
);
INSERT INTO queue VALUES(1,'s-01hzx000001',1,NULL,NULL,1,1);
INSERT INTO queue VALUES(2,'s-01hzx000002',1,NULL,NULL,2,2);
INSERT INTO queue VALUES(3,'s-01hzx000003',1,NULL,NULL,3,3);
INSERT INTO queue VALUES(4,'s-01hzx000004',1,NULL,NULL,4,4);
INSERT INTO queue VALUES(5,'s-01hzx000005',1,NULL,NULL,5,5);
INSERT INTO queue VALUES(6,'s-01hzx000006',1,NULL,NULL,6,6);
INSERT INTO queue VALUES(7,'waits',1,'"and one that waits"','you',10,NULL);
CREATE TABLE gone (
    name TEXT PRIMARY KEY,
    num INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "context" (
    id INTEGER PRIMARY KEY,
    run INTEGER REFERENCES run (num),
    name TEXT NOT NULL,
    start INTEGER NOT NULL, -- position of its first own message
    source INTEGER, -- context.id
    kind TEXT,
    UNIQUE (run, name)
);
INSERT INTO context VALUES(1,NULL,'main',0,NULL,NULL);
INSERT INTO context VALUES(2,1,'main',0,1,'session');
INSERT INTO context VALUES(3,2,'main',2,1,'session');
INSERT INTO context VALUES(4,3,'main',4,1,'session');
INSERT INTO context VALUES(5,4,'main',6,1,'session');
INSERT INTO context VALUES(6,5,'main',8,1,'session');
INSERT INTO context VALUES(7,6,'main',10,1,'session');
INSERT INTO context VALUES(8,7,'main',7,5,'base');
INSERT INTO context VALUES(9,8,'main',0,NULL,NULL);
INSERT INTO context VALUES(10,NULL,'main',5,1,'run');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('goose_db_version',4);
INSERT INTO sqlite_sequence VALUES('queue',7);
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_due ON run (due) WHERE due > 0;
CREATE UNIQUE INDEX value_digest ON value (root, digest) WHERE digest IS NOT NULL;
CREATE VIEW value_json (id, body) AS
SELECT v.id, coalesce(v.body, (SELECT group_concat(body, '') FROM (
    SELECT body FROM value_part WHERE id >= v.id << 20 AND id < (v.id + 1) << 20 ORDER BY id)))
FROM value v;
CREATE INDEX inbox_run ON inbox (run);
CREATE INDEX cache_expires ON cache (expires) WHERE expires IS NOT NULL;
CREATE INDEX session_active ON session (user, flow, active);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;
CREATE INDEX session_expires ON session (expires) WHERE expires IS NOT NULL;
CREATE INDEX queue_waiting ON queue (session, num) WHERE run IS NULL;
CREATE INDEX queue_taken ON queue (run) WHERE run IS NOT NULL;
CREATE INDEX run_session ON run (session, first) WHERE session IS NOT NULL;
CREATE INDEX run_base ON run (base) WHERE base IS NOT NULL;
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
COMMIT;
