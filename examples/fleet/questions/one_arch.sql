-- Lines that tests of the newest commit reached on one arch only, though others have code there.
WITH newest AS (
  SELECT r.commit FROM run r ORDER BY r.date DESC, r.start DESC, r.commit LIMIT 1
), code AS (
  SELECT DISTINCT p.arch, p.identity FROM profile p WHERE p.commit IN (SELECT n.commit FROM newest n)
), lines AS (
  SELECT l.file, l.line, count(DISTINCT l.arch) AS archs
  FROM code c JOIN line l ON l.arch = c.arch AND l.identity = c.identity
  GROUP BY l.file, l.line
), reached AS (
  SELECT t.file, t.line, count(DISTINCT t.arch) AS archs, min(t.arch) AS arch
  FROM test_line t WHERE t.commit IN (SELECT n.commit FROM newest n)
  GROUP BY t.file, t.line
)
SELECT r.file, r.line, r.arch
FROM reached r JOIN lines l ON l.file = r.file AND l.line = r.line
WHERE r.archs = 1 AND l.archs > 1
ORDER BY r.file, r.line
