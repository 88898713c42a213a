-- +goose Up
-- The last transaction of each connection, by which a process finds out whether the
-- transaction was committed in which it lost the connection.
CREATE TABLE transaction_mark (
    connection bytea PRIMARY KEY,
    number bigint NOT NULL,
    at bigint NOT NULL
);
