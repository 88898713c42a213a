-- +goose Up

-- The text of effects in flight, while another process reads it. All of it may be lost.
CREATE TABLE live_text (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run_row (num),
    writer TEXT NOT NULL,
    whole INTEGER NOT NULL, -- 1: nothing before it is needed
    body TEXT NOT NULL -- JSON
);
CREATE INDEX live_text_run ON live_text (run);

-- Runs whose live text is read until a time. number grows when a reader needs it from the start.
CREATE TABLE live_reader (
    run INTEGER PRIMARY KEY REFERENCES run_row (num),
    number INTEGER NOT NULL,
    until INTEGER NOT NULL
);
