// Policy plugins for Weir in JavaScript: the message, the verdict, and what a plugin may ask of Weir.
//
//   import { definePlugin, Verdict } from "./sdk/weir.js";
//
//   export const policy = definePlugin({
//     name: "words", version: "0.1.0", summary: "Blocks a word",
//     configSchema: { type: "object", properties: { word: { type: "string" } } },
//     create: (config) => config.word,                  // throw to refuse a configuration
//     evaluate(word, message) {
//       const found = message.under("$.params.arguments").some((leaf) => leaf.text.includes(word));
//       return found ? Verdict.block("an argument holds a word that is not allowed") : Verdict.pass();
//     },
//   });
//
// Places in a leaf's text are counted as JavaScript counts them; they become bytes of UTF-8 on the way out.
// Never here: anything that the contract (wit/policy.wit) does not have. There is no fetch, no timer and no
// clock; Math.random and Date belong to the machine that built the plugin and mean nothing.

import weir from "weir:policy/host@0.1.0";

const KINDS = ["key", "text", "number", "header"];
const ACTIONS = ["ignore", "log", "warn", "redact", "block"];

/** Makes of `create` and `evaluate` what the contract wants a plugin to export. */
export function definePlugin({ name, version, summary, configSchema = { type: "object" }, create = (config) => config, evaluate }) {
  let made;
  return {
    describe: () => ({ name, version, summary, configSchema: JSON.stringify(configSchema) }),
    configure(text) {
      try {
        made = { plugin: create(JSON.parse(text)) };
      } catch (error) {
        throw String(error?.message ?? error);
      }
    },
    evaluate(raw) {
      try {
        return evaluate(made.plugin, new Message(raw), host).raw();
      } catch (error) {
        // It ends the instance, and what it says with it: the log of the host is told before.
        // Its words may show a part of the message that no rule knows a secret in any more: they are for the author.
        host.log("warn", `an error${error?.stack ? ` at\n${error.stack}` : ""}`);
        host.log("debug", String(error));
        throw error;
      }
    },
  };
}

/** A message as Weir's pipeline sees it. */
export class Message {
  #raw;
  #utf8;
  #leaves;

  constructor(raw) { this.#raw = raw; }

  get #text() { return (this.#utf8 ??= new Utf8(this.#raw.text)); }

  /** `to-server` or `to-client`. */
  get direction() { return this.#raw.direction; }
  /** Whether it goes to the server. */
  get toServer() { return this.#raw.direction === "to-server"; }
  /** `handshake` or `stateless`. */
  get era() { return this.#raw.era; }
  /** Its method; of a result that of the request it answers. */
  get method() { return this.#cut(this.#raw.method); }
  /** The tool it belongs to, or undefined. */
  get tool() { return this.#maybe(this.#raw.tool); }
  get server() { return this.#cut(this.#raw.server); }
  get tenant() { return this.#cut(this.#raw.tenant); }
  /** A short hash that is the same for all messages of one session, or undefined. */
  get session() { return this.#maybe(this.#raw.session); }

  /** Something known about who called (`key-id`), or undefined. */
  principal(name) {
    const known = this.#raw.principal.find((attribute) => this.#cut(attribute.name) === name);
    return known && this.#cut(known.value);
  }

  /** Method and id of the call it answers, or undefined. */
  get call() {
    const call = this.#raw.call;
    return call ? { method: this.#cut(call.method), id: this.#maybe(call.id) } : undefined;
  }

  /** Every key, string, number and header: `{index, kind, path, text}`, in the order of the message. */
  get leaves() {
    if (!this.#leaves) {
      const [numbers, text] = [this.#raw.leaves, this.#text];
      this.#leaves = [];
      for (let at = 0, index = 0; at + 4 < numbers.length; at += 5, index++) {
        this.#leaves.push({
          index,
          kind: KINDS[numbers[at]],
          path: text.slice(numbers[at + 1], numbers[at + 1] + numbers[at + 2]),
          text: text.slice(numbers[at + 3], numbers[at + 3] + numbers[at + 4]),
        });
      }
    }
    return this.#leaves;
  }

  /** The leaf at exactly this path, or undefined. */
  at(path) { return this.leaves.find((leaf) => leaf.path === path); }

  /** The leaves at this path and below it. */
  under(path) {
    return this.leaves.filter((leaf) => leaf.path.startsWith(path) && /^$|^[.[{]/.test(leaf.path.slice(path.length)));
  }

  /**
   * Keys that some servers would take for a step of one of these paths, though they are written in other letters: `SQL` beside
   * or instead of `sql`. A plugin that judges arguments by their paths should block a call that has one.
   */
  twinsOf(paths) {
    return this.leaves.filter(({ kind, path, text }) => {
      if (kind !== "key" || !path.endsWith("{key}")) return false;
      const place = path.slice(0, -"{key}".length);
      const steps = paths.filter((each) => each.startsWith(place)).map((each) => firstKey(each.slice(place.length)));
      return steps.some((step) => step !== undefined && fold(step) === fold(text)) && !steps.includes(text);
    });
  }

  /** What the detection rules found; `start` and `end` are places in the leaf's text. */
  get findings() {
    return this.#raw.findings.map((found, index) => {
      const text = new Utf8(this.leaves[found.leaf]?.text ?? "");
      return {
        index, rule: this.#cut(found.rule), category: this.#cut(found.category), leaf: found.leaf,
        start: text.unit(found.start), end: text.unit(found.end), confidence: found.confidence, action: found.action,
      };
    });
  }

  #cut(span) { return this.#text.slice(span.start, span.start + span.len); }
  #maybe(span) { return span == null ? undefined : this.#cut(span); }
}

/** A plugin's word about one message, built step by step. */
export class Verdict {
  #said = { action: null, reason: "", marks: [], edits: [], rulings: [] };

  static pass() { return new Verdict(); }
  static log(reason) { return Verdict.of("log", reason); }
  static warn(reason) { return Verdict.of("warn", reason); }
  /** The reason reaches the caller: never quote the message in it. */
  static block(reason) { return Verdict.of("block", reason); }
  static of(action, reason) {
    const verdict = new Verdict().because(reason);
    verdict.#said.action = known(action);
    return verdict;
  }

  /** Says why, where marks or edits decide. */
  because(reason) { this.#said.reason = String(reason); return this; }

  /** Reports a piece of a leaf by a word of the plugin's. */
  mark(leaf, start, end, label, action) {
    this.#said.marks.push({ ...place(leaf, start, end), label, action: known(action) });
    return this;
  }

  /** Puts other text in the place of a piece of a leaf. */
  edit(leaf, start, end, replacement) {
    this.#said.edits.push({ ...place(leaf, start, end), replacement: String(replacement) });
    return this;
  }

  /** Puts other text in the place of a whole leaf. */
  replace(leaf, replacement) { return this.edit(leaf, 0, leaf.text.length, replacement); }

  /** Gives a finding another action. A milder one counts only where the binding grants `loosen`. */
  rule(finding, action) {
    this.#said.rulings.push({ finding: finding.index, action: known(action) });
    return this;
  }

  /** As the contract has it. */
  raw() { return this.#said; }
}

/** What a plugin can ask of Weir. A call that fails throws `denied`, `over-quota` or `invalid`. */
export const host = {
  log: (level, line) => weir.log(level, String(line)),
  /** Runs detection rules over a text: `{rule, category, start, end, confidence}`. */
  scan(text, rules = []) {
    const places = new Utf8(text);
    return weir.scan(text, rules).map(({ at, ...hit }) => ({ ...hit, start: places.unit(at.start), end: places.unit(at.end) }));
  },
  /** The matches of a regular expression: `{start, end}`. Linear time, unlike JavaScript's own. */
  find(pattern, text, limit = 1024) {
    const places = new Utf8(text);
    return weir.find(pattern, text, limit).map((at) => ({ start: places.unit(at.start), end: places.unit(at.end) }));
  },
  stateGet: (scope, key) => weir.stateGet(scope, key) ?? undefined,
  stateSet: (scope, key, value, ttlSeconds = 0) => weir.stateSet(scope, key, value, ttlSeconds),
  stateAdd: (scope, key, delta, ttlSeconds = 0) => weir.stateAdd(scope, key, delta, ttlSeconds),
  keyedHash: (data) => weir.keyedHash(data),
  now: () => weir.now(),
  /** What the message at hand holds beside its leaves (`true`, `false`, `null`, `{}`, `[]`): `{path, text}`. */
  words() {
    const { text, places } = weir.words();
    const [whole, words] = [new Utf8(text), []];
    const cut = (at) => whole.slice(places[at], places[at] + places[at + 1]);
    for (let at = 0; at + 3 < places.length; at += 4) words.push({ path: cut(at), text: cut(at + 2) });
    return words;
  },
};

function place(leaf, start, end) {
  const text = new Utf8(leaf.text);
  return { leaf: leaf.index, start: text.byte(start), end: text.byte(end) };
}

/** The key that a path goes on with: of `.sql[0]` that is `sql`, of `["a b"].c` it is `a b`. */
function firstKey(path) {
  const found = /^(?:\.([^.[{]+)|\["(.*?)"\])/.exec(path);
  return found ? (found[1] ?? found[2]) : undefined;
}

/** Up and down again: a long s becomes an s, the sign of Kelvin a k. */
function fold(text) { return text.toUpperCase().toLowerCase(); }

function known(action) {
  if (!ACTIONS.includes(action)) throw new Error(`${action} is no action; use one of ${ACTIONS.join(", ")}`);
  return action;
}

/** A text whose places are asked for in bytes of UTF-8. Plain ASCII, the usual case, needs no table. */
class Utf8 {
  #text;
  #starts; // the byte at which each UTF-16 unit begins, and the length behind the last

  constructor(text) {
    this.#text = text;
    if (!/[^\x00-\x7f]/.test(text)) return;
    this.#starts = new Uint32Array(text.length + 1);
    let byte = 0;
    for (let unit = 0; unit < text.length; unit++) {
      this.#starts[unit] = byte;
      const code = text.codePointAt(unit);
      byte += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      // The second half of a pair has no place of its own.
      if (code > 0xffff) this.#starts[++unit] = byte;
    }
    this.#starts[text.length] = byte;
  }

  byte(unit) { return this.#starts ? this.#starts[Math.min(unit, this.#text.length)] : Math.min(unit, this.#text.length); }

  /** The first unit that begins at this byte or behind it. */
  unit(byte) {
    if (!this.#starts) return Math.min(byte, this.#text.length);
    let [low, high] = [0, this.#text.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] < byte) low = middle + 1; else high = middle;
    }
    return low;
  }

  slice(start, end) { return this.#text.slice(this.unit(start), this.unit(end)); }
}
