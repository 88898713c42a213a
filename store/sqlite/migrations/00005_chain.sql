-- +goose Up

-- The link of a commit in its run's chain; store/chain.go says of what.
ALTER TABLE run_commit ADD COLUMN tag INTEGER;
-- How many commits a run had before there were chains.
ALTER TABLE run_row ADD COLUMN unchained INTEGER;
UPDATE run_row SET unchained = (SELECT nullif(max(c.id) & 0xffffffff, 0) FROM run_commit c
    WHERE c.id > run_row.num << 32 AND c.id < (run_row.num + 1) << 32);

-- What is left of a run that was erased: the chain of its commits without what was
-- in them. Its origin named it with a secret that is gone.
CREATE TABLE tombstone (
    num INTEGER PRIMARY KEY, -- run.num
    origin BLOB NOT NULL,
    base INTEGER, -- these as in run
    base_seq INTEGER,
    base_last INTEGER,
    unchained INTEGER,
    links BLOB NOT NULL -- of each commit of its own: digest, tag, events, time
);
-- Runs up to this number may be gone without a tombstone.
INSERT OR REPLACE INTO gone (name, num) SELECT 'unmarked',
    max(coalesce((SELECT max(num) FROM run_row), 0), coalesce((SELECT num FROM gone WHERE name = 'run'), 0));
