-- Worst files: those with the most lines that no test of the newest commit reached.
WITH newest AS (
  SELECT r.commit FROM run r ORDER BY r.date DESC, r.start DESC, r.commit LIMIT 1
), code AS (
  SELECT DISTINCT p.arch, p.identity FROM profile p WHERE p.commit IN (SELECT n.commit FROM newest n)
), lines AS (
  SELECT DISTINCT l.arch, l.file, l.line
  FROM code c JOIN line l ON l.arch = c.arch AND l.identity = c.identity
), reached AS (
  SELECT DISTINCT t.arch, t.file, t.line FROM test_line t WHERE t.commit IN (SELECT n.commit FROM newest n)
)
SELECT l.file, count(*) AS lines, count(*) - count(r.line) AS missed
FROM lines l LEFT JOIN reached r ON r.arch = l.arch AND r.file = l.file AND r.line = l.line
GROUP BY l.file
ORDER BY missed DESC, lines DESC, l.file
LIMIT 20
