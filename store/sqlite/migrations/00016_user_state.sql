-- +goose Up

-- The values that flows keep for users. A commit that completes a run combines what the run
-- wrote with the value that is there. A value that was removed stays as NULL, so that its
-- version grows on.
CREATE TABLE user_value (
    id INTEGER PRIMARY KEY,
    user TEXT NOT NULL,
    flow TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT, -- JSON; NULL: the key has no value any more
    reducer TEXT, -- of the declaration under which a run wrote the value
    version INTEGER NOT NULL, -- number of changes
    run INTEGER, -- run_row.num of the run that wrote it last; NULL for another origin
    sender TEXT, -- who set it by hand
    at INTEGER NOT NULL,
    seal INTEGER NOT NULL
);
CREATE UNIQUE INDEX user_value_key ON user_value (user, flow, key);

-- The same for people with the sqlite3 shell.
CREATE VIEW user_state (user, flow, key, value, version, run, changed_by, changed_at) AS
SELECT u.user, u.flow, u.key, u.value, u.version, r.id, u.sender, u.at
FROM user_value u LEFT JOIN run_row r ON r.num = u.run
WHERE u.value IS NOT NULL;
