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
SELECT id::text, price::numeric(10,2), created_at::date FROM orders WHERE meta->>'kind' = 'a' AND tags @> ARRAY['x']
SELECT date_trunc('month', created_at) AS month, sum(total) FROM orders WHERE created_at > now() - interval '30 days' GROUP BY 1 ORDER BY 1
SELECT * FROM users WHERE name ILIKE '%ann%' AND email ~* '^a' AND id = ANY(ARRAY[1, 2, 3])
SELECT DISTINCT ON (customer_id) customer_id, total FROM orders ORDER BY customer_id, created_at DESC
SELECT count(*) FILTER (WHERE status = 'open') AS open, string_agg(name, ', ' ORDER BY name) FROM tickets
SELECT generate_series(1, 10)
SELECT d::date FROM generate_series('2026-01-01'::date, '2026-12-31'::date, '1 day') AS d
SELECT d.d, count(o.id) FROM generate_series(1, 12) AS d LEFT JOIN orders o ON o.month = d.d GROUP BY d.d
SELECT elem->>'name', elem.value FROM t, jsonb_array_elements(t.doc) AS elem
SELECT e.key, e.value FROM t CROSS JOIN LATERAL jsonb_each_text(t.doc) AS e
SELECT x.a, x.b FROM jsonb_to_recordset('[]'::jsonb) AS x(a int, b text)
SELECT r.id, r.name FROM jsonb_populate_recordset(null::users, '[]') r
SELECT t.tag, t.nr FROM posts p, unnest(p.tags) WITH ORDINALITY AS t(tag, nr)
SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'
SELECT c.relname, pg_size_pretty(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
SELECT extract(year FROM created_at), to_char(created_at, 'YYYY-MM-DD') FROM orders OFFSET 10 LIMIT 5
SELECT created_at AT TIME ZONE 'UTC' FROM events WHERE created_at BETWEEN '2026-01-01' AND '2026-02-01'
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders
SELECT a[1], b[2:3], array_length(c, 1), d || 'x' FROM t WHERE e IS DISTINCT FROM f
SELECT t.tags[1] FROM posts t WHERE $1::int = t.id AND t.name = $2
WITH RECURSIVE tree AS (SELECT id, parent FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, n.parent FROM nodes n JOIN tree t ON t.id = n.parent) SELECT * FROM tree
SELECT * FROM t WHERE EXISTS (SELECT FROM u WHERE u.id = t.id)
SELECT json_build_object('a', a, 'b', json_build_array(b, c)), jsonb_path_query(d, '$.x') FROM t
EXPLAIN ANALYZE SELECT * FROM users WHERE id = 1
SHOW search_path
SELECT (jsonb_each(doc)).key, (jsonb_each(doc)).value FROM t
