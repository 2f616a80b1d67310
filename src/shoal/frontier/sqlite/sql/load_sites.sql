UPDATE site SET load = load + (j.value ->> 1) FROM json_each(:rows) AS j WHERE site.id = j.value ->> 0
