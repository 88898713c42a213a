-- +goose Up

-- Which ids the messages of a full page have, 3 bytes of a hash each, so that a
-- message is found without reading all of a context; id is
-- context.id * 2^32 + number of the page. A page without a row is read.
CREATE TABLE message_page (
    id INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL
);

CREATE INDEX cache_expires ON cache (expires) WHERE expires IS NOT NULL;
