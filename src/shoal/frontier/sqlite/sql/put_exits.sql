INSERT INTO exit (name, address, pools, cap)
VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET address = excluded.address, pools = excluded.pools, cap = excluded.cap
