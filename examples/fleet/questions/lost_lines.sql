-- Lost lines: those that tests of the commit `since` reached, and tests of the commit `until` do not.
-- They have their numbers in both: ask for files that did not change between the two.
WITH code AS (
  SELECT DISTINCT p.arch, p.identity FROM profile p WHERE p.commit IN (SELECT q.until FROM parameter q)
), lines AS (
  SELECT DISTINCT l.arch, l.file, l.line
  FROM code c JOIN line l ON l.arch = c.arch AND l.identity = c.identity
), before AS (
  SELECT DISTINCT t.arch, t.file, t.line FROM test_line t WHERE t.commit IN (SELECT q.since FROM parameter q)
), after AS (
  SELECT DISTINCT t.arch, t.file, t.line FROM test_line t WHERE t.commit IN (SELECT q.until FROM parameter q)
)
SELECT b.arch, b.file, b.line
FROM before b
JOIN lines l ON l.arch = b.arch AND l.file = b.file AND l.line = b.line
LEFT JOIN after a ON a.arch = b.arch AND a.file = b.file AND a.line = b.line
WHERE a.line IS NULL
ORDER BY b.arch, b.file, b.line
