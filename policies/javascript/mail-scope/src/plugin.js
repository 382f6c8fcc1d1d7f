// Tools may write to these mail domains only. Other addresses in the arguments of a call are blocked, or taken
// out, and those in answers are left alone: reading an address is not writing to it.
//
// What an address may look like is nobody's knowledge: quoted names, marks, letters of any script, numbers of machines. So
// every sign that can divide name from domain gets the action, unless an allowed domain stands behind it, whole.

import { definePlugin, Verdict } from "../../../../dlp-sdk/js/weir.js";

// The sign itself, its wide and its small form, and as a URL writes it.
const SIGN = "[@\uFF20\uFE6B]|%40";
const SIGNS_MAX = 256;
const NAME_MAX = 64;
const DOMAIN_MAX = 255;
// What may be a part of an address on either side; the rest of a text ends it.
const ENDS = /[\s<>()[\],;:"]/;
// Behind an allowed domain these would make another one of it: letters, digits, what is not seen, dots before more, and all of
// them as a URL writes them.
const GOES_ON =
  /^[.\u3002\uFF0E\uFF61-]*(?:[\p{L}\p{N}\p{M}\p{Cf}_@\uFF20\uFE6B]|%(?:2[DdEe]|3\d|[4-7][0-9A-Fa-f]|[89A-Fa-f][0-9A-Fa-f]))/u;

export const policy = definePlugin({
  name: "mail-scope",
  version: "0.1.0",
  summary: "Keeps the mail addresses in a call's arguments within some domains",
  configSchema: {
    type: "object",
    properties: {
      domains: {
        type: "array", items: { type: "string" }, minItems: 1, maxItems: 256,
        description: "Domains that may be written to, such as example.com; *.example.com means those below it",
      },
      action: { enum: ["block", "redact", "warn"], default: "block", description: "What becomes of other addresses" },
    },
    required: ["domains"],
    additionalProperties: false,
  },

  create({ domains, action = "block" }) {
    if (!Array.isArray(domains) || domains.length === 0 || domains.some((domain) => typeof domain !== "string")) {
      throw new Error("domains: a list with at least one domain is wanted");
    }
    if (!["block", "redact", "warn"].includes(action)) throw new Error("action: use block, redact or warn");
    return { domains: domains.map((domain) => domain.toLowerCase()), action };
  },

  evaluate({ domains, action }, message, host) {
    const verdict = Verdict.pass();
    if (!message.toServer || message.method !== "tools/call") return verdict;
    const allowed = (domain) =>
      domains.some((entry) => (entry.startsWith("*.") ? domain.endsWith(entry.slice(1)) : domain === entry));
    for (const leaf of message.under("$.params.arguments")) {
      if (!/[@\uFF20\uFE6B]|%40/.test(leaf.text)) continue;
      const signs = host.find(SIGN, leaf.text, SIGNS_MAX);
      if (signs.length === SIGNS_MAX) return Verdict.block("an argument holds more addresses than can be checked");
      let done = 0; // what is behind this has not been judged yet
      for (const sign of signs) {
        if (sign.start < done) continue;
        const domain = domainAt(leaf.text, sign.end);
        const end = sign.end + domain.length;
        const plain = ["@", "%40"].includes(leaf.text.slice(sign.start, sign.end));
        if (plain && allowed(domain.toLowerCase()) && !GOES_ON.test(leaf.text.slice(end, end + DOMAIN_MAX))) {
          done = end;
          continue;
        }
        const start = before(leaf.text, sign.start, done);
        done = behind(leaf.text, sign.end);
        verdict
          .mark(leaf, start, done, "foreign-address", action)
          .because("an argument holds an address outside of the allowed domains");
      }
    }
    return verdict;
  },
});

/** The letters, digits, dots and hyphens that begin here, without those that end a sentence. */
function domainAt(text, at) {
  return /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)?/.exec(text.slice(at, at + DOMAIN_MAX))[0];
}

/** Where the name before a sign begins. */
function before(text, at, least) {
  const first = Math.max(least, at - NAME_MAX);
  // A name in quotes may hold anything.
  const quoted = /"[^"]*"$/.exec(text.slice(first, at));
  if (quoted) return whole(text, at - quoted[0].length);
  let start = at;
  while (start > first && !ENDS.test(text[start - 1])) start--;
  return whole(text, start);
}

/** Where the domain behind a sign ends. */
function behind(text, at) {
  const most = Math.min(text.length, at + DOMAIN_MAX);
  if (text[at] === "[") {
    const close = text.slice(at, most).indexOf("]");
    if (close > 0) return at + close + 1;
  }
  let end = at;
  while (end < most && !ENDS.test(text[end])) end++;
  // What ends the sentence stays in it.
  while (end > at && /[.!?]/.test(text[end - 1])) end--;
  return whole(text, end);
}

/** A pair of halves is not cut in two. */
function whole(text, at) {
  const second = text.charCodeAt(at);
  return second >= 0xdc00 && second <= 0xdfff ? at + 1 : at;
}
