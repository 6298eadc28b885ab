-- Tests to run for a diff: those that reached one of the lines in `changed`, at the commit `since`, from which the diff
-- starts. A changed file is the end of a path that was compiled.
WITH reached AS (
  SELECT DISTINCT t.test, t.file, t.line
  FROM test_line t
  WHERE t.test <> '' AND t.commit IN (SELECT q.since FROM parameter q)
), paths AS (
  SELECT f.file, c.file AS changed
  FROM (SELECT DISTINCT r.file FROM reached r) f
  JOIN (SELECT DISTINCT d.file FROM changed d) c ON f.file LIKE concat('%', c.file)
)
SELECT r.test, count(*) AS lines
FROM reached r
JOIN paths p ON p.file = r.file
JOIN changed c ON c.file = p.changed AND c.line = r.line
GROUP BY r.test
ORDER BY lines DESC, r.test
