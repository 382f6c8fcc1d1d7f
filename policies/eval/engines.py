#!/usr/bin/env python3
"""Other scanners behind the protocol of score.py: {"id","text"} lines in, {"id","findings"} lines out.

usage: engines.py gitleaks|kingfisher|presidio < rows.jsonl > findings.jsonl

Each row becomes a file of its own, as these programs scan files; Presidio is a library and takes texts. Nothing is
validated over the network. GITLEAKS and KINGFISHER name the programs if they are not on the path.
"""
import json, os, pathlib, subprocess, sys, tempfile

# Needs a language model, or is not personal data in these rows.
PRESIDIO_LEFT_OUT = {'URL', 'DATE_TIME', 'PERSON', 'LOCATION', 'NRP', 'ORGANIZATION'}


def in_files(rows, scan):
    """Runs `scan(directory)` over a file for each row; it yields (file name, the secret, line)."""
    with tempfile.TemporaryDirectory() as directory:
        for n, row in enumerate(rows):
            pathlib.Path(directory, f'row{n}.txt').write_text(row['text'], encoding='utf8', errors='surrogatepass')
        found = {}
        for file, secret, line in scan(directory):
            row = rows[int(pathlib.Path(file).stem[3:])]
            found.setdefault(row['id'], []).append(span(row['text'], secret, line))
    for row in rows:
        yield row['id'], found.get(row['id'], [])


def span(text, secret, line):
    """Where the secret stands; if it was found decoded, the line it was found on."""
    at = text.find(secret) if secret else -1
    if at >= 0:
        return {'rule': 'other', 'category': 'secret', 'start': at, 'end': at + len(secret)}
    lines = text.split('\n')
    start = sum(len(l) + 1 for l in lines[:max(0, line - 1)])
    return {'rule': 'other', 'category': 'secret', 'start': start, 'end': start + len(lines[min(line, len(lines)) - 1])}


def gitleaks(directory):
    report = directory + '.json'
    subprocess.run([os.environ.get('GITLEAKS', 'gitleaks'), 'dir', directory, '--no-banner', '--exit-code', '0', '--max-decode-depth', '3',
                    '--log-level', 'error', '--report-format', 'json', '--report-path', report], check=True)
    for f in json.loads(pathlib.Path(report).read_text()):
        yield f['File'], f['Secret'], f['StartLine']
    os.unlink(report)


def kingfisher(directory):
    done = subprocess.run([os.environ.get('KINGFISHER', 'kingfisher'), 'scan', directory, '--no-validate', '--no-update-check', '--no-dedup', '--format', 'jsonl', '--quiet'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode not in (0, 200, 205):
        sys.exit(f'kingfisher ended with status {done.returncode}')
    for line in done.stdout.decode().splitlines():
        if line.startswith('{'):
            f = json.loads(line).get('finding')
            if f:
                yield f['path'], f['snippet'], f['line']


def presidio(rows):
    import spacy, tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())  # else it asks the network for the list of suffixes

    class NoModel(SpacyNlpEngine):
        """Splits words, and knows nothing: pattern recognisers and their context words are what is compared."""

        def __init__(self):
            super().__init__()
            self.nlp = {'en': spacy.blank('en')}

        def is_loaded(self):
            return True

    engine = AnalyzerEngine(nlp_engine=NoModel(), supported_languages=['en'])
    entities = [e for e in engine.get_supported_entities('en') if e not in PRESIDIO_LEFT_OUT]
    for row in rows:
        found = engine.analyze(text=row['text'], language='en', entities=entities, score_threshold=0.4)
        yield row['id'], [{'rule': f.entity_type, 'category': 'pii', 'start': f.start, 'end': f.end} for f in found]


def main():
    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    name = sys.argv[1]
    results = presidio(rows) if name == 'presidio' else in_files(rows, {'gitleaks': gitleaks, 'kingfisher': kingfisher}[name])
    for row_id, findings in results:
        print(json.dumps({'id': row_id, 'findings': findings}))


if __name__ == "__main__":
    main()
