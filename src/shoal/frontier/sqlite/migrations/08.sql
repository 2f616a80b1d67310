-- Bans by hand are no quarantine any more. What is in force now may be either, and ends as it did.
ALTER TABLE exit ADD COLUMN banned_until INTEGER NOT NULL DEFAULT 0;
DROP INDEX exit_heeded;
CREATE INDEX exit_heeded ON exit (name) WHERE failures + quarantined_until + cap + banned_until > 0;
CREATE INDEX slot_limit_over ON slot_limit (limited_until)
