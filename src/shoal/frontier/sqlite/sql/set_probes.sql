UPDATE exit SET probe = j.column2 FROM (VALUES (?, ?)) AS j WHERE exit.name = j.column1
