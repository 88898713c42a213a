-- +goose Up

-- What a row of record says beside the journal, as 4 bytes of a hash, so that a
-- change by another hand is found; seal.go says of what. Rows of earlier versions are
-- sealed when the database is opened next: 'unsealed' in gone.
ALTER TABLE run_row ADD COLUMN seal INTEGER;
ALTER TABLE session ADD COLUMN seal INTEGER;
ALTER TABLE tombstone ADD COLUMN seal INTEGER;
ALTER TABLE gone ADD COLUMN seal INTEGER;
INSERT INTO gone (name, num) VALUES ('unsealed', 1);
