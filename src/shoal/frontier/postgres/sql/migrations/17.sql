-- Sites where runs with different rules have met. Settlements say how long a task steps aside (functions only).
CREATE TABLE contested_site (
    site int PRIMARY KEY,
    looked_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX contested_site_looked ON contested_site (looked_at);
INSERT INTO contested_site (site) SELECT site FROM visit GROUP BY site HAVING count(*) > 1;
