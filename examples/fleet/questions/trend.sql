-- Trend: the lines with code of each commit, and those that a test reached.
WITH code AS (
  SELECT DISTINCT p.commit, p.arch, p.identity FROM profile p
), days AS (
  SELECT r.commit, min(r.date) AS first_date, count(*) AS runs FROM run r GROUP BY r.commit
), lines AS (
  SELECT DISTINCT c.commit, c.arch, l.file, l.line
  FROM code c JOIN line l ON l.arch = c.arch AND l.identity = c.identity
), reached AS (
  SELECT DISTINCT t.commit, t.arch, t.file, t.line FROM test_line t
), of_commit AS (
  SELECT l.commit, count(*) AS lines, count(r.line) AS covered
  FROM lines l
  LEFT JOIN reached r ON r.commit = l.commit AND r.arch = l.arch AND r.file = l.file AND r.line = l.line
  GROUP BY l.commit
)
SELECT d.first_date, d.commit, d.runs, o.lines, o.covered
FROM of_commit o JOIN days d ON d.commit = o.commit
ORDER BY d.first_date, d.commit
