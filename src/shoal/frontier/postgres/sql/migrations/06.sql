-- What did not have to be asked for, or sent, because it was remembered.
ALTER TABLE tally ADD COLUMN saved_requests bigint NOT NULL DEFAULT 0;
ALTER TABLE tally ADD COLUMN saved_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE tally_change ADD COLUMN saved_requests bigint NOT NULL DEFAULT 0;
ALTER TABLE tally_change ADD COLUMN saved_bytes bigint NOT NULL DEFAULT 0;
