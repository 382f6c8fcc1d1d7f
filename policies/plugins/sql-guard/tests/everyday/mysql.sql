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
SELECT `id`, `order` FROM `users` WHERE `name` = "ann" LIMIT 10, 20
SELECT DATE_FORMAT(created_at, '%Y-%m') AS m, COUNT(*) FROM orders GROUP BY m WITH ROLLUP
SELECT IFNULL(a, 0), IF(b > 1, 'x', 'y'), CONCAT(c, ' ', d), CONCAT_WS(',', e, f) FROM t
SELECT * FROM orders WHERE created_at > NOW() - INTERVAL 7 DAY AND created_at < DATE_SUB(CURDATE(), INTERVAL 1 MONTH)
SELECT GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ', ') FROM users GROUP BY team
SELECT a DIV 2, (a + b) DIV (c - d), a % 3, a MOD 4 FROM t WHERE b DIV 10 = 3
SELECT t.id DIV 7 DIV 3, 100 DIV t.n FROM t
SELECT * FROM articles WHERE MATCH (title, body) AGAINST ('weir' IN NATURAL LANGUAGE MODE)
SELECT name FROM users WHERE name REGEXP '^a' AND email RLIKE 'x$'
SELECT JSON_EXTRACT(doc, '$.a'), doc->'$.b', doc->>'$.c' FROM t
SELECT * FROM information_schema.tables WHERE table_schema = DATABASE()
SHOW TABLES
SHOW DATABASES
SHOW COLUMNS FROM users
SHOW FULL COLUMNS FROM users
SHOW INDEX FROM users
DESCRIBE users
EXPLAIN SELECT * FROM users WHERE id = 1
SELECT 1 # one
SELECT YEAR(d), MONTH(d), DAYOFWEEK(d), UNIX_TIMESTAMP(d), FROM_UNIXTIME(x) FROM t
SELECT STR_TO_DATE('01.02.2026', '%d.%m.%Y'), TIMESTAMPDIFF(DAY, a, b) FROM t
SELECT u.* FROM users u STRAIGHT_JOIN orders o ON o.uid = u.id
SELECT CONVERT(a, CHAR), CAST(b AS UNSIGNED), CAST(c AS SIGNED) FROM t
SELECT @@version, @a FROM dual WHERE a <=> b
SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t USE INDEX (ix)
SHOW CREATE TABLE users
SHOW VARIABLES LIKE 'max%'
SELECT MOD(a, 2), b MOD (c), NOT MOD(d, 2) FROM t WHERE MOD(a, 3) = 1
