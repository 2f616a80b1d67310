-- Functions take typed records, and some have other names.
SELECT 1;
