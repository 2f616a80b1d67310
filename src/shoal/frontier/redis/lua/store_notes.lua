-- needs: prelude notes
-- Keep notes whose streams are at home in this partition.
keep_notes(ask[4].notes)
