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
SELECT TOP 10 * FROM users ORDER BY created_at DESC
SELECT TOP (5) [Name], [Order Id] FROM [dbo].[Orders] WITH (NOLOCK) WHERE [Total] > 100
SELECT u.Id, ISNULL(u.Name, N'none') FROM dbo.Users AS u INNER JOIN dbo.Orders AS o ON o.UserId = u.Id
SELECT CONVERT(varchar(10), GETDATE(), 120), CAST(x AS nvarchar(50)), TRY_CAST(y AS int) FROM t
SELECT DATEADD(day, -7, GETDATE()), DATEDIFF(hour, a, b), DATEPART(year, c), FORMAT(d, 'yyyy') FROM t
SELECT REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(a, '0', ''), '1', ''), '2', ''), '3', ''), '4', ''), '5', ''), '6', ''), '7', ''), '8', ''), '9', ''), 'a', ''), 'b', '') FROM t
SELECT IIF(a > b, 'x', 'y'), CHOOSE(c, 'p', 'q'), LEN(d), CHARINDEX('a', e), STUFF(f, 1, 2, 'g') FROM t
SELECT * FROM Orders ORDER BY Id OFFSET 10 ROWS FETCH NEXT 20 ROWS ONLY
SELECT a, STRING_AGG(b, ', ') WITHIN GROUP (ORDER BY b) FROM t GROUP BY a
SELECT value FROM STRING_SPLIT('a,b', ',')
SELECT s.value, t.id FROM t CROSS APPLY STRING_SPLIT(t.tags, ',') AS s
SELECT j.name FROM t CROSS APPLY OPENJSON(t.doc) WITH (name nvarchar(50) '$.name') AS j
SELECT JSON_VALUE(doc, '$.a'), JSON_QUERY(doc, '$.b') FROM t WHERE ISJSON(doc) = 1
SELECT t.name, c.name FROM sys.tables t JOIN sys.columns c ON c.object_id = t.object_id
SELECT * FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = N'Users'
SELECT [Year], [Q1], [Q2] FROM (SELECT y AS [Year], q, total FROM sales) s PIVOT (SUM(total) FOR q IN ([Q1], [Q2])) AS p
SELECT @id, @@ROWCOUNT, @@VERSION FROM t WHERE name = @name
SELECT a FROM t WHERE price > $5.00
SELECT * FROM #temp x JOIN ##shared y ON y.id = x.id
SELECT name COLLATE Latin1_General_CI_AS FROM t ORDER BY name COLLATE Latin1_General_CI_AS
SELECT e.n FROM db.dbo.employees e WHERE e.x % 2 = 0 AND e.flags & 4 = 4
SELECT COUNT_BIG(*), STDEV(x), VAR(x) FROM t GROUP BY GROUPING SETS ((a), (b), ())
SELECT NEWID(), SYSDATETIME(), DB_NAME(), SUSER_SNAME()
SELECT LAG(x, 1, 0) OVER (ORDER BY d), NTILE(4) OVER (ORDER BY y) FROM t
SELECT COALESCE(NULLIF(LTRIM(RTRIM(UPPER(SUBSTRING(a, 1, LEN(a) - 1)))), ''), 'x') FROM t
