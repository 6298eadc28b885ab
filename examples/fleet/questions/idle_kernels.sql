-- Idle kernels: those of code that runs had in the last 30 days of the data set, and none of these runs launched.
-- The first counter of a function counts its calls.
WITH recent AS (
  SELECT CAST(CAST(CAST(max(r.date) AS DATE) - INTERVAL '30' DAY AS DATE) AS STRING) AS first_date FROM run r
), code AS (
  SELECT DISTINCT p.arch, p.identity FROM profile p CROSS JOIN recent d WHERE p.date >= d.first_date
), kernels AS (
  SELECT f.arch, f.identity, f.function, f.demangled
  FROM code c JOIN function f ON f.arch = c.arch AND f.identity = c.identity
  WHERE f.kernel
), called AS (
  SELECT DISTINCT n.arch, n.identity, n.function
  FROM counter n CROSS JOIN recent d
  WHERE n.kind = 'counter' AND n.index = 0 AND n.date >= d.first_date
)
SELECT k.arch, k.demangled
FROM kernels k
LEFT JOIN called c ON c.arch = k.arch AND c.identity = k.identity AND c.function = k.function
GROUP BY k.arch, k.demangled
HAVING count(c.function) = 0
ORDER BY k.arch, k.demangled
