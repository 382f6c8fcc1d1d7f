// Tools may write to these mail domains only. Other addresses in the arguments of a call are blocked, or taken
// out, and those in answers are left alone: reading an address is not writing to it.

import { definePlugin, Verdict } from "../../../../dlp-sdk/js/weir.js";

// Weir's own expressions: linear in time, whatever the text.
const ADDRESS = String.raw`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?`;
const ADDRESSES_MAX = 256;

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
      if (!leaf.text.includes("@")) continue;
      const found = host.find(ADDRESS, leaf.text, ADDRESSES_MAX);
      if (found.length === ADDRESSES_MAX) return Verdict.block("an argument holds more addresses than can be checked");
      for (const { start, end } of found) {
        const address = leaf.text.slice(start, end);
        if (allowed(address.slice(address.lastIndexOf("@") + 1).toLowerCase())) continue;
        verdict.mark(leaf, start, end, "foreign-address", action).because("an argument holds an address outside of the allowed domains");
      }
    }
    return verdict;
  },
});
