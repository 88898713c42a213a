-- +goose Up

-- Runs that processes were executing when they ended, each with how many times that
-- has happened since its last commit. A run that is not here has none.
CREATE TABLE run_crash (
    run INTEGER PRIMARY KEY, -- run.num
    count INTEGER NOT NULL
);

-- What a running run does: NULL where nodes are at work, 1 where only child runs are, 2
-- where it waits for timers.
ALTER TABLE run_row ADD COLUMN activity INTEGER;

-- Runs that a process executes, or should: the ones to look at after a crash.
CREATE INDEX run_unfinished ON run_row (num) WHERE status IN ('running', 'pending') AND coalesce(activity, 0) < 2;
