-- Bans by hand are no quarantine any more. What is in force now may be either, and ends as it did.
ALTER TABLE exit_book ADD COLUMN banned_until bigint NOT NULL DEFAULT 0;
DROP INDEX exit_heeded;
CREATE INDEX exit_heeded ON exit_book (name) WHERE failures > 0 OR quarantined_until > 0 OR banned_until > 0 OR cap > 0;
