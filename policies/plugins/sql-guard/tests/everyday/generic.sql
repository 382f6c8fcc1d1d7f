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
SELECT price::numeric(10,2), name::varchar(20), ts::timestamp(0) FROM t
SELECT generate_series(1, 10)
SELECT d.d, count(o.id) FROM generate_series(1, 12) AS d LEFT JOIN orders o ON o.month = d.d GROUP BY d.d
SELECT e.key, e.value, e.atom FROM t, json_each(t.doc) AS e
SELECT p.name, p.type FROM pragma_table_info('users') p
SELECT s.value FROM t, string_split(t.tags, ',') s
SELECT t.tag FROM unnest(tags) AS t(tag)
SELECT name FROM users FETCH FIRST 5 ROWS ONLY
SELECT * FROM users LIMIT 10 OFFSET 5
SELECT extract(year FROM created_at), current_date, current_timestamp FROM orders
SELECT substring(a, 1, 2), position('x' IN b), trim(BOTH ' ' FROM c), overlay(d PLACING 'e' FROM 1 FOR 2) FROM t
SELECT date '2026-01-01', timestamp '2026-01-01 10:00:00', interval '1' day
SELECT created_at + interval '7 days', created_at AT TIME ZONE 'UTC' FROM t
SELECT s.interval, s."interval" + 1 FROM schedules s WHERE s.interval > 5
SELECT row_number() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b)
SELECT * FROM a NATURAL JOIN b JOIN c USING (id) FULL OUTER JOIN d ON d.id = c.id
SELECT * FROM (a JOIN b ON a.id = b.id) JOIN (c JOIN d ON c.id = d.id) ON a.id = c.id
SELECT a, b, sum(c) FROM t GROUP BY ROLLUP (a, b)
SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4))
SELECT a FROM t WHERE a = ALL (SELECT b FROM u) OR a > ANY (SELECT c FROM v)
SELECT lower(upper(lower(upper(lower(upper(lower(upper(lower(upper(lower(upper(a)))))))))))) FROM t
SELECT commit, author, comment, position FROM history WHERE start < 5 AND level = 'x'
SELECT table_name FROM information_schema.tables
SHOW TABLES
EXPLAIN SELECT 1
