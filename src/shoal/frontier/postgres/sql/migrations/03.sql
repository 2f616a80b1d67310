-- Runs can be on their way between two stores.
ALTER TABLE run ADD COLUMN move text;
