-- Slots and visits are found without looking at what an old snapshot keeps of them.
ALTER TABLE slot DROP CONSTRAINT slot_pkey;
CREATE INDEX slot_site ON slot (site, exit);
ALTER TABLE visit DROP CONSTRAINT visit_pkey;
CREATE INDEX visit_site ON visit (site, line);
