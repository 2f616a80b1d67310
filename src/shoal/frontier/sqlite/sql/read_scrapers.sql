SELECT scraper, sum(waiting + leased)
FROM line
WHERE waiting + leased > 0
GROUP BY scraper
