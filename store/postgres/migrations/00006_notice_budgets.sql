-- +goose Up
-- The budgets of the run whose use has come near their limits, a JSON list; the notice is about them alone.
ALTER TABLE notice ADD COLUMN budgets bytea;
