-- +goose Up

-- How many rows of session_change are those of a session; NULL for none.
ALTER TABLE session ADD COLUMN changes INTEGER;

-- The history of the values that sessions keep between their rounds. The newest row of a
-- key holds.
CREATE TABLE session_change (
    id INTEGER PRIMARY KEY, -- (session.num << 32) + number, from 1 without gaps
    key TEXT NOT NULL,
    value TEXT, -- JSON; NULL: the key has no value any more
    reducer TEXT, -- of the declaration under which a round wrote the value
    round INTEGER NOT NULL, -- the last round before; 0 for what the session began with
    run INTEGER, -- run_row.num of the round that wrote it; NULL for another origin
    sender TEXT, -- who set it by hand
    at INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE INDEX session_change_key ON session_change (id >> 32, key, id);

-- The values that sessions keep, for people with the sqlite3 shell.
CREATE VIEW session_state (session, key, value, round, run, changed_by, changed_at) AS
SELECT s.id, c.key, c.value, c.round, r.id, c.sender, c.at
FROM session s
JOIN session_change c ON c.id > s.num << 32 AND c.id < (s.num + 1) << 32
LEFT JOIN run_row r ON r.num = c.run
WHERE c.value IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM session_change n WHERE n.id >> 32 = s.num AND n.key = c.key AND n.id > c.id);
