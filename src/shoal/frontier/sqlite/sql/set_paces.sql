UPDATE site SET pace = j.column2 FROM (VALUES (?, ?)) AS j WHERE site.id = j.column1
