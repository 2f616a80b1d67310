-- Workers say what they take on.
ALTER TABLE worker ADD COLUMN duties text NOT NULL DEFAULT '{}';
