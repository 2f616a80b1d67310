UPDATE site SET crawl_delay = j.column2, pace = j.column3 FROM (VALUES (?, ?, ?)) AS j WHERE site.id = j.column1
