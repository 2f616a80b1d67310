UPDATE site SET crawl_delay = j.column2 FROM (VALUES (?, ?)) AS j WHERE site.id = j.column1
