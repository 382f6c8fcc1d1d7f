#!/usr/bin/env python3
"""Tool results of real MCP servers, as lines of JSON: what Weir sees all day and must leave alone.

usage: capture.py DIRECTORY SERVER=COMMAND... > mcp-results.jsonl

DIRECTORY is a git working copy whose files hold no secrets and no personal data. Known servers: filesystem, git, sqlite,
time, everything, memory. A result with an address of mail or network in it is left out: it would not be a negative.
"""
import asyncio, json, re, shlex, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

NOT_CLEAN = re.compile(r'[\w.+-]+@[\w-]+\.\w|\b\d{1,3}(?:\.\d{1,3}){3}\b')
LONGEST = 6000


def calls(server, root, files):
    """The calls to make of a server: (tool, arguments)."""
    if server == 'filesystem':
        yield 'list_directory', {'path': root}
        yield 'directory_tree', {'path': root}
        yield 'search_files', {'path': root, 'pattern': '*.toml'}
        for f in files:
            yield 'read_text_file', {'path': f'{root}/{f}'}
            yield 'get_file_info', {'path': f'{root}/{f}'}
    elif server == 'git':
        for n in (3, 10, 30):
            yield 'git_log', {'repo_path': root, 'max_count': n}
        yield 'git_status', {'repo_path': root}
        yield 'git_branch', {'repo_path': root, 'branch_type': 'all'}
        for n in range(12):
            yield 'git_show', {'repo_path': root, 'revision': f'HEAD~{n}'}
            yield 'git_diff', {'repo_path': root, 'target': f'HEAD~{n + 1}', 'context_lines': 2}
    elif server == 'sqlite':
        yield 'create_table', {'query': 'CREATE TABLE orders (id INTEGER PRIMARY KEY, sku TEXT, price REAL, at TEXT)'}
        rows = ','.join(f"({100000000 + n * 7919}, 'SKU-{n * 104729 % 9999999:07d}', {n * 1.37:.2f}, '2026-03-{n % 28 + 1:02d} 10:{n % 60:02d}')" for n in range(200))
        yield 'write_query', {'query': f'INSERT INTO orders VALUES {rows}'}
        yield 'list_tables', {}
        yield 'describe_table', {'table_name': 'orders'}
        for n in range(0, 200, 20):
            yield 'read_query', {'query': f'SELECT * FROM orders LIMIT 20 OFFSET {n}'}
    elif server == 'time':
        for zone in ('Europe/Paris', 'America/Lima', 'Asia/Tokyo', 'Africa/Lagos'):
            yield 'get_current_time', {'timezone': zone}
    elif server == 'everything':
        for tool, args in (('echo', {'message': 'hello'}), ('get-sum', {'a': 2, 'b': 3}), ('get-tiny-image', {}), ('get-structured-content', {'location': 'Chicago'}),
                           ('get-annotated-message', {'messageType': 'debug', 'includeImage': True}), ('get-resource-links', {'count': 5}), ('get-resource-reference', {'resourceType': 'Text', 'resourceId': 1})):
            yield tool, args
    elif server == 'memory':
        yield 'create_entities', {'entities': [{'name': f'service-{n}', 'entityType': 'service', 'observations': [f'depends on service-{n + 1}', f'{n * 17} requests a minute']} for n in range(9)]}
        yield 'read_graph', {}


async def run(server, command, root, files):
    argv = shlex.split(command)
    async with stdio_client(StdioServerParameters(command=argv[0], args=argv[1:])) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            out = [(tool.name + '#definition', tool.model_dump_json(exclude_none=True)) for tool in tools.tools]
            for tool, args in calls(server, root, files):
                result = await session.call_tool(tool, args)
                out.append((tool, result.model_dump_json(exclude_none=True)))
    return out


def main():
    root, *servers = sys.argv[1:]
    import subprocess
    files = subprocess.check_output(['git', '-C', root, 'ls-files'], text=True).split('\n')[:-1]
    for pair in servers:
        server, command = pair.split('=', 1)
        for n, (tool, text) in enumerate(asyncio.run(run(server, command, root, files))):
            if len(text) <= LONGEST and not NOT_CLEAN.search(text):
                print(json.dumps({'server': server, 'tool': tool, 'n': n, 'text': text}, ensure_ascii=False))


main()
