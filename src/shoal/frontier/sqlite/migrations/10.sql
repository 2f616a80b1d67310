CREATE TABLE contested_site (
    site INTEGER PRIMARY KEY,
    looked_at INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX contested_site_looked ON contested_site (looked_at);
INSERT INTO contested_site (site) SELECT site FROM visit GROUP BY site HAVING count(*) > 1
