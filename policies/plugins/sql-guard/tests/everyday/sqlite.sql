SELECT * FROM users
SELECT id, name, email FROM users WHERE active = 1 AND created_at >= '2026-01-01' ORDER BY name ASC, id DESC LIMIT 50
SELECT count(*) AS total, status FROM orders GROUP BY status HAVING count(*) > 10 ORDER BY total DESC
SELECT u.name, o.total, o.total * 1.19 AS gross FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.total IS NOT NULL AND u.name LIKE 'A%'
SELECT DISTINCT country FROM customers WHERE country IN ('DE', 'FR', 'IT') OR region NOT IN (1, 2, 3)
SELECT c.name, (SELECT max(o.created_at) FROM orders o WHERE o.customer_id = c.id) AS latest FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)
WITH recent AS (SELECT * FROM orders WHERE year = 2026), top AS (SELECT customer_id, sum(total) AS s FROM recent GROUP BY customer_id) SELECT * FROM top WHERE s BETWEEN 100 AND 500
SELECT id, CASE WHEN amount > 100 THEN 'big' WHEN amount > 10 THEN 'middle' ELSE 'small' END AS size, CASE status WHEN 1 THEN 'a' END FROM payments
SELECT name FROM a UNION SELECT name FROM b UNION ALL SELECT name FROM c ORDER BY name
SELECT department, salary, rank() OVER (PARTITION BY department ORDER BY salary DESC) AS place, sum(salary) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM employees
SELECT coalesce(a, b, 'none'), nullif(c, 0), upper(trim(d)), replace(replace(replace(e, 'a', 'b'), 'c', 'd'), 'e', 'f') FROM t
SELECT cast(price AS decimal(10, 2)), cast(id AS varchar(20)) FROM items WHERE -price < +5 AND NOT (a = b)
SELECT a.id FROM a INNER JOIN b ON a.id = b.a_id AND b.kind = 'x' CROSS JOIN c WHERE (a.x + a.y) * 2 / 3 <> b.z
SELECT t.year, t.date, t.value, t.key FROM stats t JOIN users ON users.id = t.user_id WHERE t.year = 2026
SELECT "order", "group" FROM "table" WHERE "from" = 'x'
SELECT sub.n FROM (SELECT name AS n, count(*) AS c FROM people GROUP BY name) sub WHERE sub.c > 1
SELECT id FROM jobs WHERE (status = 'open' OR status = 'new') AND (owner = 'me' OR owner IS NULL) -- mine
SELECT /* all */ id, 'it''s' AS note FROM t WHERE a = 'x--y' AND b = '/* no */'
SELECT avg(x), min(x), max(x), count(DISTINCT y) FROM t WHERE z = TRUE AND w <> FALSE
SELECT e.name, m.name AS manager FROM employees e LEFT JOIN employees m ON m.id = e.manager_id ORDER BY 1, 2
SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
SELECT p.name, p.type FROM pragma_table_info('users') p
SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p ON m.type = 'table'
SELECT strftime('%Y-%m', created_at) AS m, count(*) FROM orders GROUP BY m
SELECT date('now', '-7 days'), datetime('now'), julianday(a) - julianday(b) FROM t
SELECT * FROM docs WHERE docs MATCH 'weir'
SELECT * FROM docs WHERE body MATCH ('weir OR dam') ORDER BY rank
SELECT snippet(docs, 0, '<b>', '</b>', '...', 10), bm25(docs) FROM docs WHERE docs MATCH 'a'
SELECT name FROM users WHERE name REGEXP '^a' OR name GLOB 'b*'
SELECT name FROM users WHERE name NOT REGEXP ('^a') AND name NOT MATCH 'b'
SELECT count(*) AS match, max(score) AS regexp FROM games
SELECT g.match, match FROM games g WHERE match = 3 AND g.match > 1
SELECT j.key, j.value, j.type, j.atom FROM t, json_each(t.doc) j
SELECT json_extract(doc, '$.a'), doc->'b', doc->>'c' FROM t
SELECT [id], `name`, "email" FROM [users]
SELECT iif(a > b, 1, 2), ifnull(c, 0), printf('%d', e), instr(f, 'g'), substr(h, 1, 2) FROM t
SELECT typeof(a), hex(b), quote(c), length(d), abs(e), round(f, 2), random() FROM t
SELECT group_concat(name, ', ') FROM users GROUP BY team
SELECT * FROM t WHERE a = :a AND b = @b AND c = $c AND d = ?1 AND e = ?
SELECT rowid, * FROM t ORDER BY rowid DESC LIMIT 5 OFFSET 10
SELECT a || ' ' || b, a == b, a <> b, a & 1, a | 2 FROM t
SELECT x'0102', 0x1f, 1e3, .5 FROM t
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) SELECT x FROM n
EXPLAIN QUERY PLAN SELECT * FROM users WHERE id = 1
SELECT a FROM t WHERE b IS NULL AND d IS NOT NULL AND g NOTNULL
SELECT regexp('a', b), match(c, d) FROM t WHERE NOT regexp('a', b) AND e NOT REGEXP ('f')
